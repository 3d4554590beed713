"""A configuration as v1 JSON: what kube-scheduler writes with --write-config-to.

Upstream: cmd/kube-scheduler/app/options, configfile.go, LogOrWriteConfig; pkg/scheduler/framework/runtime, framework.go, NewFramework
(the captured profile).
"""

from typing import Any, Final

from extender.config.completion import complete
from extender.config.configuration import API_VERSION, KIND, Configuration, Profile, enabled_names
from extender.config.json_types import struct_of
from extender.config.plugin_args import ARGS_OF, write_args
from extender.config.plugin_sets import PLUGINS

_CONFIGURATION: Final = struct_of(Configuration, f"v1.{KIND}")


def written(configuration: Configuration) -> dict[str, Any]:
    """The configuration as the scheduler runs it, every default spelled out, in dicts, lists and scalars.

    Arguments of plugins that no profile enables are left out, and the others stand in the order of their names.

    Raises:
        ConfigErrors: the extenders cannot be made.
    """
    completed = complete(configuration)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **_CONFIGURATION.write(completed),
        "profiles": [_profile(profile) for profile in completed.profiles],
    }


def _profile(profile: Profile) -> dict[str, Any]:
    shown: dict[str, Any] = {"schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        shown["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    shown["plugins"] = PLUGINS.write(profile.plugins)
    enabled = enabled_names(profile.plugins)
    used = [config for config in profile.plugin_configs if config.name in enabled and config.args is not None]
    if used:
        used.sort(key=lambda config: config.name)
        shown["pluginConfig"] = [{"name": config.name, "args": _args(config.name, config.args)} for config in used]
    return shown


def _args(name: str, args: object) -> object:
    kind = ARGS_OF.get(name)
    if kind is None or not isinstance(args, kind):
        return args
    return {"apiVersion": API_VERSION, "kind": kind.__name__, **write_args(args)}

"""The configuration that the scheduler runs, with what extenders change in it; their order; and it as v1 JSON.

Upstream: pkg/scheduler/scheduler.go, buildExtenders; extender.go, makeTransport; client-go/transport, transport.go,
TLSConfigFor; cmd/kube-scheduler/app/options, configfile.go, LogOrWriteConfig; pkg/scheduler/framework/runtime,
framework.go, NewFramework (the captured profile).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

from extender.values.config.configuration import (
    API_VERSION,
    KIND,
    ConfigErrors,
    Configuration,
    Extender,
    ExtenderTLSConfig,
    PluginConfig,
    Profile,
    enabled_names,
)
from extender.values.config.json_types import struct_of
from extender.values.config.plugin_args import ARGS_OF, NodeResourcesFitArgs
from extender.values.config.plugin_sets import PLUGINS

_FIT: Final = "NodeResourcesFit"
_PEM_BLOCK: Final = b"-----BEGIN "


def complete(configuration: Configuration) -> Configuration:
    """Returns the configuration in which each profile ignores only what extenders tell the scheduler to ignore.

    Raises ConfigErrors if an extender's TLS settings contradict each other, or a profile has no arguments for
    NodeResourcesFit (stage `create`).
    """
    for extender in configuration.extenders:
        _check_tls(extender)
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return configuration
    return replace(configuration, profiles=tuple(_ignoring(profile, ignored) for profile in configuration.profiles))


def calling_order(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """Returns the extenders in the order in which they are called: ignorable ones come last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def _ignoring(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    configs = list(profile.plugin_configs)
    position = next((index for index, config in enumerate(configs) if config.name == _FIT), None)
    args = None if position is None else configs[position].args
    if position is None or not isinstance(args, NodeResourcesFitArgs):
        _refuse("can't find NodeResourcesFitArgs in plugin config")
    configs[position] = PluginConfig(_FIT, replace(args, ignored_resources=ignored))
    return replace(profile, plugin_configs=tuple(configs))


def _check_tls(extender: Extender) -> None:
    tls = extender.tls_config or ExtenderTLSConfig()
    is_insecure = tls.insecure or (extender.enable_https and not tls.has_ca)
    if tls.has_ca and is_insecure:
        _refuse("specifying a root certificates file with the insecure flag is not allowed")
    if tls.ca_data and _PEM_BLOCK not in tls.ca_data:
        _refuse("unable to load root certificates: unable to parse bytes as PEM block")


def _refuse(text: str) -> NoReturn:
    raise ConfigErrors([f"couldn't build extenders: {text}"], "create")


_CONFIGURATION: Final = struct_of(Configuration, f"v1.{KIND}")


def written(configuration: Configuration) -> dict[str, Any]:
    """Returns the configuration that the scheduler runs as v1 JSON, with every default spelled out.

    Arguments of plugins that no profile enables are left out, and the others stand in the order of their names. Raises
    ConfigErrors if the extenders cannot be made.
    """
    completed = complete(configuration)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **_CONFIGURATION.write(completed),
        "profiles": [_profile(profile) for profile in completed.profiles],
    }


def _profile(profile: Profile) -> dict[str, Any]:
    document: dict[str, Any] = {"schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    document["plugins"] = PLUGINS.write(profile.plugins)
    enabled = enabled_names(profile.plugins)
    used = [config for config in profile.plugin_configs if config.name in enabled and config.args is not None]
    if used:
        used.sort(key=lambda config: config.name)
        document["pluginConfig"] = [{"name": config.name, "args": _args(config.name, config.args)} for config in used]
    return document


def _args(name: str, args: object) -> object:
    kind = ARGS_OF.get(name)
    if kind is None or not isinstance(args, kind):
        return args
    return {"apiVersion": API_VERSION, "kind": kind.__name__, **struct_of(kind).write(args)}

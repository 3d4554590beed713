"""Settings that are written over the configuration: flags of kube-scheduler for which a KubeSchedulerConfiguration has
fields.

Upstream: cmd/kube-scheduler/app/options/options.go, ApplyTo, ApplyDeprecated, ApplyLeaderElectionTo (v1.36.2).
"""

import dataclasses
from typing import Any

from api.fatal_errors import StartUpError
from api.settings.settings import DECLARATIONS, Settings
from extender.values.config import ConfigErrors, Configuration, validate


def overridden(configuration: Configuration, settings: Settings) -> Configuration:
    """Returns the configuration with the settings over it that configure the same.

    Settings of the election win over a configuration file; the deprecated ones do not, as upstream.

    Raises:
        StartUpError: the resulting configuration is invalid.
    """
    changed = configuration
    for name, setting in DECLARATIONS.items():
        value, path = getattr(settings, name), setting.option.configures
        if path and value is not None and not (setting.option.yields_to_file and settings.config):
            changed = _replaced(changed, path, value)
    if changed == configuration:
        return configuration
    errors = validate(changed)
    if errors:
        raise StartUpError(ConfigErrors(errors))
    return changed


def _replaced(configuration: Any, path: tuple[str, ...], value: object) -> Any:
    field, *rest = path
    return dataclasses.replace(
        configuration, **{field: _replaced(getattr(configuration, field), tuple(rest), value) if rest else value}
    )

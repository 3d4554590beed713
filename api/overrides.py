"""What settings say over the configuration: kube-scheduler's flags that a KubeSchedulerConfiguration has fields for.

Upstream: cmd/kube-scheduler/app/options/options.go, ApplyTo, ApplyDeprecated, ApplyLeaderElectionTo (v1.36.2).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from api.fatal_errors import StartUpError
from api.settings import Settings
from extender.config import ConfigErrors, Configuration, validate

_ELECTION: Final[Mapping[str, str]] = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}
_CONNECTION: Final[Mapping[str, str]] = {"kube_api_qps": "qps", "kube_api_burst": "burst"}

OLDER_SETTINGS: Final = (*_CONNECTION, "profiling")
"""A configuration file is over them."""


def overridden(configuration: Configuration, settings: Settings) -> Configuration:
    """The configuration with what the settings say of it.

    The election's settings are over a configuration file; the older ones are not, as upstream.

    Raises:
        StartUpError: what comes of it is wrong.
    """
    election = dataclasses.replace(configuration.leader_election, **_said(settings, _ELECTION))
    changed = dataclasses.replace(configuration, leader_election=election)
    if settings.config is None:
        connection = dataclasses.replace(configuration.client_connection, **_said(settings, _CONNECTION))
        changed = dataclasses.replace(changed, client_connection=connection)
        if settings.profiling is not None:
            changed = dataclasses.replace(changed, enable_profiling=settings.profiling)
    if changed == configuration:
        return configuration
    errors = validate(changed)
    if errors:
        raise StartUpError(ConfigErrors(errors))
    return changed


def _said(settings: Settings, fields: Mapping[str, str]) -> dict[str, Any]:
    said = {field: getattr(settings, setting) for setting, field in fields.items()}
    return {field: value for field, value in said.items() if value is not None}

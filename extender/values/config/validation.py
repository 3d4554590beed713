"""The validation of a configuration: all errors at once, each with its field path, in upstream's words.

Upstream: pkg/scheduler/apis/config/validation, validation.go; component-base/config/validation, validation.go.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from extender.values.config.args_validation import CHECKED_WHEN_LOADED, validate_args
from extender.values.config.configuration import (
    API_VERSION,
    ClientConnection,
    Configuration,
    Extender,
    LeaderElection,
    Profile,
    enabled_names,
)
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.plugin_args import ARGS_OF
from extender.values.config.plugin_sets import EXTENSION_POINTS, GATE_OF, PluginRef, PluginSet
from extender.values.golang.field_errors import FieldError, Marshalled, child, duplicate, invalid, marshalled, required
from extender.values.objects.name_syntax import label_key_errors
from extender.values.objects.resource_names import is_extended_resource_name

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""The plugins that v1 no longer has. Upstream: invalidPluginsByVersion."""

# Upstream iterates over a map, in any order; sorted, this is one of its possible results. multiPoint and placement
# points are not checked.
_POINTS_WITHOUT_REMOVED_PLUGINS: Final = sorted(
    point for point in EXTENSION_POINTS if not point.startswith("placement")
)
_REMOVED: Final = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def validate(configuration: Configuration) -> list[FieldError]:
    """Returns every error in the configuration, in upstream's order. Upstream: ValidateKubeSchedulerConfiguration."""
    return [
        *_client_connection(configuration.client_connection),
        *_leader_election(configuration.leader_election),
        *_parallelism(configuration.parallelism),
        *_profiles(configuration.profiles, configuration.feature_gates),
        *_percentage("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score),
        *_backoff(configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds),
        *_extenders(configuration.extenders),
    ]


def without_effect(configuration: Configuration) -> Iterator[tuple[str, str]]:
    """Yields (field path, why) for fields that are accepted as upstream accepts them, though they have no effect."""
    if configuration.parallelism != Configuration().parallelism:
        yield "parallelism", "nodes are judged together as arrays, by one thread"
    for place, profile in enumerate(configuration.profiles):
        for name in sorted(enabled_names(profile.plugins) & GATE_OF.keys()):
            if not configuration.feature_gates.enabled(GATE_OF[name]):
                yield (
                    f"profiles[{place}].plugins",
                    f"{name} does nothing, because its feature gate {GATE_OF[name]} is off",
                )


def _client_connection(connection: ClientConnection) -> Iterator[FieldError]:
    if connection.burst < 0:
        yield invalid("clientConnection.burst", connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[FieldError]:
    if not election.leader_elect:
        return
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, duration in durations.items():
        if duration.nanoseconds <= 0:
            yield invalid(f"leaderElection.{name}", str(duration), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        # Upstream reports the renew deadline at the path of the lease duration.
        yield invalid(
            "leaderElection.leaseDuration", str(election.renew_deadline), "must be greater than `RenewDeadline`"
        )
    for name, value in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not value:
            yield required(f"leaderElection.{name}")
    if election.resource_lock != "leases":
        yield invalid("leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"')


def _parallelism(parallelism: int) -> Iterator[FieldError]:
    if parallelism <= 0:
        yield invalid("parallelism", parallelism, "should be an integer value greater than zero")


def _profiles(profiles: Sequence[Profile], features: FeatureGates) -> Iterator[FieldError]:
    if not profiles:
        yield required("profiles")
        return
    names: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        yield from _profile(path, profile, features)
        if profile.scheduler_name in names:
            # Upstream passes the path of the other profile as the value, which is printed as an empty object.
            yield duplicate(child(path, "schedulerName"), Marshalled("{}"))
        names.add(profile.scheduler_name)
    yield from _common_queue_sort(profiles)


def _profile(path: str, profile: Profile, features: FeatureGates) -> Iterator[FieldError]:
    if not profile.scheduler_name:
        yield required(child(path, "schedulerName"))
    yield from _percentage(child(path, "percentageOfNodesToScore"), profile.percentage_of_nodes_to_score)
    for point in _POINTS_WITHOUT_REMOVED_PLUGINS:
        for index, plugin in enumerate(profile.plugins[point].enabled):
            if plugin.name in REMOVED_PLUGINS:
                yield invalid(f"{path}.plugins.{point}.enabled[{index}]", plugin.name, _REMOVED)
    names: set[str] = set()
    for index, config in enumerate(profile.plugin_configs):
        config_path = f"{path}.pluginConfig[{index}]"
        if config.name in names:
            yield duplicate(config_path, config.name)
        names.add(config.name)
        if config.name in REMOVED_PLUGINS:
            yield invalid(config_path, config.name, _REMOVED)
        elif config.name in CHECKED_WHEN_LOADED:
            args_path = child(config_path, "args")
            if not isinstance(config.args, ARGS_OF[config.name]):
                yield invalid(args_path, marshalled(str(config.args)), "has to match plugin args")
            else:
                yield from validate_args(args_path, config.args, features)


def _percentage(path: str, percentage: int | None) -> Iterator[FieldError]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _common_queue_sort(profiles: Sequence[Profile]) -> Iterator[FieldError]:
    """Requires that all profiles sort alike, since they share one queue."""
    first = profiles[0].plugins["queueSort"]
    name = first.enabled[0].name if first.enabled else ""
    if len(first.enabled) > 1:
        yield invalid(
            "profiles[0].plugins.queueSort.Enabled", len(first.enabled), "only one queue sort plugin can be enabled"
        )
    args = profiles[0].plugin_config.get(name) if name else None
    for index, profile in enumerate(profiles[1:], start=1):
        current = profile.plugins["queueSort"]
        if current != first:
            yield invalid(
                f"profiles[{index}].plugins.queueSort", _shown_set(current), "must be the same for all profiles"
            )
        for config in profile.plugin_configs:
            if config.name == name and config.args != args:
                yield invalid(
                    f"profiles[{index}].pluginConfig.args",
                    marshalled(config.args),
                    "queueSort must be the same for all profiles",
                )


def _shown_set(plugin_set: PluginSet) -> Marshalled:
    def shown(plugins: Iterable[PluginRef]) -> object:
        return [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugins] or None

    return marshalled({"Enabled": shown(plugin_set.enabled), "Disabled": shown(plugin_set.disabled)})


def _backoff(initial: int, maximum: int) -> Iterator[FieldError]:
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if maximum < initial:
        yield invalid("podMaxBackoffSeconds", maximum, "must be greater than or equal to PodInitialBackoffSeconds")


def _extenders(extenders: Sequence[Extender]) -> Iterator[FieldError]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for position, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{position}].name"
            yield from _extended_resource_name(name_path, resource.name)
            if resource.name in managed:
                yield invalid(name_path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        yield invalid(
            "extenders", f"found {binders} extenders implementing bind", "only one extender can implement bind"
        )


def _extended_resource_name(path: str, name: str) -> Iterator[FieldError]:
    errors = label_key_errors(name)
    for error in errors:
        yield invalid(path, marshalled(name), error)
    if not errors and not is_extended_resource_name(name):
        yield invalid(path, name, "is an invalid extended resource name")

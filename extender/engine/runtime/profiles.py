"""Resolves profiles: plugin sets and `multiPoint` become one list of plugin names for each extension point.

A plugin is known here only by its name and the points it implements.

Upstream: pkg/scheduler/framework/runtime, framework.go, NewFramework, expandMultiPointPlugins, getScoreWeights;
pkg/scheduler/profile, profile.go, NewMap.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NoReturn

import msgspec

from extender.values.config.args_validation import validate_args
from extender.values.config.configuration import ConfigErrors, Configuration, Profile, enabled_names
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.plugin_args import ARGS_OF
from extender.values.config.plugin_sets import EVERYTHING, EXTENSION_POINTS, MULTI_POINT, PluginRef, PluginSet
from extender.values.golang.field_errors import aggregate
from extender.values.golang.int64 import MAX_INT64, wrap
from extender.values.golang.quoting import quoted

MAX_NODE_SCORE: Final = 100

PointsOf = Mapping[str, Collection[str]]
"""Plugin name -> the extension points it implements, for all plugins that exist."""


class ResolvedProfile(msgspec.Struct, frozen=True):
    """Names at each extension point in the order in which they run, and weights at `score` and `placementScore`."""

    scheduler_name: str
    plugins: Mapping[str, tuple[str, ...]]
    score_weights: Mapping[str, int]
    placement_score_weights: Mapping[str, int]


def resolve_all(configuration: Configuration, points_of: PointsOf) -> dict[str, ResolvedProfile]:
    """Returns every profile resolved, by scheduler name.

    Raises ConfigErrors if a plugin refuses its arguments, a profile cannot be resolved, or two would sort differently.
    """
    resolved: dict[str, ResolvedProfile] = {}
    first: tuple[str, object] | None = None
    for profile in configuration.profiles:
        try:
            check_arguments(profile, points_of, configuration.feature_gates)
            plan = resolve(profile, points_of)
        except ConfigErrors as exc:
            _refuse(f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: {exc}")
        name = quoted(profile.scheduler_name)
        if profile.scheduler_name in resolved:
            _refuse(f"initializing profiles: duplicate profile with scheduler name {name}")
        queue_sort = plan.plugins["queueSort"][0]
        arguments = profile.plugin_config.get(queue_sort)
        if first is None:
            first = queue_sort, arguments
        if first[0] != queue_sort:
            _refuse(
                f"initializing profiles: different queue sort plugins for profile {name}: {quoted(queue_sort)}, first: "
                f"{quoted(first[0])}"
            )
        if first[1] != arguments:
            _refuse(f"initializing profiles: different queue sort plugin args for profile {name}")
        resolved[profile.scheduler_name] = plan
    return resolved


def check_arguments(profile: Profile, points_of: PointsOf, features: FeatureGates) -> None:
    """Checks that every enabled plugin accepts its arguments.

    Raises ConfigErrors for arguments that are repeated or refused: those of the first plugin by name, whereas upstream
    makes plugins in any order.
    """
    arguments: dict[str, object] = {}
    for config in profile.plugin_configs:
        if config.name in arguments:
            _refuse(f"repeated config for plugin {config.name}")
        arguments[config.name] = config.args
    for name in sorted(enabled_names(profile.plugins) & ARGS_OF.keys() & points_of.keys()):
        args = arguments.get(name)
        if not isinstance(args, ARGS_OF[name]):
            args_type = ARGS_OF[name].__name__
            _refuse(
                f"initializing plugin {quoted(name)}: want args to be of type {args_type}, got {type(args).__name__}"
            )
        errors = validate_args("", args, features)
        if errors:
            _refuse(f"initializing plugin {quoted(name)}: {aggregate(errors)}")


def resolve(profile: Profile, points_of: PointsOf) -> ResolvedProfile:
    """Returns the plugins of one profile at every extension point, in the order in which they run.

    At each point come first the plugins that both the profile names there and `multiPoint` has; then the others of
    `multiPoint` that implement the point and are not disabled there; then the rest of those named there. A point that
    disables everything takes nothing from `multiPoint`.

    Raises ConfigErrors for a name that is not in `points_of`, a plugin where it cannot run or twice, not exactly one
    queue sort plugin, no bind plugin, or weights too large.
    """
    plugins = profile.plugins
    multi_point = plugins[MULTI_POINT].enabled
    for point in EXTENSION_POINTS:
        _check_named(point, plugins[point].enabled, points_of)
    resolved = {point: _expand(point, plugins[point], multi_point, points_of) for point in EXTENSION_POINTS}
    name, queue_sorts = quoted(profile.scheduler_name), len(resolved["queueSort"])
    if queue_sorts != 1:
        _refuse(f"only one queue sort plugin required for profile with scheduler name {name}, but got {queue_sorts}")
    if not resolved["bind"]:
        _refuse(f"at least one bind plugin is needed for profile with scheduler name {name}")
    return ResolvedProfile(
        scheduler_name=profile.scheduler_name,
        plugins=MappingProxyType(resolved),
        score_weights=_weights("score", plugins["score"].enabled, multi_point, resolved["score"], points_of),
        placement_score_weights=_weights(
            "placementScore", plugins["placementScore"].enabled, multi_point, resolved["placementScore"], points_of
        ),
    )


def _check_named(point: str, enabled: Sequence[PluginRef], points_of: PointsOf) -> None:
    """Checks the plugins that are named at the point (updatePluginList)."""
    names: set[str] = set()
    for plugin in enabled:
        _check_exists(point, plugin.name, points_of)
        if point not in points_of[plugin.name]:
            _refuse(f"plugin {quoted(plugin.name)} does not extend {_interface(point)} plugin")
        if plugin.name in names:
            _refuse(f"plugin {quoted(plugin.name)} already registered as {quoted(_interface(point))}")
        names.add(plugin.name)


def _expand(
    point: str, plugin_set: PluginSet, multi_point: Sequence[PluginRef], points_of: PointsOf
) -> tuple[str, ...]:
    """Returns the plugins of the point with those of `multiPoint` (expandMultiPointPlugins)."""
    enabled = [plugin.name for plugin in plugin_set.enabled]
    disabled = {plugin.name for plugin in plugin_set.disabled}
    if EVERYTHING in disabled:
        return tuple(enabled)
    overridden: set[str] = set()
    added: dict[str, None] = {}
    for plugin in multi_point:
        _check_exists(point, plugin.name, points_of)
        if point not in points_of[plugin.name] or plugin.name in disabled:
            continue
        if plugin.name in enabled:
            overridden.add(plugin.name)
        elif plugin.name in added:
            _refuse(f"plugin {quoted(plugin.name)} already registered as {quoted(_interface(point))}")
        else:
            added[plugin.name] = None
    return (
        *(name for name in enabled if name in overridden),
        *added,
        *(name for name in enabled if name not in overridden),
    )


def _weights(
    point: str,
    enabled: Sequence[PluginRef],
    multi_point: Sequence[PluginRef],
    resolved: Sequence[str],
    points_of: PointsOf,
) -> Mapping[str, int]:
    """Returns the weight of each plugin at the point: as given there, else at `multiPoint`; 0 means 1.

    All weights together must not take a total score out of int64. Those of plugins that `multiPoint` names count even
    where they are disabled at the point, and the sum wraps: this is why a negative weight is refused unless it is the
    last.

    Upstream: framework.go, getScoreWeights.
    """
    weights: dict[str, int] = {}
    total = 0
    for plugin in (*enabled, *multi_point):
        if plugin.name in weights or point not in points_of[plugin.name]:
            continue
        weight = plugin.weight or 1
        weights[plugin.name] = weight
        if weight * MAX_NODE_SCORE > wrap(MAX_INT64 - total):
            words = "score" if point == "score" else "placement score"
            _refuse(f"{words} plugins: total score of Score plugins could overflow")
        total += weight * MAX_NODE_SCORE
    return MappingProxyType({name: weights[name] for name in resolved})


def _check_exists(point: str, name: str, points_of: PointsOf) -> None:
    if name not in points_of:
        _refuse(f"{_interface(point)} {quoted(name)} does not exist")


def _interface(point: str) -> str:
    return f"{point[0].upper()}{point[1:]}Plugin"


def _refuse(text: str) -> NoReturn:
    raise ConfigErrors([text], "create")

"""The plugins of each extension point: those that a profile names, the default ones, and how the two are merged.

Feature gates that are off leave their plugins out of the defaults, though a profile may still name them; such a plugin
does nothing.

Upstream: kube-scheduler/config/v1, types.go, Plugins and PluginSet; pkg/scheduler/apis/config/v1, default_plugins.go,
getDefaultPlugins and mergePlugins; framework/plugins/registry.go.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.config.json_types import struct_of, wire
from extender.values.golang.schema import INT32, STRING, Field, ListOf, Presence, Struct

MULTI_POINT: Final = "multiPoint"

EXTENSION_POINTS: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
)
"""The extension points by their names in a configuration, in the order in which a profile is built."""

EVERYTHING: Final = "*"
"""The name that, disabled at a point, stands for all plugins that would be there by default."""


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin named at an extension point; `weight` matters where scores are given, and 0 means the default."""

    name: str = field(default="", metadata=wire(STRING))
    weight: int = field(default=0, metadata=wire(INT32))


PLUGIN: Final = struct_of(PluginRef, "v1.Plugin")


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins that are enabled and disabled at one extension point, in order."""

    enabled: tuple[PluginRef, ...] = field(default=(), metadata=wire(ListOf(PLUGIN, make=tuple), Presence.OMIT))
    disabled: tuple[PluginRef, ...] = field(default=(), metadata=wire(ListOf(PLUGIN, make=tuple), Presence.OMIT))


PLUGIN_SET: Final = struct_of(PluginSet)

Plugins = Mapping[str, PluginSet]
"""The set of every extension point, and of `multiPoint`, by name."""


def plugins(**sets: PluginSet) -> Plugins:
    """Returns plugins with the sets given; the others are empty."""
    return MappingProxyType({point: sets.get(point, PluginSet()) for point in (*EXTENSION_POINTS, MULTI_POINT)})


PLUGINS: Final = Struct(
    "v1.Plugins",
    {point: Field(PLUGIN_SET, presence=Presence.ZERO) for point in (*EXTENSION_POINTS, MULTI_POINT)},
    make=plugins,
    get=operator.getitem,
)


def merge(defaults: Plugins, custom: Plugins) -> Plugins:
    """Returns the defaults as changed by what was written, point by point."""
    return MappingProxyType({point: merge_set(defaults[point], custom[point]) for point in defaults})


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Returns the default plugins less the disabled ones, each in place even if re-configured, then other custom ones.

    A plugin that is both disabled and enabled goes to where it was written: this is how plugins are re-ordered. One
    that is enabled twice stays twice, and is refused when the profile is built. Upstream: mergePluginSet.
    """
    disabled = tuple(PluginRef(plugin.name) for plugin in (*custom.disabled, *default.disabled))
    disabled_names = {plugin.name for plugin in disabled}
    last_of = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    defaults: tuple[PluginRef, ...] = ()
    if EVERYTHING not in disabled_names:
        defaults = tuple(plugin for plugin in default.enabled if plugin.name not in disabled_names)
    replaced = {last_of[plugin.name] for plugin in defaults if plugin.name in last_of}
    return PluginSet(
        enabled=(
            *(custom.enabled[last_of[plugin.name]] if plugin.name in last_of else plugin for plugin in defaults),
            *(plugin for index, plugin in enumerate(custom.enabled) if index not in replaced),
        ),
        disabled=disabled,
    )


GATE_OF: Final[Mapping[str, str]] = {
    "DynamicResources": "DynamicResourceAllocation",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GangScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}
"""In-tree plugin -> the feature gate without which it does nothing."""

IN_TREE_PROFILE: Final = (
    PluginRef("SchedulingGates"),
    PluginRef("PrioritySort"),
    PluginRef("NodeUnschedulable"),
    PluginRef("NodeName"),
    PluginRef("TaintToleration", 3),
    PluginRef("NodeAffinity", 2),
    PluginRef("NodePorts"),
    PluginRef("NodeResourcesFit", 1),
    PluginRef("VolumeRestrictions"),
    PluginRef("NodeVolumeLimits"),
    PluginRef("VolumeBinding"),
    PluginRef("VolumeZone"),
    PluginRef("PodTopologySpread", 2),
    PluginRef("InterPodAffinity", 2),
    PluginRef("DynamicResources", 2),
    PluginRef("DefaultPreemption"),
    PluginRef("NodeResourcesBalancedAllocation", 1),
    PluginRef("ImageLocality", 1),
    PluginRef("DefaultBinder"),
    PluginRef("NodeDeclaredFeatures"),
    PluginRef("GangScheduling"),
    PluginRef("TopologyPlacementGenerator"),
    PluginRef("PodGroupPodsCount", 1),
)
"""The plugins of the default profile, where all feature gates are on, in their order, with their weights."""


def default_plugins(features: FeatureGates) -> Plugins:
    """Returns the plugins of a profile that names none (getDefaultPlugins, applyFeatureGates)."""
    enabled = (
        plugin for plugin in IN_TREE_PROFILE if plugin.name not in GATE_OF or features.enabled(GATE_OF[plugin.name])
    )
    return plugins(multiPoint=PluginSet(enabled=tuple(enabled)))


DEFAULT_PLUGINS: Final = default_plugins(DEFAULT_FEATURES)
"""The default plugins while feature gates have their defaults."""

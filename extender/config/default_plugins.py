"""The plugins that every profile has unless it says otherwise, and where each in-tree plugin runs.

With the feature gates of 1.36: those that are off leave their plugins out of the defaults, though a profile may still name them.

Upstream: pkg/scheduler/apis/config/v1, default_plugins.go, getDefaultPlugins; framework/plugins/registry.go (v1.36.2).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from extender.config.plugin_sets import Plugin, Plugins, PluginSet, plugins

DEFAULT_PLUGINS: Final[Plugins] = plugins(
    multiPoint=PluginSet(
        enabled=(
            Plugin("SchedulingGates"),
            Plugin("PrioritySort"),
            Plugin("NodeUnschedulable"),
            Plugin("NodeName"),
            Plugin("TaintToleration", 3),
            Plugin("NodeAffinity", 2),
            Plugin("NodePorts"),
            Plugin("NodeResourcesFit", 1),
            Plugin("VolumeRestrictions"),
            Plugin("NodeVolumeLimits"),
            Plugin("VolumeBinding"),
            Plugin("VolumeZone"),
            Plugin("PodTopologySpread", 2),
            Plugin("InterPodAffinity", 2),
            Plugin("DynamicResources", 2),
            Plugin("DefaultPreemption"),
            Plugin("NodeResourcesBalancedAllocation", 1),
            Plugin("ImageLocality", 1),
            Plugin("DefaultBinder"),
            Plugin("NodeDeclaredFeatures"),
        )
    )
)

IN_TREE_POINTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "SchedulingGates": frozenset({"preEnqueue"}),
        "PrioritySort": frozenset({"queueSort"}),
        "NodeUnschedulable": frozenset({"filter"}),
        "NodeName": frozenset({"filter"}),
        "TaintToleration": frozenset({"filter", "preScore", "score"}),
        "NodeAffinity": frozenset({"preFilter", "filter", "preScore", "score"}),
        "NodePorts": frozenset({"preFilter", "filter"}),
        "NodeResourcesFit": frozenset({"preFilter", "filter", "preScore", "score", "placementScore"}),
        "VolumeRestrictions": frozenset({"preFilter", "filter"}),
        "NodeVolumeLimits": frozenset({"preFilter", "filter"}),
        "VolumeBinding": frozenset({"preFilter", "filter", "reserve", "preBind", "preScore", "score"}),
        "VolumeZone": frozenset({"preFilter", "filter"}),
        "PodTopologySpread": frozenset({"preFilter", "filter", "preScore", "score"}),
        "InterPodAffinity": frozenset({"preFilter", "filter", "preScore", "score"}),
        "DynamicResources": frozenset({"preEnqueue", "preFilter", "filter", "postFilter", "score", "reserve", "preBind"}),
        "DefaultPreemption": frozenset({"postFilter", "preEnqueue"}),
        "NodeResourcesBalancedAllocation": frozenset({"preScore", "score"}),
        "ImageLocality": frozenset({"score"}),
        "DefaultBinder": frozenset({"bind"}),
        "NodeDeclaredFeatures": frozenset({"preFilter", "filter"}),
        "GangScheduling": frozenset({"preEnqueue", "permit"}),
        "TopologyPlacementGenerator": frozenset({"placementGenerate"}),
        "PodGroupPodsCount": frozenset({"placementScore"}),
    }
)
"""Every in-tree plugin with the extension points it implements."""

"""The in-tree plugins, one file or folder each. None imports another, and the runtime knows them only by `IN_TREE`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from extender.engine.framework import Plugin
from extender.engine.plugins.default_binder import DefaultBinder
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.dynamic_resources.plugin import DynamicResources
from extender.engine.plugins.gang_scheduling import GangScheduling
from extender.engine.plugins.image_locality import ImageLocality
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_declared_features import NodeDeclaredFeatures
from extender.engine.plugins.node_name import NodeName
from extender.engine.plugins.node_ports import NodePorts
from extender.engine.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.node_unschedulable import NodeUnschedulable
from extender.engine.plugins.node_volume_limits.plugin import NodeVolumeLimits
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.engine.plugins.priority_sort import PrioritySort
from extender.engine.plugins.scheduling_gates import SchedulingGates
from extender.engine.plugins.taint_toleration import TaintToleration
from extender.engine.plugins.topology_placement import PodGroupPodsCount, TopologyPlacementGenerator
from extender.engine.plugins.volume_binding.plugin import VolumeBinding
from extender.engine.plugins.volume_restrictions import VolumeRestrictions
from extender.engine.plugins.volume_zone import VolumeZone

IN_TREE: Final[Mapping[str, type[Plugin]]] = MappingProxyType(
    {
        "SchedulingGates": SchedulingGates,
        "PrioritySort": PrioritySort,
        "NodeUnschedulable": NodeUnschedulable,
        "NodeName": NodeName,
        "TaintToleration": TaintToleration,
        "NodeAffinity": NodeAffinity,
        "NodePorts": NodePorts,
        "NodeResourcesFit": NodeResourcesFit,
        "VolumeRestrictions": VolumeRestrictions,
        "NodeVolumeLimits": NodeVolumeLimits,
        "VolumeBinding": VolumeBinding,
        "VolumeZone": VolumeZone,
        "PodTopologySpread": PodTopologySpread,
        "InterPodAffinity": InterPodAffinity,
        "DynamicResources": DynamicResources,
        "DefaultPreemption": DefaultPreemption,
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
        "ImageLocality": ImageLocality,
        "DefaultBinder": DefaultBinder,
        "NodeDeclaredFeatures": NodeDeclaredFeatures,
        "GangScheduling": GangScheduling,
        "TopologyPlacementGenerator": TopologyPlacementGenerator,
        "PodGroupPodsCount": PodGroupPodsCount,
    }
)
"""Name -> class, in the order of the default profile."""

"""Node, its taints and images."""

import msgspec

from extender.values.objects.meta import ApiObject, Condition, HasMetadata, Int64

ResourceList = dict[str, str | int | float]
"""Resource name -> quantity as written; `objects.quantity` reads it."""

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
BETA_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"


class Taint(ApiObject, frozen=True):
    """v1.Taint: `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""


class ContainerImage(ApiObject, frozen=True):
    """v1.ContainerImage: one image under all its names; size in bytes."""

    names: list[str] = []
    size_bytes: Int64 = 0


class NodeSpec(ApiObject, frozen=True):
    """v1.NodeSpec."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(ApiObject, frozen=True):
    """v1.NodeStatus."""

    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: list[Condition] = []
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(HasMetadata, frozen=True):
    """v1.Node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

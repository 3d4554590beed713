"""The resources that views show: cpu, memory, pods, and whatever else nodes offer, such as GPUs and the devices of a
class.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from api.ui.wording import cores, size
from extender.answers.cluster_map import NodeOnMap, PodOnNode
from extender.answers.pending import PendingResource

Resource = str
"""The name of a resource."""

ALWAYS: Final = ("cpu", "memory", "pods")
_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")


def resources_of(nodes: Iterable[NodeOnMap]) -> tuple[Resource, ...]:
    """Returns cpu, memory and pods, then the others by name."""
    return (*ALWAYS, *sorted({each.name for node in nodes for each in node.resources}))


def most_lacking(lacking: Sequence[PendingResource], offered: Sequence[Resource]) -> Resource:
    """Returns the resource to show unless another one is asked for: that which most pending pods lack, or else cpu."""
    return next((each.resource for each in lacking if each.resource in offered), "cpu")


def usage(node: NodeOnMap, by: Resource) -> tuple[int, int]:
    """Returns (what is requested of the node, what is allocatable)."""
    match by:
        case "cpu":
            return node.requested_cpu, node.cpu
        case "memory":
            return node.requested_memory, node.memory
        case "pods":
            return node.num_pods, node.max_pods
        case _:
            return next(((each.requested, each.allocatable) for each in node.resources if each.name == by), (0, 0))


def amount(pod: PodOnNode, by: Resource) -> int:
    """Returns what the pod requests."""
    match by:
        case "cpu":
            return pod.cpu
        case "memory":
            return pod.memory
        case "pods":
            return 1
        case _:
            return pod.requests.get(by, 0)


def quantity(count: int, by: Resource) -> str:
    """Returns an amount with its unit."""
    if by == "cpu":
        return f"{cores(count)} cpu"
    return size(count) if by.startswith(_IN_BYTES) else f"{count:,}"


def resource_words(by: Resource) -> str:
    """Returns what a view calls the resource: a device class by its own name, others without the vendor's domain's
    beginning.
    """
    return by.removeprefix("deviceclass.resource.kubernetes.io/")

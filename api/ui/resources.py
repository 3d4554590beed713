"""The resources and priorities of pods and nodes as views show them, such as cpu, pods and GPUs."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from api.ui.wording import cores, priority_words, size
from extender.answers.overviews import NodeOnMap, PodOnNode
from extender.answers.pending import PendingResource

Resource = str
"""The name of a resource."""

ALWAYS: Final = ("cpu", "memory", "pods")
_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")


def resources_of(nodes: Iterable[NodeOnMap]) -> tuple[Resource, ...]:
    """Returns cpu, memory and pods, then the others by name."""
    return (*ALWAYS, *sorted({resource.name for node in nodes for resource in node.resources}))


def most_lacking(lacking: Sequence[PendingResource], nodes: Sequence[NodeOnMap]) -> Resource:
    """Returns the resource to show: of those of most nodes, what most pending pods lack, or else cpu."""
    offering = {lack.resource: sum(usage(node, lack.resource)[1] > 0 for node in nodes) for lack in lacking}
    return next((name for name, count in offering.items() if 2 * count > len(nodes)), "cpu")


def tabled(nodes: Sequence[NodeOnMap], lacking: Sequence[PendingResource], order: str = "") -> tuple[Resource, ...]:
    """Returns the resources of the table of nodes: cpu, memory, pods, what pending pods lack, and the sorted one."""
    offered = resources_of(nodes)
    sorted_by = order.removeprefix("-").removesuffix("-free")
    lacked = [name for name in (lack.resource for lack in lacking) if name in offered and name not in ALWAYS]
    return tuple(dict.fromkeys((*ALWAYS, *lacked[:2], *((sorted_by,) if sorted_by in offered else ()))))


def usage(node: NodeOnMap, resource: Resource) -> tuple[int, int]:
    """Returns (what is requested of the node, what is allocatable)."""
    match resource:
        case "cpu":
            return node.requested_cpu, node.cpu
        case "memory":
            return node.requested_memory, node.memory
        case "pods":
            return node.num_pods, node.max_pods
        case _:
            amounts = ((row.requested, row.allocatable) for row in node.resources if row.name == resource)
            return next(amounts, (0, 0))


def amount(pod: PodOnNode, resource: Resource) -> int:
    match resource:
        case "cpu":
            return pod.cpu
        case "memory":
            return pod.memory
        case "pods":
            return 1
        case _:
            return pod.requests.get(resource, 0)


def quantity(count: int, resource: Resource) -> str:
    if resource == "cpu":
        return f"{cores(count)} cpu"
    return size(count) if resource.startswith(_IN_BYTES) else f"{count:,}"


def resource_words(resource: Resource) -> str:
    """Returns what a view calls the resource: a device class by its own name."""
    return resource.removeprefix("deviceclass.resource.kubernetes.io/")


STEPS: Final = 7


@final
@dataclass(frozen=True, slots=True)
class Priorities:
    """The step of the scale that each priority has. Higher priorities are never paler than lower ones."""

    starts: tuple[int, ...]
    """The lowest priority of each step in use, lowest first."""
    steps: tuple[int, ...]
    shares: bool
    """Whether a step stands for several priorities."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """PriorityClass -> its value."""

    @staticmethod
    def of(values: Iterable[int], classes: Mapping[str, int] | None = None) -> "Priorities":
        """Returns a scale for these priorities: up to seven have a step each, more share steps in equal parts."""
        distinct = sorted(set(values))
        used = min(len(distinct), STEPS)
        starts = tuple(distinct[place * len(distinct) // used] for place in range(used))
        # Few priorities are spread over the scale, so that two of them differ as much as they can.
        steps = (
            tuple(round(place * (STEPS - 1) / (used - 1)) for place in range(used))
            if used > 1
            else (STEPS // 2,) * used
        )
        return Priorities(starts, steps, len(distinct) > STEPS, classes or {})

    def css(self, priority: int) -> str:
        if not self.starts:
            return f"p{STEPS // 2}"
        return f"p{self.steps[max(0, bisect_right(self.starts, priority) - 1)]}"

    def words(self, priority: int) -> str:
        """Returns the names of the classes that have this priority; the number if there are none, or more than two."""
        names = sorted(name for name, value in self.classes.items() if value == priority)
        return " / ".join(names) if 0 < len(names) <= 2 else priority_words(priority)

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """(class, words) of each step, highest first."""
        words = [f"{'≥ ' * self.shares}{self.words(start)}" for start in self.starts]
        return tuple(reversed([(f"p{step}", word) for step, word in zip(self.steps, words, strict=True)]))

"""Evictions: for which pod a scheduler evicts another one. The API server does not say, so that it follows from the
nominated node.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from extender.values.objects.pod import Pod

MAX_PREEMPTORS: Final = 1000
"""The number of nodes whose last preemptors are remembered."""
MAX_OF_NODE: Final = 4
"""The number of preemptors that are remembered of each."""
MAX_UNEXPLAINED: Final = 1000
"""The number of victims that are kept until a pod is nominated to their node."""


@final
@dataclass(frozen=True, slots=True)
class Preemptor:
    """A pod that a scheduler nominated to a node."""

    pod: Pod
    would_evict: tuple[Pod, ...]
    """The pods that the shadow would have evicted there for it."""
    is_clear: bool
    """Whether it is known what the scheduler knew when it decided."""

    def needs(self, victim: Pod) -> bool:
        """Whether the shadow would have evicted this pod, or one that is as important.

        Which of equally important pods is kept depends on the order in which a scheduler heard of them.
        """
        return any(victim.uid == each.uid or _importance(victim) == _importance(each) for each in self.would_evict)


@final
@dataclass(frozen=True, slots=True)
class SeenEviction:
    """A victim and the pod that it makes room for."""

    victim: Pod
    preemptor: Preemptor


@final
class Evictions:
    """State: the last preemptors of each node, and victims for whom none was seen yet."""

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[Preemptor, ...]] = {}
        self._unexplained: dict[str, Pod] = {}

    def preempts(self, node: str, preemptor: Preemptor) -> Iterable[SeenEviction]:
        """Takes note that a pod was nominated to a node; returns the evictions there that were seen before."""
        before = self._by_node.pop(node, ())
        self._by_node[node] = (preemptor, *before)[:MAX_OF_NODE]
        if len(self._by_node) > MAX_PREEMPTORS:
            del self._by_node[next(iter(self._by_node))]
        victims = self.unexplained(node)
        for victim in victims:
            del self._unexplained[victim.uid]
        return [SeenEviction(victim, preemptor) for victim in victims]

    def unexplained(self, node: str) -> list[Pod]:
        """Returns the victims on a node for which no preemptor was seen yet."""
        return [victim for victim in self._unexplained.values() if victim.spec.node_name == node]

    def evicted(self, victim: Pod) -> SeenEviction | None:
        """Returns for whom a pod was evicted: the last preemptor there, unless an earlier one needs it; None if that is
        not known yet.
        """
        preemptors = self._by_node.get(victim.spec.node_name)
        if preemptors is not None:
            return SeenEviction(victim, next((each for each in preemptors if each.needs(victim)), preemptors[0]))
        self._unexplained[victim.uid] = victim
        if len(self._unexplained) > MAX_UNEXPLAINED:
            del self._unexplained[next(iter(self._unexplained))]
        return None


def _importance(pod: Pod) -> tuple[int, str | None]:
    """Returns what makes pods equally important. Upstream: util.MoreImportantPod, which compares priorities, then start
    times.
    """
    return pod.priority, pod.status.start_time

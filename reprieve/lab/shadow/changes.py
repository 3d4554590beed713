"""What changes of a cluster show: what its scheduler decided, what that depends on, and whom it evicts for whom."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from extender.engine.reporter import Decided
from extender.values.objects.kinds import kind_of
from extender.values.objects.meta import Condition, HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

PREEMPTORS_OF_NODE: Final = 4
"""The number of preemptors of a node among which the one is looked for that needs a victim."""
KEPT: Final = 1000
"""The number of nodes whose preemptors are remembered, and of victims whose preemptor has not been seen yet."""


def key_of(obj: HasMetadata) -> tuple[str, str, str]:
    return kind_of(obj).name, obj.metadata.namespace, obj.metadata.name


@final
@dataclass(frozen=True, slots=True)
class ObservedChange:
    """A change of the cluster, with its time by the event loop."""

    time: float
    old: HasMetadata | None
    new: HasMetadata | None

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of the object, unique in the cluster."""
        obj = self.old if self.new is None else self.new
        return ("", "", "") if obj is None else key_of(obj)

    @property
    def is_placement(self) -> bool:
        """Whether a scheduler gave a pod a node, or nominated it to one, which it knew before that was written."""
        decided = decision_in(self.old, self.new)
        return decided is not None and bool(decided.node or decided.nominated)

    @property
    def matters(self) -> bool:
        """Whether a decision depends on it. Most changes are heartbeats of nodes, and pods that begin to run."""
        old, new = self.old, self.new
        if old is None or new is None:
            return True
        if isinstance(old, Node) and isinstance(new, Node):
            return old.spec != new.spec or old.status != new.status or old.metadata.labels != new.metadata.labels
        if isinstance(old, Pod) and isinstance(new, Pod):
            return _looked_at(old) != _looked_at(new)
        return True


def _looked_at(pod: Pod) -> tuple[object, ...]:
    status = pod.status
    return (
        pod.spec,
        pod.is_terminating,
        pod.is_terminal,
        status.nominated_node_name,
        status.start_time,
        pod.metadata.labels,
    )


def decision_in(old: HasMetadata | None, new: HasMetadata | None) -> Decided | None:
    """Returns the decision of a scheduler that a change of a pod shows, if any."""
    if (
        not isinstance(old, Pod)
        or not isinstance(new, Pod)
        or old.uid != new.uid
        or old.spec.node_name
        or old.is_terminating
    ):
        return None
    if new.spec.node_name:
        return Decided(node=new.spec.node_name)
    was, now = _refusal(old), _refusal(new)
    nominated, before = new.status.nominated_node_name, old.status.nominated_node_name
    if was == now:
        # Not a preemption, which says that the pod fits nowhere: the node is written early for slow volumes or Permit.
        return Decided(node=nominated) if nominated and not before else None
    if now is None or now.reason == "SchedulingGated" or new.is_terminal:
        return None
    return Decided(status=now.reason, message=now.message, nominated=nominated)


def _refusal(pod: Pod) -> Condition | None:
    return next(
        (
            condition
            for condition in pod.status.conditions
            if condition.type == "PodScheduled" and condition.status == "False"
        ),
        None,
    )


def evicted_in(old: HasMetadata | None, new: HasMetadata | None) -> Pod | None:
    """Returns the pod, if the change says that a scheduler evicts it for another one."""
    if isinstance(old, Pod) and isinstance(new, Pod) and new.spec.node_name and _is_victim(new) and not _is_victim(old):
        return new
    return None


def _is_victim(pod: Pod) -> bool:
    return any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
        for condition in pod.status.conditions
    )


# For whom.


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
        # Which of equally important pods is kept depends on the order in which a scheduler heard of them.
        return any(victim.uid == pod.uid or _importance(victim) == _importance(pod) for pod in self.would_evict)


@final
@dataclass(frozen=True, slots=True)
class ObservedEviction:
    """A victim and the pod that it makes room for."""

    victim: Pod
    preemptor: Preemptor


@final
class Evictions:
    """Finds the preemptor of each victim by the nominated node, since the API server does not name it.

    State: the last preemptors of each node, and victims without one so far.
    """

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[Preemptor, ...]] = {}
        self._unexplained: dict[str, Pod] = {}

    def preempts(self, node: str, preemptor: Preemptor) -> Iterable[ObservedEviction]:
        """Notes that a pod was nominated to a node; returns the evictions seen there before."""
        before = self._by_node.pop(node, ())
        self._by_node[node] = (preemptor, *before)[:PREEMPTORS_OF_NODE]
        if len(self._by_node) > KEPT:
            del self._by_node[next(iter(self._by_node))]
        victims = self.unexplained(node)
        for victim in victims:
            del self._unexplained[victim.uid]
        return [ObservedEviction(victim, preemptor) for victim in victims]

    def unexplained(self, node: str) -> list[Pod]:
        return [victim for victim in self._unexplained.values() if victim.spec.node_name == node]

    def evicted(self, victim: Pod) -> ObservedEviction | None:
        """Returns the eviction with its preemptor, if known: the last one there, unless an earlier one needs it."""
        preemptors = self._by_node.get(victim.spec.node_name)
        if preemptors is not None:
            return ObservedEviction(
                victim, next((preemptor for preemptor in preemptors if preemptor.needs(victim)), preemptors[0])
            )
        self._unexplained[victim.uid] = victim
        if len(self._unexplained) > KEPT:
            del self._unexplained[next(iter(self._unexplained))]
        return None


def _importance(pod: Pod) -> tuple[int, str | None]:
    """Upstream: util.MoreImportantPod, which compares priorities, then start times."""
    return pod.priority, pod.status.start_time

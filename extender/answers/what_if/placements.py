"""Pods in a simulation: the node of each, and the messages of those that fit nowhere."""

from dataclasses import dataclass, field
from typing import Literal, final

from extender.answers.pods import requested
from extender.answers.records.values import PodName, Victim
from extender.answers.types import Placement, PreemptionAnswer
from extender.answers.what_if.departures import Departure
from extender.engine.runtime.memory import signature_of
from extender.values.objects.pod import Pod

Cause = Literal["created", "pending", "evicted"]


@final
@dataclass(slots=True)
class SimulatedPod:
    """A pod that needs a node in a simulation, and its state so far.

    Attributes:
        turn: its place among pods that are equal to the queue.
        depth: how many evictions led to its being here.
        departure: its last eviction.
        waits_for: the PodDisruptionBudgets for which a drain waits before the pod leaves the node where it is.
        failed_at: how many events had happened when it fitted nowhere; None while it waits or has a node.
        is_final: whether it is not tried again, whatever happens.
    """

    pod: Pod
    cause: Cause
    turn: int
    depth: int = 0
    node: str = ""
    message: str = ""
    evicts: list[Victim] = field(default_factory=list)
    preemption: PreemptionAnswer | None = None
    departure: Departure | None = None
    waits_for: tuple[str, ...] = ()
    failed_at: int | None = None
    is_final: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it is still to be tried."""
        return not self.node and self.failed_at is None and not self.is_final

    def as_answer(self) -> Placement:
        """Returns the pod as a part of an answer."""
        return Placement(
            pod=PodName.of(self.pod),
            cause=self.cause,
            requests=requested(self.pod),
            node=self.node,
            message=self.message,
            evicts=tuple(self.evicts),
            preemption=self.preemption,
            waits_for=self.waits_for,
        )


@final
@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The outcome for a pod that fits nowhere."""

    message: str
    preemption: PreemptionAnswer | None


@final
class FailedAttempts:
    """The outcomes for pods that fit nowhere. They hold for equal pods, too, until the next event.

    State: by the signature of a pod its outcome, and how many events had happened then.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, FailedAttempt]] = {}

    def of(self, pod: Pod, num_events: int) -> FailedAttempt | None:
        """Returns the outcome for an equal pod, if nothing has happened since."""
        known_at, failed = self._known.get(_signature(pod), (-1, None))
        return failed if known_at == num_events else None

    def add(self, pod: Pod, num_events: int, failed: FailedAttempt) -> None:
        """Keeps the outcome for the pod."""
        signature = _signature(pod)
        if signature:
            self._known[signature] = num_events, failed


def _signature(pod: Pod) -> bytes:
    """Returns a text that is equal for pods with equal outcomes; empty for pods whose outcome may differ from all
    others.
    """
    if (
        pod.spec.resource_claims
        or pod.status.nominated_node_name
        or any(volume.ephemeral is not None for volume in pod.spec.volumes)
    ):
        return b""
    return signature_of(pod)

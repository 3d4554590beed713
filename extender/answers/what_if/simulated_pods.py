"""Pods in a simulation: their nodes, the messages of those that fit nowhere, and what those that leave release."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, final

import msgspec

from extender.answers.parts import PodName, Victim, requested
from extender.answers.trial import Trial
from extender.answers.types import Eviction, EvictionLoop, Placement, PreemptionAnswer
from extender.engine import framework as fwk
from extender.engine.runtime.memory import signature_of
from extender.values.objects.extended_resources import SPECIAL_CLAIM_ANNOTATION, special_claim_of
from extender.values.objects.pod import Pod

Why = Literal["preempted", "drained", "node removed", "scaled down", "replaced"]


@final
@dataclass(slots=True)
class RemovedPod:
    """A pod that leaves its node. Its next node is filled in once it is known."""

    eviction: Eviction
    lands_on: str = ""
    message: str = ""

    def as_answer(self) -> Eviction:
        return msgspec.structs.replace(self.eviction, lands_on=self.lands_on, message=self.message)


@final
class RemovedPods:
    """All pods that left, in order. State: these, and which pod last preempted which from which node."""

    def __init__(self) -> None:
        self.all: list[RemovedPod] = []
        self._last_time: dict[tuple[str, str, str], int] = {}
        """(UID of the preemptor, UID of the victim, node) -> place in `all`."""

    def add(self, removed: RemovedPod) -> None:
        eviction = removed.eviction
        if eviction.by is not None:
            self._last_time[eviction.by.uid, eviction.victim.pod.uid, eviction.node] = len(self.all)
        self.all.append(removed)

    def loop(self, pod: Pod, candidate: fwk.Candidate) -> EvictionLoop | None:
        """Returns the loop that would begin again if these victims left for the pod; None if there is none.

        There is a loop if the victims have left the same node for the pod before, and if all pods that have evicted
        others since then were evicted themselves: the cluster is in the same state as before.
        """
        times = [self._last_time.get((pod.uid, victim.uid, candidate.node)) for victim in candidate.victims]
        places = [place for place in times if place is not None]
        since = [removed.eviction for removed in self.all[min(places) :]] if places else []
        preemptor_uids = {eviction.by.uid if eviction.by is not None else "" for eviction in since}
        if not since or preemptor_uids - {eviction.victim.pod.uid for eviction in since} - {pod.uid}:
            return None
        steps = [
            f"{eviction.by.key} evicts {eviction.victim.pod.key} from {eviction.node}"
            for eviction in since
            if eviction.by is not None
        ]
        steps.append(f"{pod.key} would evict {candidate.victims[0].key} from {candidate.node} again")
        pods = {pod.uid: PodName.of(pod)}
        for eviction in since:
            pods.setdefault(eviction.victim.pod.uid, eviction.victim.pod)
        return EvictionLoop(pods=tuple(pods.values()), text=f"{', then '.join(steps)}, and so on forever")


def drop_leftover_claims(trial: Trial, pods: Iterable[Pod]) -> None:
    """Deletes the claims for extended resources that earlier attempts left, as the next attempt would do."""
    claims = trial.cluster.cache.objects.resource_claims.values()
    marked = [claim for claim in claims if SPECIAL_CLAIM_ANNOTATION in claim.metadata.annotations]
    by_owner = {owner.uid: claim for claim in marked for owner in claim.metadata.owner_references}
    for pod in pods:
        leftover = special_claim_of(pod, [by_owner[pod.uid]] if pod.uid in by_owner else [])
        if leftover is not None:
            trial.changed(leftover, None)


@final
@dataclass(slots=True)
class SimulatedPod:
    """A pod that needs a node in a simulation, and its progress.

    Attributes:
        turn: its place among pods that are equal to the queue.
        depth: how many evictions led to its being here.
        removed: its last eviction.
        failed_at: how many events had happened when it fitted nowhere; None while it waits or has a node.
        is_final: whether it is not tried again, whatever happens.
    """

    pod: Pod
    cause: Literal["created", "pending", "evicted"]
    turn: int
    depth: int = 0
    node: str = ""
    message: str = ""
    evicts: list[Victim] = field(default_factory=list)
    preemption: PreemptionAnswer | None = None
    removed: RemovedPod | None = None
    waits_for: tuple[str, ...] = ()
    failed_at: int | None = None
    is_final: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it is still to be tried."""
        return not self.node and self.failed_at is None and not self.is_final

    def as_answer(self) -> Placement:
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


FailedAttempt = tuple[str, PreemptionAnswer | None]
"""The message of a pod that fits nowhere, and whom it could have evicted."""


@final
class FailedAttempts:
    """The outcomes for pods that fit nowhere. They hold for equal pods, too, until the next event.

    State: by the signature of a pod its outcome, and how many events had happened then.
    """

    def __init__(self) -> None:
        self._failures: dict[bytes, tuple[int, FailedAttempt]] = {}

    def get(self, pod: Pod, num_events: int) -> FailedAttempt | None:
        """Returns the outcome for an equal pod, if nothing has happened since."""
        failed_at, failed = self._failures.get(_signature(pod), (-1, None))
        return failed if failed_at == num_events else None

    def add(self, pod: Pod, num_events: int, failed: FailedAttempt) -> None:
        """Keeps the outcome for the pod."""
        if signature := _signature(pod):
            self._failures[signature] = num_events, failed


def _signature(pod: Pod) -> bytes:
    """Returns a text that is equal for pods with equal outcomes; empty for one that may differ from all others."""
    if (
        pod.spec.resource_claims
        or pod.status.nominated_node_name
        or any(volume.ephemeral is not None for volume in pod.spec.volumes)
    ):
        return b""
    return signature_of(pod)

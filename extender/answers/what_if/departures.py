"""Pods that leave a simulated cluster: what they release, which of them are recreated, and which evict each other
forever.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from extender.answers.records.values import PodName, Victim
from extender.answers.types import Eviction, EvictionLoop
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import ResourceClaim, ResourceClaimConsumerReference
from extender.values.objects.extended_resources import SPECIAL_CLAIM_ANNOTATION, special_claim_of
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.pod import Pod, PodStatus

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"

Why = Literal["preempted", "drained", "node removed", "scaled down", "replaced"]


@final
@dataclass(slots=True)
class Departure:
    """A pod that leaves its node. The fields are those of `Eviction`; its next node is filled in once it is known."""

    victim: Victim
    node: str
    why: Why
    by: PodName | None
    returns: bool
    depth: int
    waits_for: tuple[str, ...] = ()
    lands_on: str = ""
    message: str = ""

    def as_answer(self) -> Eviction:
        """Returns the departure as a part of an answer."""
        return Eviction(
            victim=self.victim,
            node=self.node,
            why=self.why,
            by=self.by,
            returns=self.returns,
            lands_on=self.lands_on,
            message=self.message,
            depth=self.depth,
            waits_for=self.waits_for,
        )


@final
class Departures:
    """All departures in the order in which they happen. State: these, and which pod last preempted which from which
    node.
    """

    def __init__(self) -> None:
        self._all: list[Departure] = []
        self._last_time: dict[tuple[str, str, str], int] = {}
        """(UID of the preemptor, UID of the victim, node) -> place in `_all`."""

    def add(self, departure: Departure) -> None:
        if departure.by is not None:
            self._last_time[departure.by.uid, departure.victim.pod.uid, departure.node] = len(self._all)
        self._all.append(departure)

    @property
    def all(self) -> Sequence[Departure]:
        """The departures, the first one first."""
        return self._all

    def loop(self, pod: Pod, candidate: fwk.Candidate) -> EvictionLoop | None:
        """Returns the loop that would begin again if these victims left for the pod; None if there is none.

        There is a loop if the victims have left the same node for the pod before, and if all pods that have evicted
        others since then were evicted themselves: the cluster is in the same state as before.
        """
        times = [self._last_time.get((pod.uid, victim.uid, candidate.node)) for victim in candidate.victims]
        known = [at for at in times if at is not None]
        since = self._all[min(known) :] if known else []
        by = {each.by.uid if each.by is not None else "" for each in since}
        if not since or by - {each.victim.pod.uid for each in since} - {pod.uid}:
            return None
        steps = [
            f"{_key(each.by)} evicts {_key(each.victim.pod)} from {each.node}" for each in since if each.by is not None
        ]
        steps.append(f"{pod.key} would evict {candidate.victims[0].key} from {candidate.node} again")
        return EvictionLoop(pods=tuple(_names(pod, since).values()), text=f"{', then '.join(steps)}, and so on forever")


def _names(pod: Pod, departures: Sequence[Departure]) -> Mapping[str, PodName]:
    """UID -> each pod of the loop once; the preemptor first."""
    names = {pod.uid: PodName.of(pod)}
    for departure in departures:
        names.setdefault(departure.victim.pod.uid, departure.victim.pod)
    return names


def _key(name: PodName) -> str:
    return f"{name.namespace}/{name.name}"


# Which pods are recreated.


def is_recreated(pod: Pod) -> bool:
    """Returns whether a controller recreates the pod on any node. A static pod is recreated by its kubelet only."""
    return any(owner.controller and owner.kind != "Node" for owner in pod.metadata.owner_references)


def belongs_to_node(pod: Pod) -> bool:
    """Returns whether a drain leaves the pod alone: a DaemonSet's pod, or a static pod of the kubelet."""
    return MIRROR_ANNOTATION in pod.annotations or any(
        owner.controller and owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references
    )


def recreated(pod: Pod) -> Pod:
    """Returns the pod as its controller recreates it: the same, without a node. It keeps its UID, so that it can be
    followed.
    """
    claims = pod.status.resource_claim_statuses
    return replaced(
        pod,
        metadata=replaced(pod.metadata, deletion_timestamp=None),
        spec=replaced(pod.spec, node_name=""),
        status=PodStatus(phase="Pending", resource_claim_statuses=claims),
    )


# What they release.


def take_from_budgets(cluster: Cluster, pod: Pod) -> tuple[str, ...]:
    """Counts a disruption against each budget that protects the pod.

    Returns:
        The names of the first budgets that allow no disruption.
    """
    exhausted: list[str] = []
    for budget in list(_protecting(cluster, pod)):
        allowed = budget.status.disruptions_allowed
        if allowed <= 0:
            exhausted.append(budget.metadata.name)
        else:
            cluster.changed(budget, replaced(budget, status=replaced(budget.status, disruptions_allowed=allowed - 1)))
    return tuple(exhausted[: limits.BUDGETS_NAMED])


def give_back_claims(cluster: Cluster, pod: Pod) -> None:
    """Takes the pod off the reservations of its ResourceClaims; a claim without reservations releases its devices. The
    claim for extended resources goes with the pod.
    """
    special = pod.status.extended_resource_claim_status
    if special is not None:
        made = cluster.cache.objects.resource_claims.get((pod.namespace, special.resource_claim_name))
        if made is not None:
            cluster.changed(made, None)
    if not pod.spec.resource_claims:
        return
    for claim in list(cluster.cache.objects.resource_claims.values()):
        kept = [consumer for consumer in claim.status.reserved_for if consumer.uid != pod.uid]
        if len(kept) < len(claim.status.reserved_for):
            cluster.changed(claim, _reserved_for(claim, kept))


def drop_leftover_claims(cluster: Cluster, pods: Iterable[Pod]) -> None:
    """Deletes the claims for extended resources that earlier attempts have left for these pods, as the next attempt
    would do.
    """
    claims = cluster.cache.objects.resource_claims.values()
    marked = [claim for claim in claims if SPECIAL_CLAIM_ANNOTATION in claim.metadata.annotations]
    by_owner = {owner.uid: claim for claim in marked for owner in claim.metadata.owner_references}
    for pod in pods:
        leftover = special_claim_of(pod, [by_owner[pod.uid]] if pod.uid in by_owner else [])
        if leftover is not None:
            cluster.changed(leftover, None)


def _reserved_for(claim: ResourceClaim, consumers: Sequence[ResourceClaimConsumerReference]) -> ResourceClaim:
    allocation = claim.status.allocation if consumers else None
    return replaced(claim, status=replaced(claim.status, reserved_for=consumers, allocation=allocation))


def _protecting(cluster: Cluster, pod: Pod) -> Iterator[PodDisruptionBudget]:
    for budget in cluster.cache.objects.pdbs.values():
        # A pod in `disruptedPods` was counted when its eviction was allowed.
        is_its = (
            budget.metadata.namespace or "default"
        ) == pod.namespace and pod.name not in budget.status.disrupted_pods
        if is_its and selects(budget, pod):
            yield budget


def selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Returns whether the budget's selector matches the labels of the pod as preemption reads it: an empty selector
    protects no pod.
    """
    selector = budget.spec.parsed_selector
    return bool(pod.labels) and not selector.is_empty and selector.matches(pod.labels)

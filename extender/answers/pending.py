"""Pending pods by what keeps them from their nodes, and by the workload that they belong to."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import Final, final

from extender.answers.parts import PodName
from extender.answers.phrases import reasons_in
from extender.answers.types import Answer, Queue, QueuePlace, ReasonCount
from extender.values.objects.resource_names import INSUFFICIENT, TOO_MANY_PODS

FIRST_PODS: Final = 5
"""The number of pods of a workload that are named."""
NOT_TRIED: Final = "not tried yet"
NO_REASON: Final = "no reason is known"
FITS: Final = "it would fit now, but no scheduler has placed it"
NOT_OURS: Final = "another scheduler decides"


@final
class PendingWorkload(Answer, frozen=True, kw_only=True):
    """The pods of one workload that wait for the same reason. Pods that the caller may not see are together, without a
    name.
    """

    namespace: str
    workload: str = ""
    """Kind/name, as in `QueuePlace`; empty for pods that no controller made, which are together."""
    pods: int
    priority: int = 0
    """The highest priority among these pods."""
    since: str | None = None
    """When the first of them began to wait."""
    first: tuple[PodName, ...] = ()
    """The first few that the caller may see, in the order of the queue."""


@final
class PendingReason(Answer, frozen=True, kw_only=True):
    """The pods that wait for one reason."""

    reason: str
    """The reasons of the nodes, in kube-scheduler's words: the resources that are scarce, then the reason of most
    nodes. Names in quotes are left out.
    """
    nodes: tuple[ReasonCount, ...] = ()
    """Each of these reasons, with the most nodes on which it holds for one of the pods."""
    claims: tuple[str, ...] = ()
    """What the claims of the first few wait for."""
    pods: int
    workloads: tuple[PendingWorkload, ...]
    """The workloads of these pods; the one with most of them comes first."""


@final
class PendingResource(Answer, frozen=True, kw_only=True):
    """A resource of which nodes have too little for pending pods."""

    resource: str
    pods: int


@final
class Pending(Answer, frozen=True, kw_only=True):
    """GET /v1/pending: why pods wait, in groups."""

    pods: int
    """All of them; with very many, not all are in a group."""
    reasons: tuple[PendingReason, ...] = ()
    """The groups; the one with most pods comes first."""
    lacking: tuple[PendingResource, ...] = ()
    """The one that most pods lack first, and of equal ones the one that is missing on most nodes."""
    deciding: bool = True
    """False if another scheduler decides: the pods are those without a node then."""


def pending(queue: Queue) -> Pending:
    """Returns the pods of the queue in groups. What the caller may not see is to be left out of the queue before."""
    places: dict[tuple[str, ...], list[QueuePlace]] = defaultdict(list)
    max_nodes: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    lacking: dict[str, list[int]] = defaultdict(list)
    for place in queue.items:
        reasons = _reasons(place)
        key = tuple(sorted(reasons))
        places[key].append(place)
        for reason, nodes in reasons.items():
            max_nodes[key][reason] = max(nodes, max_nodes[key][reason])
            if resource := _resource_in(reason):
                lacking[resource].append(nodes)
    groups = [_group(max_nodes[key], group) for key, group in places.items()]
    scarce = sorted(lacking.items(), key=lambda item: (-len(item[1]), -sum(item[1]), item[0]))
    return Pending(
        pods=max(len(queue.items), sum(queue.counts.values())),
        reasons=tuple(sorted(groups, key=lambda group: (-group.pods, group.reason))),
        lacking=tuple(PendingResource(resource=resource, pods=len(nodes)) for resource, nodes in scarce),
        deciding=queue.deciding,
    )


def _reasons(place: QueuePlace) -> Counter[str]:
    """Returns reason -> nodes; a reason that is not about nodes has none."""
    if place.standing is not None and place.standing.reason:
        return Counter({place.standing.reason: 0})
    if place.gated_by:
        return Counter({f"gated by {place.gated_by}": 0})
    if place.message:
        return reasons_in(place.message)
    if place.refused_by:
        return Counter({f"refused by {', '.join(place.refused_by)}": 0})
    return Counter({NOT_TRIED if place.queue in ("active", "inFlight") else NO_REASON: 0})


def _resource_in(reason: str) -> str:
    """Returns the resource of which there is too little; empty if the reason is another one."""
    if reason == TOO_MANY_PODS:
        return "pods"
    return reason.removeprefix(INSUFFICIENT) if reason.startswith(INSUFFICIENT) else ""


def _group(nodes: Counter[str], places: Sequence[QueuePlace]) -> PendingReason:
    by_workload: dict[tuple[str, str], list[QueuePlace]] = defaultdict(list)
    for place in places:
        by_workload[place.pod.namespace, place.workload].append(place)
    ordered = sorted(nodes.items(), key=lambda item: (not _resource_in(item[0]), -item[1], item[0]))
    workloads = [_workload(*key, members) for key, members in by_workload.items()]
    return PendingReason(
        reason=", ".join(reason for reason, _ in ordered),
        nodes=tuple(ReasonCount(reason=reason, nodes=count) for reason, count in ordered if count),
        claims=tuple(islice((claim for place in places for claim in place.claims), FIRST_PODS)),
        pods=len(places),
        workloads=tuple(sorted(workloads, key=lambda item: (-item.pods, item.namespace, item.workload))),
    )


def _workload(namespace: str, workload: str, places: Sequence[QueuePlace]) -> PendingWorkload:
    return PendingWorkload(
        namespace=namespace,
        workload=workload,
        pods=len(places),
        priority=max(place.pod.priority for place in places),
        since=min(filter(None, map(attrgetter("since"), places)), default=None),
        first=tuple(place.pod for place in places[:FIRST_PODS] if not place.pod.hidden),
    )

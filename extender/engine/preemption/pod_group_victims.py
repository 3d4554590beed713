"""The victims for a pod group as a whole: the pods that have to go from the cluster so that the group fits.

Pods go in units: a pod by itself, or all pods of a group that may only be disrupted as a whole. All units of lower
priority are removed; then they come back one by one, the most important first, as long as the group still fits.

Upstream: pkg/scheduler/framework/preemption/podgrouppreemption.go; types.go, newDomainForWorkloadPreemption.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Protocol, final

import msgspec
import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.preemption.budgets import Disruptions, may_be_victims
from extender.engine.preemption.evaluator import NEVER
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Index, Int64s, Mask
from extender.values.objects.grouping import GroupKey
from extender.values.objects.pod import Pod

NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"
CLUSTER: Final = "cluster"
"""The name of the candidate for evictions anywhere in the cluster."""


class Hypothesis(Protocol):
    """A cluster from which pods can be removed hypothetically."""

    def remove_pod(self, pod: Pod) -> None:
        """Removes a pod from its node."""

    def add_pod(self, pod: Pod) -> None:
        """Puts a pod that was removed back onto its node."""


@final
class VictimUnits(msgspec.Struct, frozen=True):
    """U units of pods that can only go together, in the order in which they are considered for reprieve."""

    snapshot: Snapshot
    slots: Index
    """(C,) pod slots, unit by unit."""
    first: Index
    """(U + 1,) where each unit begins in `slots`, and the length of `slots`. No unit is empty."""
    importance: Index
    """(U,) the rank of each unit: 0 for the most important one."""
    priorities: Int64s
    """(U,) the priority of the pod, or of the group that goes as a whole."""

    def __len__(self) -> int:
        return len(self.importance)

    def pods_of(self, unit: int) -> list[Pod]:
        return [*map(self.snapshot.pod_at, self.slots[self.first[unit] : self.first[unit + 1]].tolist())]

    def take(self, units: Index) -> "VictimUnits":
        """Returns these units, in this order."""
        if len(self.slots) == len(self):  # each unit is one pod
            slots, first = self.slots[units], np.arange(len(units) + 1)
        else:
            lengths = np.diff(self.first)[units]
            first = np.r_[0, np.cumsum(lengths)].astype(np.intp)
            slots = self.slots[np.repeat(self.first[units] - first[:-1], lengths) + np.arange(first[-1])]
        return VictimUnits(self.snapshot, slots, first, self.importance[units], self.priorities[units])

    def candidate(self, evicted: Mask) -> fwk.Candidate:
        """Returns the (U,) evicted units as a candidate for the Executor, the most important first."""
        units = np.flatnonzero(evicted)
        victims = self.take(units[np.argsort(self.importance[units], kind="stable")])
        return fwk.Candidate(CLUSTER, tuple(map(self.snapshot.pod_at, victims.slots.tolist())), 0)


@final
class GroupVictims(msgspec.Struct, frozen=True):
    """The pods to evict; none of them if there is no way."""

    status: fwk.Status
    candidate: fwk.Candidate | None = None
    instead_of: fwk.Candidate | None = None
    """The pods that kube-scheduler would evict; None if they are the same."""
    saving: str = ""
    """The gain over kube-scheduler's choice, in words."""


def why_not_eligible(pods: Iterable[Pod]) -> str:
    """Returns why a group of these members may not preempt; empty if it may."""
    return NEVER if any(pod.spec.preemption_policy == "Never" for pod in pods) else ""


async def reprieve_one_by_one(
    units: VictimUnits,
    cluster: Hypothesis,
    fits: Callable[[], Awaitable[fwk.Status]],
) -> GroupVictims:
    """Returns the victims, found by a trial of the group for each unit. Nothing is evicted.

    `cluster` is a fork, which is changed; `fits` tells whether the group fits it then.
    """
    # Read now: their slots are taken by other pods once the cluster changes.
    in_order = [(units.pods_of(unit), rank) for unit, rank in enumerate(units.importance.tolist())]
    for pods, _ in in_order:
        for pod in pods:
            cluster.remove_pod(pod)
    status = await fits()
    if not status.is_success:
        return GroupVictims(status)
    evicted: list[tuple[int, list[Pod]]] = []
    for pods, rank in in_order:
        for pod in pods:
            cluster.add_pod(pod)
        if not (await fits()).is_success:
            evicted.append((rank, pods))
            for pod in pods:
                cluster.remove_pod(pod)
    victims = tuple(pod for _, pods in sorted(evicted, key=lambda ranked: ranked[0]) for pod in pods)
    return GroupVictims(fwk.SUCCESS, fwk.Candidate(CLUSTER, victims, 0))


def victim_units(
    snapshot: Snapshot, priority: int, members_of: Callable[[GroupKey], Mapping[str, Pod]], grouped: Iterable[str]
) -> VictimUnits:
    """Returns all units of priority below the group's, the most important first.

    They are ordered by priority; groups before single pods; larger groups first; by start time; by the smallest UID of
    a pod. `members_of` are the pods of a group by UID, `grouped` the UIDs of all groups' pods.
    """
    pods = snapshot.pods
    count = len(pods.objects)
    on_nodes, in_group = pods.node[:count] >= 0, np.zeros(count, np.bool_)
    in_group[[slot for uid in grouped if (slot := pods.slots.get(uid)) is not None]] = True
    wholes: list[tuple[Index, int]] = []
    for key, group in snapshot.objects.pod_groups.items():
        if group.goes_as_a_whole:
            member_slots = [
                slot for uid in members_of(key) if (slot := pods.slots.get(uid)) is not None and on_nodes[slot]
            ]
            slots = np.array(sorted(member_slots, key=lambda slot: snapshot.pod_at(slot).uid), np.intp)
            on_nodes[slots] = False
            if len(slots) and group.priority < priority:
                wholes.append((slots, group.priority))
    alone = np.flatnonzero(on_nodes & (pods.priority[:count] < priority))
    slots = np.concatenate([*(slots for slots, _ in wholes), alone])
    lengths = np.ones(len(wholes) + len(alone), np.intp)
    lengths[: len(wholes)] = [len(slots) for slots, _ in wholes]
    first = np.r_[0, np.cumsum(lengths)]
    leaders = slots[first[:-1]]
    priorities, start = pods.priority[leaders], pods.start_time[leaders]
    priorities[: len(wholes)] = [of_group for _, of_group in wholes]
    start[: len(wholes)] = [pods.start_time[slots].min() for slots, _ in wholes]
    uids = np.array(pods.uids, np.str_)[leaders]
    # Negative lengths put groups before single pods, whose key is 0.
    order = np.lexsort((uids, start, np.where(in_group[leaders], -lengths, 0), -priorities))
    rank = np.arange(len(order))
    return replace(VictimUnits(snapshot, slots, first, rank, priorities).take(order), importance=rank)


def without_protected(units: VictimUnits, violates: Mask, preemptor: Pod, rules: fwk.PreemptionRules) -> VictimUnits:
    """Returns units that the rules let this member evict, first those (U,) that violate a budget."""
    if violates.any():
        violating = np.flatnonzero(violates)[: 0 if rules.budgets_are_hard else None]
        units = units.take(np.r_[violating, np.flatnonzero(~violates)])
    if (rules.may_go is None and rules.protects is None) or not len(units):
        return units
    may_go = may_be_victims(units.snapshot, preemptor, units.slots, rules)
    return units.take(np.flatnonzero(np.logical_and.reduceat(may_go, units.first[:-1])))


def violates_budgets(units: VictimUnits) -> Mask:
    """Returns (U,) whether evicting the unit violates a budget if all are evicted, the most important first.

    A pod takes one from every budget that selects it, until one of them is used up: the budgets after that one are not
    asked (filterVictimsWithPDBViolation).
    """
    violates = np.zeros(len(units), np.bool_)
    if not units.snapshot.objects.pdbs or not len(units):
        return violates
    disruptions = Disruptions(units.snapshot, units.slots)
    for unit in np.argsort(units.importance).tolist():
        pods = range(int(units.first[unit]), int(units.first[unit + 1]))
        violates[unit] = any(True for place in pods for _ in disruptions.evict(place))
    return violates

"""The victims for a pod group as a whole: which pods have to go from the cluster, so that the group fits.

Pods go in units: a pod by itself, or all pods of a group that may only be disrupted as a whole. All units of lower priority are removed;
then they come back one by one, the most important first, as long as the group still fits.

Upstream: pkg/scheduler/framework/preemption/podgrouppreemption.go; types.go, newDomainForWorkloadPreemption (v1.36.2).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np

from extender import framework as fwk
from extender.objects.label_selectors import Selector
from extender.objects.pod import Pod
from extender.objects.pod_groups import GroupKey, PodGroup
from extender.preemption.budgets import selector_of_budget
from extender.preemption.evaluator import NEVER
from extender.snapshot import Snapshot

NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"
CLUSTER: Final = "cluster"
"""The name of the place that victims are evicted from."""


class Hypothesis(Protocol):
    """A cluster of which pods can be taken, to see what would be."""

    def remove_pod(self, pod: Pod) -> None:
        """Removes a pod from its node."""

    def add_pod(self, pod: Pod) -> None:
        """Puts a pod that was removed back onto its node."""


@final
@dataclass(frozen=True, slots=True)
class VictimUnit:
    """Pods that can only go together."""

    pods: tuple[Pod, ...]
    priority: int
    is_of_group: bool
    """Whether the first pod is in a group, be it disrupted as a whole or not."""
    start_time: int
    """When the first of them started, in seconds since 1970."""

    @property
    def importance(self) -> tuple[int, ...]:
        """A sort key: the most important unit has the least. Upstream: moreImportantVictim."""
        size = -len(self.pods) if self.is_of_group else 0
        return -self.priority, not self.is_of_group, size, self.start_time


@final
@dataclass(frozen=True, slots=True)
class GroupVictims:
    """The units to evict, the most important first; none of them if there is no way."""

    status: fwk.Status
    units: tuple[VictimUnit, ...] = ()

    @property
    def candidate(self) -> fwk.Candidate:
        """The victims as the Executor takes them."""
        return fwk.Candidate(CLUSTER, tuple(pod for unit in self.units for pod in unit.pods), 0)


async def select_victims(
    group: PodGroup,
    pods: Iterable[Pod],
    units: Sequence[VictimUnit],
    cluster: Hypothesis,
    snapshot: Snapshot,
    fits: Callable[[], Awaitable[fwk.Status]],
) -> GroupVictims:
    """Returns the units that have to go for the group. Nothing is evicted.

    Arguments:
        pods: the members of the group.
        units: all units of lower priority.
        cluster: a cluster of its own, which is changed.
        snapshot: for the budgets.
        fits: whether the group fits the cluster as it is then.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return GroupVictims(fwk.unschedulable(NEVER))
    if not units:
        return GroupVictims(fwk.unresolvable(NO_VICTIMS))
    for unit in units:
        for pod in unit.pods:
            cluster.remove_pod(pod)
    status = await fits()
    if not status.is_success:
        return GroupVictims(status)
    gone: list[VictimUnit] = []
    for unit in in_order_of_reprieve(units, snapshot):
        for pod in unit.pods:
            cluster.add_pod(pod)
        if not (await fits()).is_success:
            for pod in unit.pods:
                cluster.remove_pod(pod)
            gone.append(unit)
    return GroupVictims(fwk.SUCCESS, tuple(sorted(gone, key=lambda unit: unit.importance)))


def victim_units(snapshot: Snapshot, priority: int, members_of: Callable[[GroupKey], Mapping[str, Pod]]) -> list[VictimUnit]:
    """Returns all units of lower priority, in the order of nodes.

    Arguments:
        priority: that of the preempting group.
        members_of: the pods of a group by UID.
    """
    pods = snapshot.pods
    on_nodes = pods.node[: len(pods.objects)] >= 0
    units: list[VictimUnit] = []
    for key, group in snapshot.objects.pod_groups.items():
        if not group.goes_as_a_whole:
            continue
        slots = np.array([slot for uid in members_of(key) if (slot := pods.slots.get(uid)) is not None and on_nodes[slot]], np.intp)
        on_nodes[slots] = False
        if len(slots) and group.priority < priority:
            in_order = slots[np.lexsort((pods.position[slots], pods.node[slots]))].tolist()
            units.append(_unit(snapshot, in_order, group.priority))
    alone = np.flatnonzero(on_nodes & (pods.priority[: len(on_nodes)] < priority))
    alone = alone[np.lexsort((pods.position[alone], pods.node[alone]))]
    return units + [_unit(snapshot, [slot], int(pods.priority[slot])) for slot in alone.tolist()]


def _unit(snapshot: Snapshot, slots: Sequence[int], priority: int) -> VictimUnit:
    pods = tuple(snapshot.pod_at(slot) for slot in slots)
    start = int(snapshot.pods.start_time[list(slots)].min())
    return VictimUnit(pods, priority, pods[0].spec.scheduling_group is not None, start)


def in_order_of_reprieve(units: Sequence[VictimUnit], snapshot: Snapshot) -> list[VictimUnit]:
    """Returns the units whose eviction violates a budget, then the others; of each kind the most important first.

    A pod takes one from every budget that selects it, until one of them is used up: the budgets after that one are not asked.

    Upstream: filterVictimsWithPDBViolation.
    """
    in_order = sorted(units, key=lambda unit: unit.importance)
    budgets = [
        _Budget(
            budget.metadata.namespace or "default", selector, frozenset(budget.status.disrupted_pods), budget.status.disruptions_allowed
        )
        for budget in snapshot.objects.pdbs.values()
        if (selector := selector_of_budget(budget)) is not None
    ]
    if not budgets:
        return in_order
    violating = [_violates(unit, budgets) for unit in in_order]
    return [unit for wanted in (True, False) for unit, violates in zip(in_order, violating, strict=True) if violates is wanted]


@final
@dataclass(slots=True)
class _Budget:
    namespace: str
    selector: Selector
    disrupted: frozenset[str]
    allowed: int


def _violates(unit: VictimUnit, budgets: Sequence[_Budget]) -> bool:
    for pod in unit.pods:
        for budget in budgets:
            if (
                pod.labels
                and budget.namespace == pod.namespace
                and pod.name not in budget.disrupted
                and budget.selector.matches(pod.labels)
            ):
                budget.allowed -= 1
                if budget.allowed < 0:
                    return True
    return False

"""The dry run: victims on every promising node, all nodes in step.

Upstream looks at one node at a time; here every node is a row. All pods of lower priority leave all rows at once; then the most important
victim of each row comes back where the pod still fits, then the second, and so on. The rows do not know of each other, so the outcome is
that of asking them one by one.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode (v1.36.2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.objects.preemption_messages import NO_VICTIMS
from extender.preemption.budgets import by_importance, violating
from extender.snapshot import PodChanges, Rows, Snapshot
from extender.snapshot.axes import Index, Mask

IsEligible = Callable[[Pod], bool]
"""Whether a pod of lower priority may be a victim."""


@final
@dataclass(frozen=True, slots=True)
class DryRun:
    """Where making room works, and why not where it does not."""

    candidates: fwk.Candidates
    """The nodes that work. Those without victims fit as they are, and are not among them."""
    statuses: dict[str, fwk.Status]
    """Node name -> why it does not work."""
    fits_as_is: tuple[str, ...]
    """Nodes on which all pods could stay."""


@final
@dataclass(frozen=True, slots=True)
class _Victims:
    """Possible victims, row by row, in the order in which they are reprieved."""

    slots: Index
    row: Index
    violates: Mask


def dry_run(state: fwk.CycleState, pod: Pod, nodes: Index, is_eligible: IsEligible | None = None) -> DryRun:
    """Find the victims on each of these nodes.

    Arguments:
        nodes: (B,) places on axis N.
        is_eligible: which pods of lower priority may go; None for all.
    """
    snapshot = state.snapshot
    slots, row = lower_priority_pods(snapshot, pod, nodes, is_eligible)
    has_victims = np.zeros(len(nodes), np.bool_)
    has_victims[row] = True
    statuses = dict.fromkeys((_name(snapshot, node) for node in nodes[~has_victims].tolist()), fwk.unresolvable(NO_VICTIMS))

    # 1 all pods of lower priority leave
    nodes = nodes[has_victims]
    row = (np.cumsum(has_victims) - 1)[row]
    without = Rows.of(snapshot, nodes).changed(PodChanges(row, slots, np.full(len(slots), -1)))
    verdicts = state.run_filters_with_nominated_pods(without)
    refused = np.flatnonzero(~verdicts.ok).tolist()
    statuses |= {_name(snapshot, int(nodes[at])): verdicts.status_of(at) for at in refused}

    # 2 where the pod fits now, the most important ones come back first, those with a budget before the others
    fits = verdicts.ok
    nodes, rows = nodes[fits], without.take(fits)
    kept = fits[row]
    slots, row = slots[kept], (np.cumsum(fits) - 1)[row[kept]]
    victims = _in_order_of_reprieve(snapshot, slots, row)
    reprieved = reprieve(state, rows, victims.slots, victims.row)

    candidates, fitting = _candidates(snapshot, nodes, victims, reprieved)
    return DryRun(candidates, statuses, tuple(_name(snapshot, node) for node in fitting.tolist()))


def lower_priority_pods(snapshot: Snapshot, pod: Pod, nodes: Index, is_eligible: IsEligible | None = None) -> tuple[Index, Index]:
    """(C,) slots and (C,) rows of the pods that may have to go, row by row, most important first."""
    pods = snapshot.pods
    row_at = np.full(len(snapshot.nodes) + 1, -1, np.intp)  # the last place answers for pods that are nowhere (-1)
    row_at[nodes] = np.arange(len(nodes))
    lower = np.flatnonzero(pods.priority < pod.priority)
    row = row_at[pods.node[lower]]
    slots, row = lower[row >= 0], row[row >= 0]
    if is_eligible is not None:
        eligible = np.fromiter((is_eligible(snapshot.pod_at(slot)) for slot in slots.tolist()), np.bool_, len(slots))
        slots, row = slots[eligible], row[eligible]
    order = by_importance(snapshot, slots, row)
    return slots[order], row[order]


def _in_order_of_reprieve(snapshot: Snapshot, slots: Index, row: Index) -> _Victims:
    violates = violating(snapshot, slots, row)
    if violates.any():
        # Violating ones first: each that may stay lowers the node's count of violations.
        order = np.lexsort((~violates, row))
        slots, row, violates = slots[order], row[order], violates[order]
    return _Victims(slots, row, violates)


def reprieve(state: fwk.CycleState, rows: Rows, slots: Index, row: Index) -> Mask:
    """(C,) which of the pods that left may come back: in round k, the k-th of every row that has one.

    Arguments:
        rows: R hypothetical nodes without those pods; `pod` fits each of them.
        slots: (C,) pod slots, row by row, in the order in which they are asked.
        row: (C,) their rows, ascending.
    """
    reprieved = np.zeros(len(slots), np.bool_)
    counts = np.bincount(row, minlength=len(rows))
    first = np.cumsum(counts) - counts
    for turn in range(int(counts.max(initial=0))):
        asked = np.flatnonzero(counts > turn)
        at = first[asked] + turn
        come_back = PodChanges(asked, slots[at], np.ones(len(at), np.int64), one_a_row=True)
        trial = rows.changed(come_back)
        fits = state.run_filters_with_nominated_pods(_only(trial, asked), again=True).ok
        reprieved[at] = fits
        if fits.all():
            rows = trial
        elif fits.any():
            rows = rows.changed(PodChanges(asked[fits], come_back.pod[fits], come_back.sign[fits], one_a_row=True))
    return reprieved


def _only(rows: Rows, asked: Index) -> Rows:
    return rows if len(asked) == len(rows) else rows.take(asked)


def _candidates(snapshot: Snapshot, nodes: Index, victims: _Victims, reprieved: Mask) -> tuple[fwk.Candidates, Index]:
    """The candidates, and the nodes on which nobody had to go."""
    gone = ~reprieved
    slots, row, violates = victims.slots[gone], victims.row[gone], victims.violates[gone]
    counts = np.bincount(row, minlength=len(nodes))
    violations = np.bincount(row[violates], minlength=len(nodes))
    # Full ties keep the violating ones first, as a stable sort of the reprieve order does.
    pods = snapshot.pods
    order = np.lexsort((~violates, pods.start_time[slots], -pods.priority[slots], row))
    has_victims = counts > 0
    first = np.r_[0, np.cumsum(counts[has_victims])].astype(np.intp)
    candidates = fwk.Candidates(snapshot, nodes[has_victims], slots[order], first, violations[has_victims].astype(np.int64))
    return candidates, nodes[~has_victims]


def _name(snapshot: Snapshot, node: int) -> str:
    return snapshot.nodes.objects[node].name

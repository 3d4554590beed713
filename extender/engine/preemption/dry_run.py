"""The dry run: the victims on every potential node, computed for all nodes in step.

Upstream looks at one node at a time; here every node is a row. All pods of lower priority are removed from all rows at
once. Then the most important victim of each row is reprieved where the pod still fits with it, then the second, and so
on. Rows do not depend on each other, so the outcome is the same as node by node.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode.
"""

from typing import final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.preemption.budgets import lower_priority_pods, violating
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.values.objects.grouping import NO_VICTIMS, NOT_HELPFUL
from extender.values.objects.pod import Pod


@final
class DryRun(msgspec.Struct, frozen=True):
    """The nodes on which preemption works, and the reasons why it fails on others."""

    candidates: fwk.Candidates
    """The nodes on which it works. Nodes that need no victims are not candidates."""
    statuses: fwk.NodeStatuses
    """The reasons why preemption fails on nodes; on nodes that were not tried it is not helpful."""
    fits_as_is: tuple[str, ...]
    """Nodes on which all pods could stay. Something other than a Filter refused the pod there, such as an extender."""


def dry_run(state: fwk.CycleState, pod: Pod, nodes: Index, rules: fwk.PreemptionRules) -> DryRun:
    """Returns the victims on each of these (B,) nodes."""
    snapshot = state.snapshot
    slots, row = lower_priority_pods(snapshot, pod, nodes, rules)
    if not len(slots) and not rules.takes_free_nodes:
        statuses = _of_one_kind(snapshot, nodes, fwk.unresolvable(NO_VICTIMS))
        return DryRun(fwk.Candidates.of(snapshot, (), rules), statuses, ())
    has_victims = np.full(len(nodes), rules.takes_free_nodes)
    # `row` names a row once for each victim; assigning through it marks every row that has any.
    has_victims[row] = True
    statuses = _of_one_kind(snapshot, nodes[~has_victims], fwk.unresolvable(NO_VICTIMS))

    # 1 remove all pods of lower priority, and keep the nodes on which the pod fits then
    nodes = nodes[has_victims]
    row = (np.cumsum(has_victims) - 1)[row]  # the rows are renumbered without the nodes that have no victims
    emptied = without_pods(Rows.of(snapshot, nodes), row, slots)
    verdicts = state.run_filters_with_nominated_pods(emptied)
    refused = np.flatnonzero(~verdicts.ok)
    statuses = statuses.joined(
        fwk.NodeStatuses.at(
            snapshot.nodes.objects, nodes[refused], *verdicts.distinct_statuses(refused), statuses.absent
        )
    )

    # 2 reprieve victims: first those whose eviction violates a budget, and of each kind the most important first
    fits = verdicts.ok
    nodes, rows = nodes[fits], emptied.take(fits)
    on_fitting = fits[row]
    # As above: the number of rows that fit up to and with this one, less one, is its place among them.
    slots, row = slots[on_fitting], (np.cumsum(fits) - 1)[row[on_fitting]]
    slots, row, violates = _in_order_of_reprieve(snapshot, slots, row, rules)
    is_victim = ~reprieve(state, rows, slots, row)

    candidates, fitting = candidates_by_row(
        snapshot, nodes, slots[is_victim], row[is_victim], violates[is_victim], rules
    )
    statuses = statuses.joined(_of_one_kind(snapshot, fitting, fwk.unresolvable(NO_VICTIMS)))
    if rules.too_costly is not None and len(candidates):
        allowed = np.ones(len(candidates), np.bool_)
        for reason, mask in rules.too_costly(candidates):
            statuses = statuses.joined(
                _of_one_kind(snapshot, candidates.node[mask & allowed], fwk.unschedulable(reason))
            )
            allowed &= ~mask
        candidates = candidates.take(np.flatnonzero(allowed))
    return DryRun(candidates, statuses, tuple(Rows.of(snapshot, fitting).names))


def _of_one_kind(snapshot: Snapshot, nodes: Index, status: fwk.Status) -> fwk.NodeStatuses:
    distinct, which = [status] if len(nodes) else [], np.zeros(len(nodes), np.intp)
    return fwk.NodeStatuses.at(snapshot.nodes.objects, nodes, distinct, which, fwk.unresolvable(NOT_HELPFUL))


def _in_order_of_reprieve(
    snapshot: Snapshot, slots: Index, row: Index, rules: fwk.PreemptionRules
) -> tuple[Index, Index, Mask]:
    violates = violating(snapshot, slots, row, rules)
    if violates.any():
        # Violating pods come first: each one that is reprieved lowers the node's count of violations.
        # The last key sorts first: by row, and within it False before True. lexsort is stable, so that the order by
        # importance stays within both parts.
        order = np.lexsort((~violates, row))
        slots, row, violates = slots[order], row[order], violates[order]
    return slots, row, violates


def without_pods(rows: Rows, row: Index, slots: Index) -> Rows:
    """Returns the rows without (C,) pods that are on these rows."""
    return rows.changed(PodChanges(row, slots, np.full(len(slots), -1)))


def with_one_each(rows: Rows, row: Index, slots: Index) -> Rows:
    """Returns the rows with (C,) pods more on these rows, which are distinct."""
    return rows.changed(PodChanges(row, slots, np.ones(len(slots), np.int64), rows_are_distinct=True))


def reprieve(state: fwk.CycleState, rows: Rows, slots: Index, row: Index) -> Mask:
    """Returns (C,) the removed pods that may stay: in round k, the k-th of every row comes back where it still fits.

    Arguments:
        rows: R hypothetical nodes without those pods; the cycle's pod fits each of them.
        slots, row: (C,) pods and their rows, ascending; in each row in the order in which they are tried.
    """
    reprieved = np.zeros(len(slots), np.bool_)
    counts = np.bincount(row, minlength=len(rows))
    # Where the victims of each row begin, which holds because they come row by row.
    first = np.cumsum(counts) - counts
    for turn in range(int(counts.max(initial=0))):
        tried_rows = np.flatnonzero(counts > turn)
        places = first[tried_rows] + turn
        trial = with_one_each(rows, tried_rows, slots[places])
        fits = state.run_filters_with_nominated_pods(
            trial if len(tried_rows) == len(trial) else trial.take(tried_rows), only_pods_changed=True
        ).ok
        reprieved[places] = fits
        if fits.all():
            # Every row keeps what was tried in it: what the trial made of the rows need not be made again.
            rows = trial
        elif fits.any():
            rows = with_one_each(rows, tried_rows[fits], slots[places[fits]])
    return reprieved


def candidates_by_row(
    snapshot: Snapshot, nodes: Index, slots: Index, row: Index, violates: Mask, rules: fwk.PreemptionRules
) -> tuple[fwk.Candidates, Index]:
    """Returns the candidates, and the nodes that need no victims; the victims are by row, then by importance."""
    counts = np.bincount(row, minlength=len(nodes))
    violations = np.bincount(row[violates], minlength=len(nodes))
    order = rules.as_listed(snapshot, slots, row, violates)
    has_victims = counts > 0
    # The victims of candidate i are slots[first[i]:first[i + 1]]; hence one entry more than there are candidates.
    first = np.r_[0, np.cumsum(counts[has_victims])].astype(np.intp)
    candidates = fwk.Candidates(
        snapshot, nodes[has_victims], slots[order], first, violations[has_victims].astype(np.int64), rules
    )
    return candidates, nodes[~has_victims]

"""Adds one or two other pods to the caller's victims of a preemption where these do not suffice.

An extender knows of resources that kube-scheduler does not, such as cards. A victim that kube-scheduler named often
shares a card with very few others. The general search keeps the most important pods, whoever was named, and so may
evict three pods where two will do.
"""

from typing import NamedTuple, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.preemption.budgets import violating
from extender.engine.preemption.costs import better_on_each_node
from extender.engine.preemption.dry_run import candidates_by_row, reprieve
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.values import limits


@final
class RowVictims(NamedTuple):
    """(C,) slots of pods, and the (C,) rows that they are removed from, ascending."""

    slots: Index
    row: Index

    def where(self, chosen: Mask | Index) -> "RowVictims":
        return RowVictims(self.slots[chosen], self.row[chosen])

    def joined(self, joining: "RowVictims") -> "RowVictims":
        return RowVictims(np.r_[self.slots, joining.slots], np.r_[self.row, joining.row])

    @property
    def removed(self) -> PodChanges:
        return PodChanges(self.row, self.slots, np.full(len(self.slots), -1))

    def by_importance(self, snapshot: Snapshot, rules: fwk.PreemptionRules) -> "RowVictims":
        return self.where(rules.by_importance(snapshot, *self))

    def in_order_of_reprieve(self, snapshot: Snapshot, caller_slots: Index, rules: fwk.PreemptionRules) -> "RowVictims":
        """Returns them row by row: pods that the caller did not name come before those it named, those that violate a
        budget before others, then by importance.
        """
        ordered = self.by_importance(snapshot, rules)
        # The last key of lexsort comes first; it is stable, so that importance decides what the keys leave open.
        keys = ~violating(snapshot, *ordered, rules), np.isin(ordered.slots, caller_slots), ordered.row
        return ordered.where(np.lexsort(keys))

    def candidates(self, snapshot: Snapshot, nodes: Index, rules: fwk.PreemptionRules) -> fwk.Candidates:
        ordered = self.by_importance(snapshot, rules)
        return candidates_by_row(snapshot, nodes, *ordered, violating(snapshot, *ordered, rules), rules)[0]

    def of_rows(self, chosen: Index, num_rows: int) -> "RowVictims":
        """Returns the victims of the chosen rows, which are numbered in this order, and may be chosen several times."""
        counts = np.bincount(self.row, minlength=num_rows)
        first, many = (np.cumsum(counts) - counts)[chosen], counts[chosen]
        begins = np.cumsum(many) - many
        # Each one's place is that of the first of its row, and its position within the row.
        places = np.repeat(first - begins, many) + np.arange(many.sum())
        return RowVictims(self.slots[places], np.repeat(np.arange(len(chosen)), many))


def with_few_others(
    cycle: Cycle,
    nodes: Index,
    caller_victims: RowVictims,
    lower: RowVictims,
    general_victims: RowVictims,
    rules: fwk.PreemptionRules,
) -> RowVictims:
    """Returns for each of (T,) nodes the best victims by the rules' criteria: those of the general search, or the
    caller's with one other of the `lower` pods; with two others where no single one suffices.

    A bounded number of sets is tried: those of the least important pods of each node.
    """
    snapshot = cycle.snapshot
    caller_victims, other_victims = (
        caller_victims.in_order_of_reprieve(snapshot, caller_victims.slots, rules),
        lower.where(~np.isin(lower.slots, caller_victims.slots)),
    )
    without_named = Rows.of(snapshot, nodes).changed(caller_victims.removed)
    best, is_open = general_victims.candidates(snapshot, nodes, rules), np.ones(len(nodes), np.bool_)
    for size in (1, 2):
        sets, row = _sets(other_victims.where(is_open[other_victims.row]), size, len(nodes), len(caller_victims.slots))
        trial = without_named.take(row).changed(_victims_of(sets).removed)
        fits = cycle.run_filters_with_nominated_pods(trial).ok
        sets, row, trial = sets[fits], row[fits], trial.take(fits)
        is_open[row] = False
        of_sets = caller_victims.of_rows(row, len(nodes))
        # A profile without preemption cannot tell which of the caller's need not go.
        if cycle.framework.plugins.post_filter:
            of_sets = of_sets.where(~reprieve(cycle, trial, *of_sets))
        victims = _victims_of(sets).joined(of_sets)
        # What comes first is taken of equal ones.
        best = better_on_each_node(victims.candidates(snapshot, nodes[row], rules).joined(best))
    row_at = np.full(len(snapshot.nodes), -1, np.intp)
    row_at[nodes] = np.arange(len(nodes))
    return RowVictims(best.slots, np.repeat(row_at[best.node], np.diff(best.first)))


def _sets(other_victims: RowVictims, size: int, num_rows: int, num_named: int) -> tuple[Index, Index]:
    """Returns (S, size) slots and (S,) rows of sets of extra pods, the least important ones first."""
    # What a set costs is the number of its victims: the named ones are removed, and tried one by one, in each.
    share = limits.VICTIMS_TRIED // (num_rows * size + num_named)
    sets, row = [np.zeros((0, size), np.intp)], [np.zeros(0, np.intp)]
    # So many pods that their pairs do not exceed the share.
    max_pods = share if size == 1 else int((1 + (1 + 8 * share) ** 0.5) / 2)
    rows, first = np.unique(other_victims.row, return_index=True)
    for row_number, slots in zip(rows.tolist(), np.split(other_victims.slots, first[1:]), strict=False):
        candidates = slots[::-1][:max_pods]
        chosen = candidates[:, np.newaxis] if size == 1 else candidates[np.array(np.triu_indices(len(candidates), 1)).T]
        sets.append(chosen)
        row.append(np.full(len(chosen), row_number))
    return np.concatenate(sets), np.concatenate(row)


def _victims_of(sets: Index) -> RowVictims:
    return RowVictims(sets.ravel(), np.repeat(np.arange(len(sets)), sets.shape[1]))

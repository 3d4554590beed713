"""The victims for a group of equal pods that depend on nothing but their node, found without a trial for each unit.

The number of such pods that fit a node does not depend on other nodes, and the group gets as many nodes as the sum of
these numbers. So a unit of victims may stay if the room that is left on all nodes is still enough. All nodes are looked
at in step, as in `dry_run`: in each turn the next unit of every node comes back.

The outcome is that of `reprieve_one_by_one`; see docs/decisions/0014-pod-groups.md.
"""

from typing import final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.preemption.budgets import rows_by_place
from extender.engine.preemption.dry_run import with_one_each, without_pods
from extender.engine.preemption.pod_group_victims import VictimUnits
from extender.engine.snapshot import PodChanges, Rows
from extender.engine.snapshot.axes import Index, Int64s, Mask


@final
class EqualMembers(msgspec.Struct, frozen=True):
    """A group of equal pods, for the search for room."""

    state: fwk.CycleState
    """The cycle of one of them, whose PreFilter has run. Its Filters look at nothing but a node and the pods on it."""
    slot: int
    """The slot of that pod."""
    count: int
    """The number of pods that are to be placed."""
    needed: int
    """The number of them that must get a node."""

    def room(self, rows: Rows, bound: Int64s, *, is_first: bool = False) -> Int64s:
        """Returns (R,) the number of members that fit each row, at most `bound`: the fewer pods, the more fit.

        `is_first` is False if the nodes were asked before, with fewer pods, and did not refuse.
        """
        low, high = np.zeros(len(rows), np.int64), bound.copy()
        probe = high.copy()
        while (open_ := np.flatnonzero(low < high)).size:
            fits = self.fit(_rows_at(rows, open_), probe[open_], is_first=is_first)
            low[open_[fits]] = probe[open_[fits]]
            high[open_[~fits]] = probe[open_[~fits]] - 1
            probe = (low + high + 1) // 2
        return low

    def fit(self, rows: Rows, count: Int64s, *, is_first: bool = False) -> Mask:
        """Returns (R,) whether `count` members fit each row."""
        shared = np.flatnonzero(count > 1)
        placed = PodChanges(shared, np.full(len(shared), self.slot), count[shared] - 1, rows_are_distinct=True)
        return self.state.run_filters_with_nominated_pods(rows.changed(placed), only_pods_changed=not is_first).ok


def _rows_at(rows: Rows, places: Index) -> Rows:
    """Returns the rows at these places, which are different and ascend. Taking all would copy every column."""
    return rows if len(places) == len(rows) else rows.take(places)


@final
class Room:
    """R nodes with the units that have come back. State: the members that fit each node, and the surplus."""

    def __init__(self, members: EqualMembers, units: VictimUnits, nodes: Index) -> None:
        """Takes (R,) the places of nodes that are in play, and changes nothing yet; see `clear`."""
        snapshot = units.snapshot
        self._members = members
        self._row_of_slot = rows_by_place(snapshot, nodes)[snapshot.pods.node[units.slots]]
        self._units = units
        self._rows = Rows.of(snapshot, nodes)
        self._fits = np.zeros(len(nodes), np.int64)
        self.spare = -members.needed
        """The surplus of members that fit over those needed; negative if too few fit."""

    def clear(self) -> None:
        on_row = self._row_of_slot >= 0
        self._rows = without_pods(self._rows, self._row_of_slot[on_row], self._units.slots[on_row])
        self._fits = self._members.room(self._rows, np.full(len(self._rows), self._members.count), is_first=True)
        self.spare = int(self._fits.sum()) - self._members.needed

    # Units that come back.

    def reprieve(self) -> Mask:
        """Returns (U,) the units that have to go."""
        units = self._units
        stays = np.zeros(len(units), np.bool_)
        rows = self._row_of_slot
        is_single = np.diff(units.first) == 1
        is_elsewhere = rows[units.first[:-1]] < 0
        stays[is_single & is_elsewhere] = True  # no member could get such a node
        begin = 0
        # Units of several pods may be on several nodes, which makes those nodes depend on each other: what comes before
        # is settled first.
        for unit in [*np.flatnonzero(~is_single).tolist(), len(units)]:
            singles = np.arange(begin, unit)
            self._reprieve_singles(singles[~is_elsewhere[begin:unit]], stays)
            if unit < len(units):
                stays[unit] = self._reprieve_whole(unit)
            begin = unit + 1
        return ~stays

    def _reprieve_whole(self, unit: int) -> bool:
        place = slice(self._units.first[unit], self._units.first[unit + 1])
        row, slots = self._row_of_slot[place], self._units.slots[place]
        row, slots = row[row >= 0], slots[row >= 0]
        touched = np.unique(row)
        trial = self._rows.changed(PodChanges(row, slots, np.ones(len(row), np.int64)))
        new_fits = self._members.room(trial.take(touched), self._fits[touched])
        cost = int((self._fits[touched] - new_fits).sum())
        if cost > self.spare:
            return False
        self._rows, self.spare = trial, self.spare - cost
        self._fits[touched] = new_fits
        return True

    def _reprieve_singles(self, units: Index, stays: Mask) -> None:
        """Lets (S,) units of a single pod come back in order, and marks in (U,) those that stay."""
        if not len(units):
            return
        row, slots = self._row_of_slot[self._units.first[units]], self._units.slots[self._units.first[units]]
        queue = _Queues(row, len(self._rows))
        if self.spare > 0:
            stays[units[: self._come_back_freely(row, slots, queue)]] = True
        self._come_back_if_possible(units, slots, queue, stays)

    def _come_back_freely(self, row: Index, slots: Index, queue: "_Queues") -> int:
        """Lets the first units come back, up to one that costs more than the spare room; returns their number."""
        costs = np.zeros(len(row), np.int64)
        rows, fits = self._rows, self._fits.copy()
        turn = queue.next.copy()
        while len(active := np.flatnonzero(turn < queue.end)):
            chosen = queue.order[turn[active]]
            rows = with_one_each(rows, active, slots[chosen])
            new_fits = self._members.room(_rows_at(rows, active), fits[active])
            costs[chosen] = fits[active] - new_fits
            fits[active] = new_fits
            turn[active] += 1
        total = np.cumsum(costs)
        count = int(np.searchsorted(total, self.spare, side="right"))
        self._rows = self._rows.changed(PodChanges(row[:count], slots[:count], np.ones(count, np.int64)))
        self._fits -= np.bincount(row[:count], weights=costs[:count], minlength=len(self._fits)).astype(np.int64)
        self.spare -= int(total[count - 1]) if count else 0
        queue.next += np.bincount(row[:count], minlength=len(queue.next))
        return count

    def _come_back_if_possible(self, units: Index, slots: Index, queue: "_Queues", stays: Mask) -> None:
        """Lets further units come back where that costs no room, or, in their order, no more than the spare room."""
        waits = np.zeros(len(queue.next), np.int64)  # the cost of the unit at which a row waits; 0 where it does not
        while True:
            while len(active := np.flatnonzero((queue.next < queue.end) & (waits == 0))):
                chosen = queue.order[queue.next[active]]
                trial = with_one_each(self._rows, active, slots[chosen])
                cost = self._fits[active] - self._members.room(_rows_at(trial, active), self._fits[active])
                free = cost == 0
                if free.any():
                    self._rows = with_one_each(self._rows, active[free], slots[chosen[free]])
                    stays[units[chosen[free]]] = True
                waits[active[(cost > 0) & (cost <= self.spare)]] = cost[(cost > 0) & (cost <= self.spare)]
                queue.next[active[waits[active] == 0]] += 1
            waiting = np.flatnonzero(waits)
            if not len(waiting):
                return
            first = int(waiting[np.argmin(queue.order[queue.next[waiting]])])
            chosen_one = queue.order[queue.next[first]]
            self._rows = with_one_each(self._rows, np.array([first]), slots[[chosen_one]])
            stays[units[chosen_one]] = True
            self._fits[first] -= waits[first]
            self.spare -= int(waits[first])
            queue.next[first] += 1
            waits[first] = 0
            over = np.flatnonzero(waits > self.spare)
            queue.next[over] += 1
            waits[over] = 0


@final
class _Queues:
    """For each row the places of its units, in order, and the one whose turn is next."""

    def __init__(self, row: Index, num_rows: int) -> None:
        self.order: Index = np.argsort(row, kind="stable")
        counts = np.bincount(row, minlength=num_rows)
        self.end: Index = np.cumsum(counts)
        self.next: Index = self.end - counts

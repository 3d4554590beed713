"""The fewest victims for a pod group that asks for them by its annotation `reprieve.dev/minimal-victims`.

kube-scheduler keeps the most important pods, and so evicts ten where one would have been enough. Here the fewest units
go, and of equally few those with the lowest sum of priorities. A unit whose eviction violates a budget goes only if
kube-scheduler would evict it, too. The search begins with kube-scheduler's victims, improves them while there is time,
and ends once nothing can be better.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final, NamedTuple, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.preemption.budgets import rows_by_place, terminating
from extender.engine.preemption.dry_run import with_one_each, without_pods
from extender.engine.preemption.pod_group_room import EqualMembers
from extender.engine.preemption.pod_group_victims import Hypothesis, VictimUnits
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Floats, Index, Int64s, Mask
from extender.values import limits
from extender.values.golang.quoting import quoted
from extender.values.golang.times import Duration, DurationError
from extender.values.objects.grouping import PodGroup
from extender.values.objects.pod import Pod

ANNOTATION: Final = "reprieve.dev/minimal-victims"
"""On a PodGroup: `true` or `false`, or the duration of the search, such as `200ms`."""
USUAL_SECONDS: Final = 0.5
_LARGEST_COST: Final = 1 << 61
_SUBSETS: Final = 2_000
"""The number of sets of victims on one node that are tried together."""


def seconds_to_search(group: PodGroup) -> float:
    """Returns the seconds to search for fewer victims for the group; 0 if it does not ask for it."""
    return _asked(group) or 0.0


def why_ignored(group: PodGroup) -> str:
    """Returns a message that the group's annotation is ignored, and why; empty if it is valid, or absent."""
    if _asked(group) is not None:
        return ""
    value = group.metadata.annotations[ANNOTATION]
    text = quoted(value if len(value) <= limits.DURATION_CHARACTERS else f"{value[: limits.DURATION_CHARACTERS]}...")
    return f"the annotation {ANNOTATION} is ignored: {text} is neither true nor false nor a duration such as 200ms"


def _asked(group: PodGroup) -> float | None:
    text = group.metadata.annotations.get(ANNOTATION, "false")
    if text in ("true", "false"):
        return USUAL_SECONDS if text == "true" else 0.0
    if len(text) > limits.DURATION_CHARACTERS:
        return None
    try:
        seconds = Duration.parse(text).seconds
    except DurationError:
        return None
    return min(seconds, limits.SECONDS_TO_SEARCH) if seconds >= 0.0 else None


@final
class UnitCosts(msgspec.Struct, frozen=True):
    """The costs of evicting units: first their number counts, then the sum of their priorities."""

    of_unit: Int64s
    """(U,) the cost of each unit. The cost of several is the sum."""
    cheapest: int
    """The lowest cost of a unit."""
    may_go: Index
    """The units among which the search chooses."""
    fixed: Mask
    """(U,) units that go in any case."""
    limit: int
    """The cost of kube-scheduler's choice, without the fixed units."""

    @staticmethod
    def of(units: VictimUnits, violates: Mask, chosen: Mask) -> "UnitCosts | None":
        """Returns the costs of U units, given kube-scheduler's choice and the units that violate a budget. It is None
        if the numbers are too large to be added, or there is nothing to choose.
        """
        # Victims of an earlier search that are still leaving make their room in any case: nobody has to go besides.
        leaves: Mask = np.logical_and.reduceat(terminating(units.snapshot)[units.slots], units.first[:-1])
        may_go, ours = np.flatnonzero(~violates & ~leaves), np.flatnonzero(chosen & ~violates & ~leaves)
        above = units.priorities - units.priorities.min()
        one = int(above.max()) * len(ours) + 1
        if len(ours) == 0 or (one + int(above.max())) * len(ours) > _LARGEST_COST:
            return None
        of_unit = above + one
        return UnitCosts(of_unit, one, may_go, (chosen & violates) | leaves, int(of_unit[ours].sum()))

    def with_fixed(self, units: Sequence[int]) -> Mask:
        """Returns (U,) these units and the fixed ones."""
        evicted = self.fixed.copy()
        evicted[np.asarray(units, np.intp)] = True
        return evicted


def saving(units: VictimUnits, evicted: Mask, upstream: Mask) -> str:
    """Returns in words the gain of evicting these units instead of kube-scheduler's."""
    ours, theirs = int(evicted.sum()), int(upstream.sum())
    lower = " of higher priority" if ours == theirs else ""
    return (
        f"fewest victims: {_counted(units, evicted)} instead of {_counted(units, upstream)}{lower} that kube-scheduler "
        "would evict"
    )


def _counted(units: VictimUnits, evicted: Mask) -> str:
    number, pods = int(evicted.sum()), int(np.diff(units.first)[evicted].sum())
    if number == pods:
        return "1 pod" if pods == 1 else f"{pods} pods"
    return f"1 group of {pods} pods" if number == 1 else f"{number} groups and pods ({pods} pods)"


async def fewest_by_trials(
    pods: Sequence[Sequence[Pod]],
    costs: UnitCosts,
    cluster: Hypothesis,
    fits: Callable[[], Awaitable[fwk.Status]],
    is_over: Callable[[], bool],
) -> Mask | None:
    """Returns (U,) the cheapest victims found by trials of the group, if better than kube-scheduler's choice.

    `cluster` is a fork, which is changed; `fits` tells whether the group fits it then, `is_over` whether time is up.
    """
    for unit in np.flatnonzero(costs.fixed).tolist():
        for pod in pods[unit]:
            cluster.remove_pod(pod)
    cheapest_first = costs.may_go[np.argsort(costs.of_unit[costs.may_go], kind="stable")].tolist()
    best, limit = None, costs.limit
    for size in range(1, limit // costs.cheapest + 1):
        for subset in combinations(cheapest_first, size):
            if is_over():
                return best
            cost = int(costs.of_unit[list(subset)].sum())
            if cost >= limit:
                continue
            going = [pod for unit in subset for pod in pods[unit]]
            for pod in going:
                cluster.remove_pod(pod)
            status = await fits()
            for pod in going:
                cluster.add_pod(pod)
            if status.is_success:
                best, limit = costs.with_fixed(subset), cost
        if best is not None:
            return best
    return best


class _Option(NamedTuple):
    """Units of one node that make room for some more members there."""

    cost: int
    units: tuple[int, ...]


_Options = dict[int, _Option]
"""The number of further members that fit a node -> the cheapest units for it."""


@final
class FewestVictims:
    """The search for equal members: their needs of each node in a table by number. State: the best choice."""

    def __init__(
        self, members: EqualMembers, units: VictimUnits, costs: UnitCosts, nodes: Index, is_over: Callable[[], bool]
    ) -> None:
        """Takes (R,) the places of nodes that are in play, and a function that tells whether time is up."""
        self._members = members
        self._units = units
        self._costs = costs
        self._is_over = is_over
        self._best: tuple[int, ...] | None = None
        self._limit = costs.limit
        """A better choice costs less than this."""
        snapshot = units.snapshot
        self._row_at = rows_by_place(snapshot, nodes)
        self._rows = Rows.of(snapshot, nodes)
        is_single = np.diff(units.first)[costs.may_go] == 1
        self._wholes: list[int] = costs.may_go[~is_single].tolist()
        self._singles = costs.may_go[is_single]

    def search(self) -> Mask | None:
        """Returns (U,) the cheapest victims that were found; None if nothing is better than kube-scheduler's choice."""
        everything = self._without(self._rows, np.arange(len(self._units)))
        bound = self._members.room(everything, np.full(len(self._rows), self._members.count), is_first=True)
        row = self._rows_of(self._singles)
        self._singles = self._singles[(row >= 0) & (bound[row] > 0)]
        rows = self._without(self._rows, np.flatnonzero(self._costs.fixed))
        fits = self._room_of(rows, np.flatnonzero(bound), bound)
        by_row = self._options(rows, fits, self._singles)
        for is_thorough in (False, True):
            if is_thorough:
                self._try_all_subsets(rows, fits, self._singles, by_row)
            for wholes in self._sets_of_wholes():
                if wholes and self._is_over():
                    break
                self._with_wholes(wholes, rows, fits, bound, by_row, is_thorough=is_thorough)
        return None if self._best is None else self._costs.with_fixed(self._best)

    def _sets_of_wholes(self) -> Iterator[tuple[int, ...]]:
        for size in range(len(self._wholes) + 1):
            if size * self._costs.cheapest >= self._limit:
                return
            yield from combinations(self._wholes, size)

    def _with_wholes(
        self,
        wholes: tuple[int, ...],
        rows: Rows,
        fits: Int64s,
        bound: Int64s,
        by_row: dict[int, _Options],
        *,
        is_thorough: bool,
    ) -> None:
        cost = int(self._costs.of_unit[list(wholes)].sum())
        if cost >= self._limit:
            return
        if wholes:
            rows, evicted = self._without(rows, np.array(wholes)), self._units.take(np.array(wholes))
            touched = np.unique(self._row_at[self._units.snapshot.pods.node[evicted.slots]])
            touched = touched[(touched >= 0) & (bound[touched] > 0)]
            fits = fits.copy()
            fits[touched] = self._room_of(rows, touched, bound)[touched]
            singles = self._singles[np.isin(self._rows_of(self._singles), touched)]
            new_options = self._options(rows, fits, singles)
            if is_thorough:
                self._try_all_subsets(rows, fits, singles, new_options)
            by_row = {row: options for row, options in by_row.items() if row not in touched} | new_options
        shortage = self._members.needed - int(fits.sum())
        chosen = () if shortage <= 0 else self._cheapest(by_row, shortage, self._limit - cost)
        if chosen is not None:
            self._best = (*wholes, *chosen)
            self._limit = int(self._costs.of_unit[list(self._best)].sum())

    # Rows.

    def _rows_of(self, singles: Index) -> Index:
        """Returns the row of each of these units; -1 where it is on a node that is not in play."""
        return self._row_at[self._units.snapshot.pods.node[self._units.slots[self._units.first[singles]]]]

    def _without(self, rows: Rows, units: Index) -> Rows:
        slots = self._units.take(units).slots
        row = self._row_at[self._units.snapshot.pods.node[slots]]
        on_row = row >= 0
        return without_pods(rows, row[on_row], slots[on_row])

    def _room_of(self, rows: Rows, index: Index, bound: Int64s) -> Int64s:
        """Returns (R,) the number of members that fit these rows; 0 for the others."""
        fits = np.zeros(len(rows), np.int64)
        fits[index] = self._members.room(rows.take(index), bound[index])
        return fits

    # The options of each node by itself.

    def _options(self, rows: Rows, fits: Int64s, singles: Index) -> dict[int, _Options]:
        """Returns row -> its cheapest units for each number of further members."""
        index = np.flatnonzero(np.bincount(self._rows_of(singles)))
        options: dict[int, _Options] = {row: {} for row in index.tolist()}
        if not options:
            return options
        shortage = max(self._members.needed - int(fits.sum()), 0)
        removed = self._without(rows, singles)
        max_gain = (
            self._members.room(removed.take(index), np.minimum(fits[index] + shortage, self._members.count))
            - fits[index]
        )
        # Small ones come back first, so that as many as possible stay; or the dearest, as with kube-scheduler.
        dearest, row = -self._costs.of_unit[singles], self._rows_of(singles)
        firsts = (self._shares(singles), np.zeros(len(singles)))
        orders = [singles[np.lexsort((dearest, first, row))] for first in firsts]
        for gain in range(1, int(max_gain.max(initial=0)) + 1):
            for in_order in orders:
                able = index[max_gain >= gain]
                self._put_back(
                    removed, able, in_order[np.isin(self._rows_of(in_order), able)], fits[able] + gain, gain, options
                )
        return options

    def _shares(self, singles: Index) -> Floats:
        """Returns the largest share of each unit in what a member requests of a resource."""
        requests = self._units.snapshot.pods.requests
        member, unit_requests = requests[self._members.slot], requests[self._units.slots[self._units.first[singles]]]
        is_requested = member > 0
        shares: Floats = (unit_requests[:, is_requested] / member[is_requested]).max(axis=1, initial=0.0)
        return shares

    def _put_back(
        self,
        removed: Rows,
        index: Index,
        in_order: Index,
        target: Int64s,
        gain: int,
        options: dict[int, _Options],
    ) -> None:
        """Lets units come back where enough members fit all the same, in step on all rows, and notes the others.

        Arguments:
            removed, index: the rows without the units, and (A,) their places, ascending.
            in_order: the units of these rows, row by row, in the order in which they come back.
            target, gain: (A,) the members that have to fit each row, and the difference to those that fit before.
        """
        _, first, lengths = np.unique(self._rows_of(in_order), return_index=True, return_counts=True)
        trial, goes = removed.take(index), np.zeros((len(index), int(lengths.max())), np.bool_)
        for step in range(goes.shape[1]):
            if self._is_over():
                return
            active = np.flatnonzero(lengths > step)
            slots = self._units.slots[self._units.first[in_order[first[active] + step]]]
            stays = self._members.fit(with_one_each(trial, active, slots).take(active), target[active])
            goes[active, step] = ~stays
            trial = with_one_each(trial, active[stays], slots[stays])
        for place, row in enumerate(index.tolist()):
            self._note(options[row], gain, in_order[first[place] + np.flatnonzero(goes[place])])

    def _try_all_subsets(self, rows: Rows, fits: Int64s, singles: Index, by_row: dict[int, _Options]) -> None:
        """Tries all sets of units of each row that could be cheaper than its options."""
        if not len(singles):
            return
        row_of_single = self._rows_of(singles)
        order = np.argsort(row_of_single, kind="stable")
        distinct_rows, first = np.unique(row_of_single[order], return_index=True)
        for row, units in zip(distinct_rows.tolist(), np.split(singles[order], first[1:]), strict=True):
            if self._is_over():
                return
            self._try_subsets(rows, int(fits[row]), row, units, by_row[row])

    def _try_subsets(self, rows: Rows, fits: int, row: int, singles: Index, options: _Options) -> None:
        for size in range(1, len(singles)):
            if not options or size * self._costs.cheapest > max(option.cost for option in options.values()):
                return
            sets = combinations(singles.tolist(), size)
            while subsets := list(islice(sets, _SUBSETS)):
                if self._is_over():
                    return
                slots = self._units.slots[self._units.first[np.array(subsets, np.intp).ravel()]]
                copies = rows.take(np.full(len(subsets), row, np.intp))
                trial = without_pods(copies, np.repeat(np.arange(len(subsets)), size), slots)
                room = self._members.room(trial, np.full(len(subsets), fits + max(options)))
                for place in np.flatnonzero(room > fits).tolist():
                    self._note(options, int(room[place]) - fits, np.array(subsets[place], np.intp))

    def _note(self, options: _Options, gain: int, units: Index) -> None:
        cost = int(self._costs.of_unit[units].sum())
        if gain not in options or cost < options[gain].cost:
            options[gain] = _Option(cost, tuple(units.tolist()))

    # All nodes together.

    def _cheapest(self, by_row: dict[int, _Options], shortage: int, limit: int) -> tuple[int, ...] | None:
        """Returns the cheapest units that make room for `shortage` members; None if they are not below the limit."""
        useful_rows: set[int] = set()
        for gain in {gain for options in by_row.values() for gain in options}:
            # Not more nodes than missing members are needed, so that only the cheapest of them matter.
            having = [row for row, options in by_row.items() if gain in options]
            useful_rows |= {*sorted(having, key=lambda row: by_row[row][gain].cost)[:shortage]}
        rows = sorted(useful_rows)
        costs = np.full(shortage + 1, limit, np.int64)  # of room for at least so many members
        costs[0] = 0
        gains = np.zeros((len(rows), shortage + 1), np.int64)
        for place, row in enumerate(rows):
            before = costs
            for gain, option in by_row[row].items():
                shift = min(gain, shortage)
                with_it = option.cost + np.r_[np.zeros(shift, np.int64), before[: shortage + 1 - shift]]
                better = with_it < costs
                costs = np.where(better, with_it, costs)
                gains[place, better] = gain
        if costs[shortage] >= limit:
            return None
        units: list[int] = []
        for place in range(len(rows) - 1, -1, -1):
            gain = int(gains[place, shortage])
            if gain:
                units += by_row[rows[place]][gain].units
                shortage = max(shortage - gain, 0)
        return tuple(units)

"""The fewest victims for a pod group that asks for them by its annotation `reprieve.dev/minimal-victims`.

kube-scheduler keeps the most important pods, and so evicts ten where one would have been enough. Here the fewest units
go, and of equally few those with the lowest sum of priorities. A unit whose eviction violates a budget goes only if
kube-scheduler would evict it, too. The search begins with kube-scheduler's victims, gets better for as long as there is
time, and ends earlier once nothing can be better.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Final, NamedTuple, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.preemption.budgets import terminating
from extender.engine.preemption.pod_group_room import EqualMembers
from extender.engine.preemption.pod_group_victims import Hypothesis, VictimUnits
from extender.engine.snapshot import PodChanges, Rows
from extender.engine.snapshot.axes import Floats, Index, Int64s, Mask
from extender.values import limits
from extender.values.golang.quoting import quoted
from extender.values.golang.times import Duration, DurationError
from extender.values.objects.grouping import PodGroup
from extender.values.objects.pod import Pod

ANNOTATION: Final = "reprieve.dev/minimal-victims"
"""On a PodGroup: `true` or `false`, or how long to search, such as `200ms`."""
USUAL_SECONDS: Final = 0.5
_LARGEST_COST: Final = 1 << 61
_SUBSETS: Final = 2_000
"""As many sets of victims on one node are looked at together."""


def seconds_to_search(group: PodGroup) -> float:
    """Returns how long to search for fewer victims for the group; 0 if it does not ask for it."""
    return _asked(group) or 0.0


def why_ignored(group: PodGroup) -> str:
    """Returns that the group's annotation is ignored, and why; empty if it is valid, or absent."""
    if _asked(group) is not None:
        return ""
    value = group.metadata.annotations[ANNOTATION]
    shown = quoted(value if len(value) <= limits.DURATION_CHARACTERS else f"{value[: limits.DURATION_CHARACTERS]}...")
    return f"the annotation {ANNOTATION} is ignored: {shown} is neither true nor false nor a duration such as 200ms"


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
@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What it costs to evict units: first their number counts, then the sum of their priorities."""

    of_unit: Int64s
    """(U,) the cost of each unit. The cost of several is the sum."""
    least: int
    """No unit costs less."""
    may_go: Index
    """The units among which the search chooses."""
    fixed: Mask
    """(U,) units that go in any case."""
    limit: int
    """The cost of kube-scheduler's choice, without the fixed units."""

    @staticmethod
    def of(units: VictimUnits, violates: Mask, chosen: Mask) -> "UnitCosts | None":
        """Returns the costs of U units, with kube-scheduler's choice and which violate a budget.

        It is None if the numbers are too large to be added, or nothing is left to be chosen.
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
        gone = self.fixed.copy()
        gone[np.asarray(units, np.intp)] = True
        return gone


def saving(units: VictimUnits, gone: Mask, upstream: Mask) -> str:
    """Returns in words what is gained by evicting these units and not those that kube-scheduler would."""
    ours, theirs = int(gone.sum()), int(upstream.sum())
    lower = " of higher priority" if ours == theirs else ""
    return (
        f"fewest victims: {_counted(units, gone)} instead of {_counted(units, upstream)}{lower} that kube-scheduler "
        "would evict"
    )


def _counted(units: VictimUnits, gone: Mask) -> str:
    number, pods = int(gone.sum()), int(np.diff(units.first)[gone].sum())
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

    `cluster` is a fork, which is changed; `fits` tells whether the group fits it then, `is_over` whether the time is
    over.
    """
    for unit in np.flatnonzero(costs.fixed).tolist():
        for pod in pods[unit]:
            cluster.remove_pod(pod)
    cheapest_first = costs.may_go[np.argsort(costs.of_unit[costs.may_go], kind="stable")].tolist()
    best, limit = None, costs.limit
    for size in range(1, limit // costs.least + 1):
        for tried in combinations(cheapest_first, size):
            if is_over():
                return best
            cost = int(costs.of_unit[list(tried)].sum())
            if cost >= limit:
                continue
            for unit in tried:
                for pod in pods[unit]:
                    cluster.remove_pod(pod)
            status = await fits()
            for unit in tried:
                for pod in pods[unit]:
                    cluster.add_pod(pod)
            if status.is_success:
                best, limit = costs.with_fixed(tried), cost
        if best is not None:
            return best
    return best


class _Option(NamedTuple):
    """Units of one node that make room for some more members there."""

    cost: int
    units: tuple[int, ...]


_Options = dict[int, _Option]
"""How many more members fit a node -> the cheapest units for that."""


@final
class FewestVictims:
    """The search for equal members: their needs of each node in a table by number. State: the best choice."""

    def __init__(
        self, members: EqualMembers, units: VictimUnits, costs: UnitCosts, nodes: Index, is_over: Callable[[], bool]
    ) -> None:
        """Takes (R,) the places of nodes that are in play, and what tells whether the time is over."""
        self._members = members
        self._units = units
        self._costs = costs
        self._is_over = is_over
        self._best: tuple[int, ...] | None = None
        self._limit = costs.limit
        """What a better choice must cost less than."""
        snapshot = units.snapshot
        self._row_at = np.full(len(snapshot.nodes) + 1, -1, np.intp)
        self._row_at[nodes] = np.arange(len(nodes))
        self._rows = Rows.of(snapshot, nodes)
        is_single = np.diff(units.first)[costs.may_go] == 1
        self._wholes: list[int] = costs.may_go[~is_single].tolist()
        self._singles = costs.may_go[is_single]

    def search(self) -> Mask | None:
        """Returns (U,) the cheapest victims that were found; None if nothing is better than kube-scheduler's choice."""
        everything = self._without(self._rows, np.arange(len(self._units)))
        most = self._members.room(everything, np.full(len(self._rows), self._members.count), is_first=True)
        row = self._rows_of(self._singles)
        self._singles = self._singles[(row >= 0) & (most[row] > 0)]
        rows = self._without(self._rows, np.flatnonzero(self._costs.fixed))
        fits = self._room_of(rows, np.flatnonzero(most), most)
        by_row = self._options(rows, fits, self._singles)
        for is_thorough in (False, True):
            if is_thorough:
                self._try_all_subsets(rows, fits, self._singles, by_row)
            for wholes in self._sets_of_wholes():
                if wholes and self._is_over():
                    break
                self._with_wholes(wholes, rows, fits, most, by_row, is_thorough=is_thorough)
        return None if self._best is None else self._costs.with_fixed(self._best)

    def _sets_of_wholes(self) -> Iterator[tuple[int, ...]]:
        for size in range(len(self._wholes) + 1):
            if size * self._costs.least >= self._limit:
                return
            yield from combinations(self._wholes, size)

    def _with_wholes(
        self,
        wholes: tuple[int, ...],
        rows: Rows,
        fits: Int64s,
        most: Int64s,
        by_row: dict[int, _Options],
        *,
        is_thorough: bool,
    ) -> None:
        cost = int(self._costs.of_unit[list(wholes)].sum())
        if cost >= self._limit:
            return
        if wholes:
            rows, gone = self._without(rows, np.array(wholes)), self._units.take(np.array(wholes))
            touched = np.unique(self._row_at[self._units.snapshot.pods.node[gone.slots]])
            touched = touched[(touched >= 0) & (most[touched] > 0)]
            fits = fits.copy()
            fits[touched] = self._room_of(rows, touched, most)[touched]
            singles = self._singles[np.isin(self._rows_of(self._singles), touched)]
            again = self._options(rows, fits, singles)
            if is_thorough:
                self._try_all_subsets(rows, fits, singles, again)
            by_row = {row: options for row, options in by_row.items() if row not in touched} | again
        missing = self._members.needed - int(fits.sum())
        chosen = () if missing <= 0 else self._cheapest(by_row, missing, self._limit - cost)
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
        here = row >= 0
        return rows.changed(PodChanges(row[here], slots[here], np.full(int(here.sum()), -1)))

    def _room_of(self, rows: Rows, at: Index, most: Int64s) -> Int64s:
        """Returns (R,) how many members fit these rows; 0 for the others."""
        fits = np.zeros(len(rows), np.int64)
        fits[at] = self._members.room(rows.take(at), most[at])
        return fits

    # The options of each node by itself.

    def _options(self, rows: Rows, fits: Int64s, singles: Index) -> dict[int, _Options]:
        """Returns for each row of these units the cheapest found for each number of further members."""
        at = np.flatnonzero(np.bincount(self._rows_of(singles)))
        found: dict[int, _Options] = {row: {} for row in at.tolist()}
        if not found:
            return found
        missing = max(self._members.needed - int(fits.sum()), 0)
        removed = self._without(rows, singles)
        most = self._members.room(removed.take(at), np.minimum(fits[at] + missing, self._members.count)) - fits[at]
        # Small ones come back first, so that as many as possible stay; or the dearest, as with kube-scheduler.
        dearest, row = -self._costs.of_unit[singles], self._rows_of(singles)
        firsts = (self._shares(singles), np.zeros(len(singles)))
        orders = [singles[np.lexsort((dearest, first, row))] for first in firsts]
        for gain in range(1, int(most.max(initial=0)) + 1):
            for in_order in orders:
                able = at[most >= gain]
                self._put_back(
                    removed, able, in_order[np.isin(self._rows_of(in_order), able)], fits[able] + gain, gain, found
                )
        return found

    def _shares(self, singles: Index) -> Floats:
        """Returns the largest share of each unit in what a member requests of a resource."""
        requests = self._units.snapshot.pods.requests
        member, own = requests[self._members.slot], requests[self._units.slots[self._units.first[singles]]]
        wanted = member > 0
        shares: Floats = (own[:, wanted] / member[wanted]).max(axis=1, initial=0.0)
        return shares

    def _put_back(
        self, removed: Rows, at: Index, in_order: Index, target: Int64s, gain: int, found: dict[int, _Options]
    ) -> None:
        """Lets units come back where enough members fit all the same, in step on all rows, and notes the others.

        Arguments:
            removed, at: the rows without the units, and (A,) which, ascending.
            in_order: the units of these rows, row by row, in the order in which they come back.
            target, gain: (A,) how many members have to fit each row, and how many more that is than fit as it was.
        """
        _, first, lengths = np.unique(self._rows_of(in_order), return_index=True, return_counts=True)
        trial, goes = removed.take(at), np.zeros((len(at), int(lengths.max())), np.bool_)
        for step in range(goes.shape[1]):
            if self._is_over():
                return
            tried = np.flatnonzero(lengths > step)
            slots = self._units.slots[self._units.first[in_order[first[tried] + step]]]
            with_it = trial.changed(PodChanges(tried, slots, np.ones(len(tried), np.int64), rows_are_distinct=True))
            stays = self._members.fit(with_it.take(tried), target[tried])
            goes[tried, step] = ~stays
            trial = trial.changed(
                PodChanges(tried[stays], slots[stays], np.ones(int(stays.sum()), np.int64), rows_are_distinct=True)
            )
        for place, row in enumerate(at.tolist()):
            self._note(found[row], gain, in_order[first[place] + np.flatnonzero(goes[place])])

    def _try_all_subsets(self, rows: Rows, fits: Int64s, singles: Index, by_row: dict[int, _Options]) -> None:
        """Looks at all sets of units of each row that could be cheaper than what was found for it."""
        if not len(singles):
            return
        row_of_single = self._rows_of(singles)
        order = np.argsort(row_of_single, kind="stable")
        at, first = np.unique(row_of_single[order], return_index=True)
        for row, units in zip(at.tolist(), np.split(singles[order], first[1:]), strict=True):
            if self._is_over():
                return
            self._try_subsets(rows, int(fits[row]), row, units, by_row[row])

    def _try_subsets(self, rows: Rows, fits: int, row: int, singles: Index, options: _Options) -> None:
        for size in range(1, len(singles)):
            if not options or size * self._costs.least > max(option.cost for option in options.values()):
                return
            sets = combinations(singles.tolist(), size)
            while some := list(islice(sets, _SUBSETS)):
                if self._is_over():
                    return
                gone = self._units.slots[self._units.first[np.array(some, np.intp).ravel()]]
                removed = PodChanges(np.repeat(np.arange(len(some)), size), gone, np.full(len(gone), -1))
                trial = rows.take(np.full(len(some), row, np.intp)).changed(removed)
                room = self._members.room(trial, np.full(len(some), fits + max(options)))
                for place in np.flatnonzero(room > fits).tolist():
                    self._note(options, int(room[place]) - fits, np.array(some[place], np.intp))

    def _note(self, options: _Options, gain: int, units: Index) -> None:
        cost = int(self._costs.of_unit[units].sum())
        if gain not in options or cost < options[gain].cost:
            options[gain] = _Option(cost, tuple(units.tolist()))

    # All nodes together.

    def _cheapest(self, by_row: dict[int, _Options], missing: int, limit: int) -> tuple[int, ...] | None:
        """Returns the cheapest units that make room for so many members; None if they are not below the limit."""
        kept: set[int] = set()
        for gain in {gain for options in by_row.values() for gain in options}:
            # Not more nodes than missing members are needed, so that only the cheapest of them matter.
            having = [row for row, options in by_row.items() if gain in options]
            kept |= {*sorted(having, key=lambda row: by_row[row][gain].cost)[:missing]}
        rows = sorted(kept)
        costs = np.full(missing + 1, limit, np.int64)  # of room for at least so many members
        costs[0] = 0
        taken = np.zeros((len(rows), missing + 1), np.int64)
        for place, row in enumerate(rows):
            before = costs
            for gain, option in by_row[row].items():
                shift = min(gain, missing)
                with_it = option.cost + np.r_[np.zeros(shift, np.int64), before[: missing + 1 - shift]]
                better = with_it < costs
                costs = np.where(better, with_it, costs)
                taken[place, better] = gain
        if costs[missing] >= limit:
            return None
        units: list[int] = []
        for place in range(len(rows) - 1, -1, -1):
            gain = int(taken[place, missing])
            if gain:
                units += by_row[rows[place]][gain].units
                missing = max(missing - gain, 0)
        return tuple(units)

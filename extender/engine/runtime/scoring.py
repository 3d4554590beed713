"""Scores of feasible rows: raw, normalised, weighted, summed; and the ranking, which chooses the best.

In a large cluster every pass over all nodes takes its time, and most of it goes into moving memory. Totals are
therefore as narrow as the weights allow, and nodes that are not feasible stay in the arrays, as zeros, instead of being
taken out of each.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunScorePlugins.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender.engine import framework as fwk
from extender.engine.framework.interface import LabelScorePlugin
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Index, Int64s
from extender.engine.snapshot.columns import LabelScores
from extender.values.objects.pod import Pod

Totals = npt.NDArray[np.signedinteger]
"""Sums of weighted scores, of the type that `type_of_totals` returns."""

FEW_ROWS: Final = 8192
"""In up to this many rows the best ones are listed, which takes as long as counting them."""


def type_of_totals(weights: Iterable[int]) -> type[np.signedinteger]:
    """Returns the narrowest type for sums of scores of 0 to 100 with these weights, and one more."""
    highest = fwk.MAX_NODE_SCORE * sum(weights) + 1
    return next((kind for kind in (np.int16, np.int32) if highest <= np.iinfo(kind).max), np.int64)


@final
class Ranking(msgspec.Struct, frozen=True):
    """R feasible rows with their total scores."""

    rows: Rows
    scores: Totals
    """(R,) the scores, less `common`; or (N,) the same plus one, and 0 for nodes that are no rows."""
    is_over_nodes: bool = False
    """True if the scores are (N,)."""
    common: int = 0
    """A summand of every row's score."""

    @property
    def total(self) -> Int64s:
        """(R,) the scores, as a new array."""
        if not self.is_over_nodes:
            return self.scores.astype(np.int64) + self.common
        # Taken first, widened then: R may be much smaller than N. The one is what marks feasible nodes, see
        # `RankedParts.ranking`.
        return self.scores.take(self.rows.node).astype(np.int64) + (self.common - 1)

    def best(self, rng: random.Random) -> int:
        """Returns the place on axis N of the row with the highest score; of a random one when several tie."""
        chosen = select_host(self.scores, rng)
        # Nodes that are not feasible hold 0 and rows at least 1, so that the highest of all N is a row, and ties are
        # among rows.
        return chosen if self.is_over_nodes else int(self.rows.node[chosen])


def select_host(total: Totals, rng: random.Random) -> int:
    """Returns the row with the highest total; a random one of them when several tie."""
    highest = int(total.argmax())
    is_best = total == total[highest, ...]
    # One draw, however many tie, and of a rank instead of a place: nodes that are not feasible make no difference to
    # it.
    if len(total) <= FEW_ROWS:
        best = is_best.nonzero()[0]
        return best.item(rng.randrange(len(best))) if len(best) > 1 else highest
    num_best = int(np.count_nonzero(is_best))
    if num_best == 1:
        return highest
    nth = rng.randrange(num_best)
    # The halves without it are dropped, so that in a large cluster the places of all equals are never listed.
    first, end = 0, len(is_best)
    while end - first > FEW_ROWS:
        middle = (first + end) // 2
        before = int(np.count_nonzero(is_best[first:middle]))
        if nth < before:
            end = middle
        else:
            nth, first = nth - before, middle
    return first + int(is_best[first:end].nonzero()[0][nth])


@final
class WeightedScorer(msgspec.Struct, frozen=True):
    """A Score plugin of a profile and its weight."""

    name: str
    plugin: fwk.ScorePlugin
    weight: int

    @property
    def normalizes(self) -> bool:
        """Whether the plugin overrides `normalize_score`; without it, its scores are on 0..100 as they are."""
        return type(self.plugin).normalize_score is not fwk.ScorePlugin.normalize_score


@final
class Scores(msgspec.Struct, frozen=True):
    """The scores of R rows."""

    raw: dict[str, Int64s]
    """Plugin -> (R,) its scores before normalising."""
    weighted: dict[str, Int64s]
    """Plugin -> (R,) its scores normalised to 0..100 and multiplied by the weight."""
    total: Int64s
    """(R,) the sum."""
    weights: dict[str, int]

    @staticmethod
    def of(parts: Sequence[tuple[WeightedScorer, Int64s, Int64s]], num_rows: int) -> "Scores":
        """Returns the scores of R rows by plugin, each (R,) before normalising and (R,) weighted."""
        total = np.zeros(num_rows, np.int64)
        for _, _, weighted in parts:
            total += weighted
        return Scores(
            {scorer.name: raw for scorer, raw, _ in parts},
            {scorer.name: weighted for scorer, _, weighted in parts},
            total,
            {scorer.name: scorer.weight for scorer, _, _ in parts},
        )


Part = tuple[WeightedScorer, Callable[[Rows, Index], tuple[Int64s, Int64s]]]
"""A scorer, and a function that returns the scores of some rows, before normalising and weighted, given these rows and
their places among all rows.
"""


@final
class RankedParts:
    """Collects the parts of scorers in the totals of a decision."""

    def __init__(self, kind: type[np.signedinteger], common: int) -> None:
        """Begins with a summand of all rows."""
        self.parts: list[Part] = []
        self.kind: Final = kind
        self._common = common
        self._per_row: list[Totals] = []

    def add_common(self, scorer: WeightedScorer, raw: int, weighted: int) -> None:
        """Adds scores that are the same for all rows."""
        self._common += weighted
        # The parts are asked for only when somebody wants the scores of single plugins, and then for few rows; hence
        # functions instead of arrays.
        self.parts.append((scorer, lambda few, _: (np.full(len(few), raw), np.full(len(few), weighted))))

    def add(self, scorer: WeightedScorer, raw: Int64s, weighted: Totals) -> None:
        """Adds one score for each row, (R,) before normalising and (R,) weighted."""
        # The narrow type is wide enough: the totals, not only this part, were bounded when it was chosen.
        self._per_row.append(weighted.astype(self.kind, copy=False))
        self.parts.append((scorer, lambda _, places: (raw[places], weighted[places].astype(np.int64))))

    def add_by_label(self, scorer: WeightedScorer, raw: LabelScores, weighted: Totals, at_nodes: Totals) -> None:
        """Adds the score of each node by its value of a label, (V + 1,) and (N,) weighted; the rows are all nodes."""
        column, by_value = raw
        self._per_row.append(at_nodes)
        self.parts.append(
            (scorer, lambda few, _: (few.of_values(column, by_value), few.of_values(column, weighted.astype(np.int64))))
        )

    def ranking(self, rows: Rows, per_node: Totals) -> Ranking:
        """Returns the rows with their totals, to which the collected parts are added."""
        # Scores of single rows are (R,), and so are the totals then.
        mask = None if self._per_row else rows.mask
        scores = per_node if mask is not None or rows.is_all else per_node.take(rows.node)
        for added in self._per_row:
            scores = scores + added
        if mask is not None:
            # A feasible node with a total of 0 must still beat a node that is not feasible. `type_of_totals` leaves
            # room for the one, and `Ranking.total` takes it away again.
            scores = scores + 1
            scores *= mask
        return Ranking(rows, scores, mask is not None, self._common)


@final
class Choice(msgspec.Struct, frozen=True):
    """The nodes among which a pod's node was chosen. It holds until the next snapshot."""

    ranking: Ranking
    """Their weighted scores, with those of extenders."""
    place: int
    """The place on axis N of the node that was chosen."""
    scores_at: Callable[[Index], Scores]
    """Returns each plugin's part in the totals of some of the rows. Call it at most once, for few rows."""

    @property
    def rows(self) -> Rows:
        return self.ranking.rows

    @property
    def total(self) -> Int64s:
        """(R,) the weighted scores, as a new array."""
        return self.ranking.total

    @property
    def chosen(self) -> int:
        return int((self.rows.node == self.place).argmax())


def scores_at(
    cycle: fwk.CycleState, pod: Pod, rows: Rows, parts: Sequence[Part], summed: Sequence[WeightedScorer], places: Index
) -> Scores:
    """Returns the scores of some rows, after all of them were scored.

    `parts` were computed for all rows. The `summed` scorers, of which only the sum is kept, look at each node by
    itself, and so are run again on these rows alone.
    """
    few = rows.take(places)
    of_few = [(scorer, *scores_of(few, places)) for scorer, scores_of in parts]
    for scorer in summed:
        scores = plugin_scores(scorer.plugin, cycle, pod, few)
        of_few.append((scorer, scores, scores * scorer.weight))
    return Scores.of(of_few, len(few))


def plugin_scores(plugin: fwk.ScorePlugin, cycle: fwk.CycleState, pod: Pod, rows: Rows) -> Int64s:
    """Returns (R,) the plugin's answer, checked."""
    return checked_scores(plugin.score(cycle, pod, rows), len(rows))


def scores_by_label(plugin: fwk.ScorePlugin, cycle: fwk.CycleState, pod: Pod, rows: Rows) -> LabelScores | Int64s:
    """Returns the plugin's scores by the value of a label, if it has them and the rows are all nodes; else (R,)."""
    if rows.is_all and isinstance(plugin, LabelScorePlugin):
        scores = plugin.label_scores(cycle)
        # A subclass may score otherwise, and quarantine watches `score`.
        is_their_sum = getattr(plugin.score, "__func__", None) is LabelScorePlugin.score
        if is_their_sum and len(scores) == 1 and scores[0].column.is_shared:
            return scores[0]
    return plugin_scores(plugin, cycle, pod, rows)


def normalized_scores(plugin: fwk.ScorePlugin, cycle: fwk.CycleState, pod: Pod, scores: Int64s) -> Int64s:
    """Returns (R,) the scores as the plugin normalises them, checked; None means unchanged."""
    normalized: Int64s | None = plugin.normalize_score(cycle, pod, scores)
    return scores if normalized is None else checked_scores(normalized, len(scores))


def in_range(scorer: WeightedScorer, scores: Int64s) -> Int64s:
    """Returns (R,) the scores unchanged. Raises PluginError for one below 0 or above 100."""
    # One look at all nodes instead of two: without a sign, a score below 0 is a very high one. argmax is faster than
    # max.
    unsigned = scores.view(np.uint64)
    if len(scores) and unsigned.item(unsigned.argmax()) > fwk.MAX_NODE_SCORE:
        score = int(scores[(scores < 0) | (scores > fwk.MAX_NODE_SCORE)][0])
        why = f"returns an invalid score {score}, it should in the range of [0, {fwk.MAX_NODE_SCORE}] after normalizing"
        raise PluginError(scorer.name, "ScoreWeights", why)
    return scores


def checked_scores(scores: object, num_rows: int) -> Int64s:
    """Returns (R,) a plugin's result as int64. Raises TypeError if it is no array of an integer per row."""
    if not isinstance(scores, np.ndarray) or scores.shape != (num_rows,):
        raise TypeError(f"scores must be an array of {num_rows} integers")
    if scores.dtype.kind not in "iu":
        raise TypeError(f"scores must be integers, not {scores.dtype}")
    return scores.astype(np.int64, copy=False)

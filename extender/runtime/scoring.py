"""Scores of feasible rows: raw, normalised, weighted, summed.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunScorePlugins (v1.36.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.plugin_calls import PluginError
from extender.snapshot import Rows
from extender.snapshot.axes import Index, Int64s


@final
@dataclass(frozen=True, slots=True)
class WeightedScorer:
    """A Score plugin of a profile and its weight."""

    name: str
    plugin: fwk.ScorePlugin
    weight: int

    @property
    def normalizes(self) -> bool:
        """Whether the plugin overrides `normalize_score`; without it, its scores are on the scale 0..100 as they are."""
        return type(self.plugin).normalize_score is not fwk.ScorePlugin.normalize_score


@final
@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of R rows."""

    raw: dict[str, Int64s]
    """Plugin -> (R,) its scores before normalising."""
    weighted: dict[str, Int64s]
    """Plugin -> (R,) its scores normalised to 0..100 and multiplied by the weight."""
    total: Int64s
    """(R,) the sum."""
    weights: dict[str, int]

    @staticmethod
    def of(parts: Sequence["Part"], num_rows: int) -> "Scores":
        """Returns the scores of R rows, plugin by plugin."""
        total = np.zeros(num_rows, np.int64)
        for _, _, weighted in parts:
            total += weighted
        return Scores(
            {scorer.name: raw for scorer, raw, _ in parts},
            {scorer.name: weighted for scorer, _, weighted in parts},
            total,
            {scorer.name: scorer.weight for scorer, _, _ in parts},
        )


Part = tuple[WeightedScorer, Int64s, Int64s]
"""(scorer, (R,) its scores before normalising, (R,) its weighted ones)."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """The nodes among which a pod's node was chosen. It holds until the next snapshot."""

    rows: Rows
    total: Int64s
    """(R,) their weighted scores, with those of extenders."""
    chosen: int
    """The row that was chosen."""
    scores_at: Callable[[Index], Scores]
    """Returns what each plugin contributed to the totals of some of the rows. Call it at most once, for few rows."""


def scores_at(cycle: fwk.CycleState, pod: Pod, rows: Rows, parts: Sequence[Part], summed: Sequence[WeightedScorer], at: Index) -> Scores:
    """Returns the scores of some rows, after all of them were scored.

    Arguments:
        parts: what was computed for all rows.
        summed: scorers of which only the sum is known. They look at each node by itself, and so are run again on these rows alone; but not
            a plugin that waits for something.
    """
    few = rows.take(at)
    of_few = [(scorer, of_all[at], weighted_of_all[at]) for scorer, of_all, weighted_of_all in parts]
    for scorer in summed:
        if not scorer.plugin.blocking:
            scores = plugin_scores(scorer.plugin, cycle, pod, few)
            of_few.append((scorer, scores, scores * scorer.weight))
    return Scores.of(of_few, len(few))


def plugin_scores(plugin: fwk.ScorePlugin, cycle: fwk.CycleState, pod: Pod, rows: Rows) -> Int64s:
    """Returns (R,) what the plugin answers, once it is checked."""
    return checked_scores(plugin.score(cycle, pod, rows), len(rows))


def normalized_scores(plugin: fwk.ScorePlugin, cycle: fwk.CycleState, pod: Pod, scores: Int64s) -> Int64s:
    """Returns (R,) the scores as the plugin normalises them, once they are checked. None means unchanged."""
    normalized: Int64s | None = plugin.normalize_score(cycle, pod, scores)
    return scores if normalized is None else checked_scores(normalized, len(scores))


def in_range(scorer: WeightedScorer, scores: Int64s) -> Int64s:
    """Returns (R,) the scores unchanged.

    Raises:
        PluginError: a score is below 0 or above 100.
    """
    # One look at all nodes instead of two: without a sign, a score below 0 is a very high one. argmax is faster than max.
    unsigned = scores.view(np.uint64)
    if len(scores) and unsigned[unsigned.argmax()] > fwk.MAX_NODE_SCORE:
        score = int(scores[(scores < 0) | (scores > fwk.MAX_NODE_SCORE)][0])
        why = f"returns an invalid score {score}, it should in the range of [0, {fwk.MAX_NODE_SCORE}] after normalizing"
        raise PluginError(scorer.name, "ScoreWeights", why)
    return scores


def checked_scores(scores: object, num_rows: int) -> Int64s:
    """Returns (R,) a plugin's result as int64.

    Raises:
        TypeError: it is no array of one integer per row.
    """
    if not isinstance(scores, np.ndarray) or scores.shape != (num_rows,):
        raise TypeError(f"scores must be an array of {num_rows} integers")
    if scores.dtype.kind not in "iu":
        raise TypeError(f"scores must be integers, not {scores.dtype}")
    return scores.astype(np.int64, copy=False)

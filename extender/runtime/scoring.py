"""Scores of feasible rows: raw, normalised, weighted, summed.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunScorePlugins (v1.36.2).
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from extender import framework as fwk
from extender.runtime.plugin_calls import PluginError
from extender.snapshot.axes import Int64s


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

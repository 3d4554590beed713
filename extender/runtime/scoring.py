"""Scores of feasible rows: raw, normalised, weighted, summed.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunScorePlugins (v1.36.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.errors import PluginError
from extender.runtime.timing import timed
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
        """False when the plugin's scores are on the scale 0..100 as they are."""
        return type(self.plugin).normalize_score is not fwk.ScorePlugin.normalize_score


@final
@dataclass(frozen=True, slots=True)
class Scores:
    """What the Score plugins say of R rows."""

    raw: dict[str, Int64s]
    """Plugin -> (R,) as the plugin gave them."""
    weighted: dict[str, Int64s]
    """Plugin -> (R,) normalised to 0..100 and multiplied by the weight."""
    total: Int64s
    """(R,) the sum."""


def run_score_plugins(scorers: Sequence[WeightedScorer], state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Scores:
    """Ask every scorer that PreScore did not skip.

    Raises:
        PluginError: a plugin raised, or a score is no integer or outside 0..100 after normalising.
    """
    raw: dict[str, Int64s] = {}
    weighted: dict[str, Int64s] = {}
    total = np.zeros(len(rows), np.int64)
    for scorer in scorers:
        if scorer.name in state.skip_score_plugins:
            continue
        raw[scorer.name] = scores = raw_scores(scorer, state, pod, rows)
        weighted[scorer.name] = normalized_scores(scorer, state, pod, scores) * scorer.weight
        total += weighted[scorer.name]
    return Scores(raw, weighted, total)


def raw_scores(scorer: WeightedScorer, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Int64s:
    """(R,) one plugin's scores before normalising, checked."""
    observe = state.observe_plugin
    try:
        if observe is None:
            scores = scorer.plugin.score(state, pod, rows)
        else:
            scores = timed(observe, scorer.name, "Score", scorer.plugin.score, state, pod, rows)
        return _checked(scores, len(rows))
    except Exception as exc:
        raise PluginError(scorer.name, f'running Score plugins: plugin "{scorer.name}" failed with: {exc}') from exc


def normalized_scores(scorer: WeightedScorer, state: fwk.CycleState, pod: Pod, scores: Int64s) -> Int64s:
    """(R,) one plugin's scores on the scale 0..100, checked."""
    if not scorer.normalizes:
        return in_range(scorer, scores)
    # Raw scores are shown as they were given, and remembered: normalising makes new ones.
    given = scores.view()
    given.flags.writeable = False
    try:
        if state.observe_plugin is None:
            answer = scorer.plugin.normalize_score(state, pod, given)
        else:
            answer = timed(state.observe_plugin, scorer.name, "ScoreExtensionNormalize", scorer.plugin.normalize_score, state, pod, given)
        normalized = _checked(answer, len(scores))
    except Exception as exc:
        raise PluginError(scorer.name, f'running Normalize on Score plugins: plugin "{scorer.name}" failed with: {exc}') from exc
    return in_range(scorer, normalized)


def in_range(scorer: WeightedScorer, scores: Int64s) -> Int64s:
    """(R,) the scores, all of which are from 0 to 100.

    Raises:
        PluginError: one is not.
    """
    if len(scores) and (scores.min() < 0 or scores.max() > fwk.MAX_NODE_SCORE):
        score = int(scores[(scores < 0) | (scores > fwk.MAX_NODE_SCORE)][0])
        raise PluginError(
            scorer.name,
            f'applying score defaultWeights on Score plugins: plugin "{scorer.name}" returns an invalid score {score}, '
            f"it should in the range of [0, {fwk.MAX_NODE_SCORE}] after normalizing",
        )
    return scores


def _checked(scores: object, num_rows: int) -> Int64s:
    if not isinstance(scores, np.ndarray) or scores.shape != (num_rows,):
        raise TypeError(f"scores must be an array of {num_rows} integers")
    if scores.dtype.kind not in "iu":
        raise TypeError(f"scores must be integers, not {scores.dtype}")
    return scores.astype(np.int64, copy=False)

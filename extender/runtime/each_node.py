"""Plugins that look at one node at a time, wrapped so that the framework sees rows."""

from typing import final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.snapshot.axes import Int64s, Mask


@final
class EachNodeFilter(fwk.FilterPlugin):
    """Asks an EachNodeFilterPlugin about every row, spelled out as a NodeInfo."""

    def __init__(self, plugin: fwk.EachNodeFilterPlugin) -> None:
        super().__init__()
        self._plugin = plugin

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """The plugin's answers, row by row."""
        codes = np.zeros(len(rows), np.int8)
        reasons: dict[str, Mask] = {}
        for row, node in enumerate(rows.node_infos()):
            status = self._plugin.filter(state, pod, node)
            if not isinstance(status, fwk.Status):
                raise TypeError(f"filter returned {type(status).__name__}, not a Status")
            codes[row] = status.code
            for reason in status.reasons:
                reasons.setdefault(reason, np.zeros(len(rows), np.bool_))[row] = True
        return fwk.Verdicts(codes, tuple(reasons.items()))


@final
class EachNodeScore(fwk.ScorePlugin):
    """Asks an EachNodeScorePlugin about every row, spelled out as a NodeInfo."""

    def __init__(self, plugin: fwk.EachNodeScorePlugin) -> None:
        super().__init__()
        self._plugin = plugin

    def score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Int64s:
        """(R,) the plugin's scores, row by row."""
        scores = np.empty(len(rows), np.int64)
        for row, node in enumerate(rows.node_infos()):
            score = self._plugin.score(state, pod, node)
            if not isinstance(score, int | np.integer) or isinstance(score, bool):
                raise TypeError(f"score returned {type(score).__name__}, not an integer")
            scores[row] = score
        return scores

    def normalize_score(self, state: fwk.CycleState, pod: Pod, scores: Int64s) -> Int64s:
        """(R,) what the plugin makes of them."""
        return self._plugin.normalize_score(state, pod, scores)

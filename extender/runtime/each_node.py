"""Plugins that look at one node at a time, wrapped so that the framework sees rows."""

from collections import defaultdict
from collections.abc import Sequence
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

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """The plugin's."""
        return self._plugin.events_to_register()

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """The plugin's answers, row by row."""
        codes = np.zeros(len(rows), np.int8)
        reasons: list[tuple[str, Mask]] = []
        places: defaultdict[str, list[int]] = defaultdict(list)
        for row, node in enumerate(rows.node_infos()):
            status = self._plugin.filter(state, pod, node)
            if not isinstance(status, fwk.Status):
                raise TypeError(f"filter returned {type(status).__name__}, not a Status")
            codes[row] = status.code
            last = -1
            for reason in status.reasons:
                # A row lists its reasons in the order given, also where another row has them the other way round.
                place = next((place for place in places[reason] if place > last), len(reasons))
                if place == len(reasons):
                    places[reason].append(place)
                    reasons.append((reason, np.zeros(len(rows), np.bool_)))
                reasons[place][1][row] = True
                last = place
        return fwk.Verdicts(codes, tuple(reasons))


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

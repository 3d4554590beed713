"""Runs plugins that look at one node at a time on rows."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s, Mask
from extender.values import limits
from extender.values.objects.pod import Pod

SECONDS_A_NODE: Final = 0.001
"""Granted beside `limits.PLUGIN_SECONDS`, so that what works in a small cluster works in a large one."""


def _answers(
    call: Callable[[fwk.CycleState, Pod, fwk.NodeInfo], Any], state: fwk.CycleState, pod: Pod, rows: fwk.Rows
) -> list[Any]:
    """Returns an answer for each row. Raises TimeoutError if they took too long."""
    answers: list[Any] = []
    max_seconds = limits.PLUGIN_SECONDS + SECONDS_A_NODE * len(rows)
    ends = monotonic() + max_seconds
    for node in rows.node_infos():
        answers.append(call(state, pod, node))
        if monotonic() > ends:
            raise TimeoutError(f"it took longer than {max_seconds:.3g} s for {len(rows)} nodes, at node {node.name}")
    return answers


@final
class EachNodeFilter(fwk.FilterPlugin):
    """Runs an EachNodeFilterPlugin on every row, given as a NodeInfo."""

    def __init__(self, plugin: fwk.EachNodeFilterPlugin) -> None:
        super().__init__()
        self._plugin = plugin
        self.name = plugin.name  # type: ignore[misc]

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return self._plugin.events_to_register()

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        codes = np.zeros(len(rows), np.int8)
        reasons: list[tuple[str, Mask]] = []
        places: defaultdict[str, list[int]] = defaultdict(list)
        for row, answer in enumerate(_answers(self._plugin.filter, state, pod, rows)):
            status = fwk.SUCCESS if answer is None else answer  # as a nil status is upstream
            if not isinstance(status, fwk.Status):
                raise TypeError(f"filter returned {type(status).__name__}, not a Status")
            codes[row] = status.code
            last = -1
            for reason in status.reasons:
                # A row keeps the order of its reasons, even where another row has them the other way round.
                place = next((place for place in places[reason] if place > last), len(reasons))
                if place == len(reasons):
                    places[reason].append(place)
                    reasons.append((reason, np.zeros(len(rows), np.bool_)))
                reasons[place][1][row] = True
                last = place
        return fwk.Verdicts(codes, tuple(reasons))


@final
class EachNodeScore(fwk.ScorePlugin):
    """Runs an EachNodeScorePlugin on every row, given as a NodeInfo."""

    def __init__(self, plugin: fwk.EachNodeScorePlugin) -> None:
        super().__init__()
        self._plugin = plugin
        self.name = plugin.name  # type: ignore[misc]

    def score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Int64s:
        scores = np.empty(len(rows), np.int64)
        for row, score in enumerate(_answers(self._plugin.score, state, pod, rows)):
            if not isinstance(score, int | np.integer) or isinstance(score, bool):
                raise TypeError(f"score returned {type(score).__name__}, not an integer")
            scores[row] = score
        return scores

    def normalize_score(self, state: fwk.CycleState, pod: Pod, scores: Int64s) -> Int64s:
        return self._plugin.normalize_score(state, pod, scores)

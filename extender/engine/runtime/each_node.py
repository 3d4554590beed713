"""Runs plugins that look at one node at a time on rows, in the event loop or, where they block, in a thread."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Final, final
from weakref import WeakValueDictionary

import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.snapshot.axes import Int64s, Mask
from extender.values.objects.pod import Pod

SLICE: Final = 0.25
"""Seconds after which a thread lets another pod have its turn."""

SECONDS_A_NODE: Final = 0.001
"""What a plugin may take for each node besides its deadline, so that what works in a small cluster works in a large
one.
"""

_State = tuple[int, ...]
_Call = Callable[[fwk.CycleState, Pod, fwk.NodeInfo], object]


@final
class _Results:
    """What a plugin answered in its thread about nodes, for one attempt of a pod."""

    __slots__ = ("__weakref__", "_answers", "_spent")

    def __init__(self) -> None:
        # Keyed by the identities of the node and its pods; the NodeInfo keeps them alive.
        self._answers: dict[_State, tuple[fwk.NodeInfo, object]] = {}
        self._spent = 0.0

    def of(self, node: fwk.NodeInfo) -> tuple[fwk.NodeInfo, object] | None:
        """Returns the answer for the node, with the NodeInfo that it was given for; None if there is none yet."""
        return self._answers.get(_state_of(node))

    def compute(
        self,
        call: Callable[[fwk.NodeInfo], object],
        nodes: Sequence[fwk.NodeInfo],
        deadline: float,
        is_wanted: Callable[[], bool],
    ) -> None:
        """Asks the plugin about nodes for the time of a slice."""
        began = monotonic()
        for node in nodes:
            answer: object
            if self._spent + monotonic() - began > deadline:
                answer = TimeoutError(f"it took longer than its deadline of {deadline:g} s")
            else:
                try:
                    answer = call(node)
                except Exception as exc:
                    answer = exc
            self._answers[_state_of(node)] = node, answer
            if monotonic() - began > SLICE or not is_wanted():
                break
        self._spent += monotonic() - began


def _state_of(node: fwk.NodeInfo) -> _State:
    return id(node.node), *map(id, node.pods)


@final
class _NodeByNode:
    """Calls a plugin for each row, in a thread if it blocks and `LongWork` is done."""

    def __init__(self, plugin: fwk.EachNodeFilterPlugin | fwk.EachNodeScorePlugin, *, may_defer: bool) -> None:
        self._plugin = plugin
        self._in_thread = plugin.blocking and may_defer
        self._results: WeakValueDictionary[tuple[str, str, str], _Results] = WeakValueDictionary()

    def answers(
        self,
        call: Callable[[fwk.CycleState, Pod, fwk.NodeInfo], object],
        state: fwk.CycleState,
        pod: Pod,
        rows: fwk.Rows,
    ) -> list[object]:
        """Returns an answer for each row.

        Raises:
            LongWork: the plugin blocks, and has not answered for all rows yet.
            TimeoutError: the answers took longer than the deadline.
        """
        plugin = self._plugin
        if self._in_thread:
            return self._answers_in_thread(call, state, pod, [*rows.node_infos()])
        answers: list[object] = []
        most = plugin.deadline + SECONDS_A_NODE * len(rows)
        ends = monotonic() + most
        for node in rows.node_infos():
            answers.append(call(state, pod, node))
            if monotonic() > ends:
                raise TimeoutError(
                    f"it took longer than its deadline of {most:.3g} s for {len(rows)} nodes, at node {node.name}"
                )
        return answers

    def _answers_in_thread(
        self, call: _Call, state: fwk.CycleState, pod: Pod, nodes: Sequence[fwk.NodeInfo]
    ) -> list[object]:
        key = (call.__name__, pod.key, pod.uid)
        results = self._results.get(key) or _Results()
        known = [results.of(node) for node in nodes]
        missing = [node for node, found in zip(nodes, known, strict=True) if found is None]
        if missing:
            self._results[key] = results
            compute = partial(results.compute, partial(call, state, pod), missing, self._plugin.async_deadline)
            raise LongWork(compute, thread=self._plugin.name)
        answers = [found[1] for found in known if found is not None]
        for answer in answers:
            if isinstance(answer, Exception):
                raise type(answer)(*answer.args)
        return answers


@final
class EachNodeFilter(fwk.FilterPlugin):
    """Runs an EachNodeFilterPlugin on every row, given as a NodeInfo."""

    def __init__(self, plugin: fwk.EachNodeFilterPlugin, *, may_defer: bool = False) -> None:
        super().__init__()
        self._plugin = plugin
        self.name = plugin.name  # type: ignore[misc]
        self.deadline = math.inf  # type: ignore[misc]  # it is held between nodes
        self._nodes = _NodeByNode(plugin, may_defer=may_defer)

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return self._plugin.events_to_register()

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        codes = np.zeros(len(rows), np.int8)
        reasons: list[tuple[str, Mask]] = []
        places: defaultdict[str, list[int]] = defaultdict(list)
        for row, answer in enumerate(self._nodes.answers(self._plugin.filter, state, pod, rows)):
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

    def __init__(self, plugin: fwk.EachNodeScorePlugin, *, may_defer: bool = False) -> None:
        super().__init__()
        self._plugin = plugin
        self.name = plugin.name  # type: ignore[misc]
        self.deadline = math.inf  # type: ignore[misc]  # it is held between nodes
        self._nodes = _NodeByNode(plugin, may_defer=may_defer)

    def score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Int64s:
        scores = np.empty(len(rows), np.int64)
        for row, score in enumerate(self._nodes.answers(self._plugin.score, state, pod, rows)):
            if not isinstance(score, int | np.integer) or isinstance(score, bool):
                raise TypeError(f"score returned {type(score).__name__}, not an integer")
            scores[row] = score
        return scores

    def normalize_score(self, state: fwk.CycleState, pod: Pod, scores: Int64s) -> Int64s:
        return self._plugin.normalize_score(state, pod, scores)

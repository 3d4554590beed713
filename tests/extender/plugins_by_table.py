"""Plugins that say what a table says, and remember what they were asked."""

from collections.abc import Callable, Mapping
from typing import final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s


class _Named:
    """An object's own name in place of its class's, so that a profile can have several."""

    name: str

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


@final
class Looks(_Named, fwk.PreFilterPlugin, fwk.FilterPlugin):
    """A PreFilter with one answer; its Filter passes everything."""

    def __init__(self, name: str, status: fwk.Status = fwk.SUCCESS, *nodes: str) -> None:
        """Without `nodes` it does not narrow the search; `*` narrows it to nothing."""
        super().__init__(name)
        self._result = fwk.PreFilterResult(status, frozenset(nodes) - {"*"} if nodes else None)
        self.looked = 0
        self.filtered = 0

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        self.looked += 1
        return self._result

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        self.filtered += 1
        return fwk.accept(len(rows))


@final
class Refuses(_Named, fwk.FilterPlugin):
    """A Filter with an answer per node; the others pass."""

    def __init__(self, name: str, statuses: Mapping[str, fwk.Status] | None = None) -> None:
        super().__init__(name)
        self._statuses = statuses or {}
        self.asked: list[list[str]] = []

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        self.asked.append(rows.names)
        answers = [self._statuses.get(name, fwk.SUCCESS) for name in rows.names]
        reasons = dict.fromkeys(reason for answer in answers for reason in answer.reasons)
        return fwk.Verdicts(
            np.array([answer.code for answer in answers], np.int8),
            tuple((reason, np.array([reason in answer.reasons for answer in answers], np.bool_)) for reason in reasons),
        )


@final
class Holds(fwk.FilterPlugin):
    """Refuses rows that have as many pods as a node holds."""

    def __init__(self, pods: int) -> None:
        super().__init__()
        self._pods = pods
        self.seen: list[list[int]] = []

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        self.seen.append(rows.pod_count.tolist())
        return fwk.reject(rows.pod_count >= self._pods, "full")


@final
class NeedsCompany(fwk.FilterPlugin):
    """Refuses rows without pods."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.pod_count == 0, "lonely")


@final
class Scores(_Named, fwk.ScorePlugin):
    """A Score with a number per node, 0 for the others."""

    def __init__(self, name: str, by_node: Mapping[str, int] | None = None) -> None:
        super().__init__(name)
        self._by_node = by_node or {}
        self.asked: list[list[str]] = []

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        self.asked.append(rows.names)
        return np.array([self._by_node.get(name, 0) for name in rows.names], np.int64)


@final
class PreScores(_Named, fwk.PreScorePlugin, fwk.ScorePlugin):
    """A PreScore with one answer; its Score gives every node 50."""

    def __init__(self, name: str, status: fwk.Status) -> None:
        super().__init__(name)
        self._status = status

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        return self._status

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return np.full(len(rows), 50, np.int64)


@final
class Tries(_Named, fwk.PostFilterPlugin):
    """A PostFilter with one answer."""

    def __init__(self, name: str, status: fwk.Status, nominated_node: str | None = None) -> None:
        super().__init__(name)
        self._result = fwk.PostFilterResult(status, nominated_node)
        self.tried = 0

    async def post_filter(
        self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses
    ) -> fwk.PostFilterResult:
        self.tried += 1
        return self._result


@final
class Answers(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PostFilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin):
    """A plugin that answers one extension point as a stranger might: with anything. At the others it behaves."""

    def __init__(self, point: str, answer: Callable[[], object]) -> None:
        super().__init__()
        self._point = point
        self._answer = answer

    def _answer_at(self, point: str, otherwise: object) -> object:
        return self._answer() if self._point == point else otherwise

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        return self._answer_at("pre_filter", fwk.PreFilterResult(fwk.SUCCESS))  # type: ignore[return-value]

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return self._answer_at("filter", fwk.accept(len(rows)))  # type: ignore[return-value]

    async def post_filter(
        self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses
    ) -> fwk.PostFilterResult:
        return self._answer_at("post_filter", fwk.PostFilterResult(fwk.SUCCESS))  # type: ignore[return-value]

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        return self._answer_at("pre_score", fwk.SUCCESS)  # type: ignore[return-value]

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return self._answer_at("score", np.zeros(len(rows), np.int64))  # type: ignore[return-value]

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return self._answer_at("normalize_score", scores)  # type: ignore[return-value]


def raising(exc: Exception) -> Callable[[], object]:
    """An answer that is none."""

    def answer() -> object:
        raise exc

    return answer

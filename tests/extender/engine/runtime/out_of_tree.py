"""Plugins as others write them: one that works, and ones that do not."""

from typing import Any

import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s


class Spare(fwk.FilterPlugin, fwk.ScorePlugin):
    """Keeps pods off nodes that are labelled as spare, and off others a little."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.label_number("spare") == 2, "node(s) were spare")

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return np.where(rows.label_number("spare") == 1, 0, 100)


class OneByOne(fwk.EachNodeFilterPlugin, fwk.EachNodeScorePlugin):
    """The same, node by node."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> fwk.Status:
        return fwk.unschedulable("node(s) were spare") if node.labels.get("spare") == "2" else fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> int:
        return 0 if node.labels.get("spare") == "1" else 100


class Picky(fwk.FilterPlugin):
    """Wants a size."""

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        if not isinstance(arguments, dict) or not isinstance(arguments.get("size"), int):
            raise ValueError("size: a number is required")

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.accept(len(rows))


class Shy(fwk.FilterPlugin):
    """Takes neither arguments nor a handle."""

    def __init__(self) -> None:
        super().__init__()

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.accept(len(rows))


class BrokenQueueSort(fwk.QueueSortPlugin):
    """Cannot be made."""

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        raise RuntimeError("no queue today")

    def sort_key(self, pod: fwk.Pod, timestamp: float) -> tuple[Any, ...]:
        return ()


class Unfinished(fwk.PreFilterPlugin, fwk.FilterPlugin):
    """Its author has not come to writing the methods."""


class Pointless(fwk.Plugin):
    """Runs nowhere."""


class Stray:
    """Forgot to derive from anything."""


def function() -> None:
    """Not even a class."""


class Hasty(fwk.FilterPlugin, fwk.ReservePlugin, fwk.PostFilterPlugin):
    """Waits where it may, and where nothing waits for it."""

    async def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:  # type: ignore[override]
        return fwk.accept(len(rows))

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        return fwk.SUCCESS

    async def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:  # type: ignore[override]
        pass

    async def post_filter(
        self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses
    ) -> fwk.PostFilterResult:
        return fwk.PostFilterResult(fwk.unschedulable("no"))


async def later(pod: fwk.Pod, old: Any, new: Any) -> fwk.QueueingHint:
    return fwk.QueueingHint.QUEUE


class Hinting(Spare):
    """Its hint waits for something."""

    def events_to_register(self) -> list[fwk.ClusterEventWithHint]:
        return [fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD, later)]  # type: ignore[arg-type]

"""Plugins that go wrong at one extension point, for pods that are labelled so."""

import asyncio
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot.axes import Int64s
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load

POINTS = ("preEnqueue", "preFilter", "filter", "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind")


class OddError(Exception):
    """Nobody has reckoned with it."""


def is_odd(pod: fwk.Pod, point: str) -> bool:
    """Whether it goes wrong for this pod there; `wrong` is raised for, `nonsense` answered with it."""
    return pod.labels.get("odd") == point


def perhaps_raise(pod: fwk.Pod, point: str) -> None:
    """For the pods that are labelled so, and for all of them while it is broken there."""
    if is_odd(pod, point) or point in BROKEN:
        raise OddError(f"at {point}")


class OddOrder(fwk.QueueSortPlugin):
    """First come, first served; but some pods cannot be put into an order, the first time or from the second time
    on.
    """

    def sort_key(self, pod: fwk.Pod, timestamp: float) -> tuple[float, ...]:
        perhaps_raise(pod, "order")
        if pod.name in TRIED:
            perhaps_raise(pod, "order-later")
        if is_odd(pod, "order-nothing"):
            return None  # type: ignore[return-value]
        return (timestamp,)


class Odd(
    fwk.PreEnqueuePlugin,
    fwk.PreFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.ScorePlugin,
    fwk.ReservePlugin,
    fwk.PermitPlugin,
    fwk.PreBindPlugin,
    fwk.BindPlugin,
    fwk.PostBindPlugin,
):
    """Raises at the extension point that the label `odd` of a pod names, or answers nonsense where it says so."""

    def pre_enqueue(self, pod: fwk.Pod) -> fwk.Status:
        perhaps_raise(pod, "preEnqueue")
        return fwk.SUCCESS

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        TRIED.add(pod.name)
        perhaps_raise(pod, "preFilter")
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        perhaps_raise(pod, "filter")
        return 7 if is_odd(pod, "filter-wrong") else fwk.accept(len(rows))  # type: ignore[return-value]

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        perhaps_raise(pod, "preScore")
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        perhaps_raise(pod, "score")
        if is_odd(pod, "score-nan"):
            return np.full(len(rows), np.nan)
        return np.full(len(rows), 101 if is_odd(pod, "score-101") else 1, np.int64)

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        perhaps_raise(pod, "reserve")
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        UNRESERVED.append(pod.name)

    def permit(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> tuple[fwk.Status, float]:
        perhaps_raise(pod, "permit")
        if is_odd(pod, "permit-wrong"):
            return 7, 0.0  # type: ignore[return-value]
        if is_odd(pod, "activates-nonsense"):
            state.read(fwk.PODS_TO_ACTIVATE)["nonsense"] = "no pod"  # type: ignore[assignment]
        return (fwk.Status(fwk.Code.WAIT), 5.0) if HOLDS in BROKEN else (fwk.SUCCESS, 0.0)

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.PreFlight:
        return fwk.PreFlight(fwk.SUCCESS)

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        perhaps_raise(pod, "preBind")
        if is_odd(pod, "preBind-hangs"):
            await asyncio.sleep(60)
        return fwk.SUCCESS

    async def bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        perhaps_raise(pod, "bind")
        # A reason that is no text: whoever wants to say it raises.
        return fwk.unschedulable(None) if is_odd(pod, "bind-nonsense") else fwk.SKIP  # type: ignore[arg-type]

    async def post_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        perhaps_raise(pod, "postBind")


HOLDS = "holds"
BROKEN: set[str] = set()
"""Extension points at which it raises for everybody; and `HOLDS`, while Permit lets nobody go on before five seconds
are over.
"""
TRIED: set[str] = set()
"""Names of pods that were popped."""
UNRESERVED: list[str] = []
"""Names of pods whose room was given back."""

ENABLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    bind:
      disabled: [{name: DefaultBinder}]
      enabled: [{name: Odd}, {name: DefaultBinder}]
    queueSort:
      disabled: [{name: PrioritySort}]
      enabled: [{name: %s}]
    multiPoint:
      enabled: [{name: Odd, weight: 1}]
"""


def with_odd_plugin(order: str = "PrioritySort") -> dict[str, Any]:
    """What a world needs to have it."""
    UNRESERVED.clear()
    TRIED.clear()
    BROKEN.clear()
    configuration: Configuration = load(ENABLED % order)
    strangers = [EntryPoint(name, f"{__name__}:{name}", "extender.plugins") for name in ("Odd", "OddOrder")]
    return {"configuration": configuration, "plugins": Registry(IN_TREE, strangers)}

"""A plugin that returns nothing has nothing against the pod: None is Success at every extension point, as a nil status
is upstream.
"""

from typing import Any

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.queueing_hints import gating_plugin
from extender.engine.runtime.reserve_to_bind import (
    run_bind_plugins,
    run_permit_plugins,
    run_pre_bind_plugins,
    run_pre_bind_pre_flights,
    run_reserve_plugins,
)
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.engine.snapshot import Rows
from extender.testing import make_framework, make_node, make_pod, make_snapshot

POD = make_pod("p").obj()


class Silent(
    fwk.PreEnqueuePlugin,
    fwk.PreFilterPlugin,
    fwk.FilterPlugin,
    fwk.PostFilterPlugin,
    fwk.PreScorePlugin,
    fwk.ReservePlugin,
    fwk.PermitPlugin,
    fwk.PreBindPlugin,
    fwk.BindPlugin,
):
    """Implements everything and returns nothing. It counts its calls."""

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self.calls: list[str] = []

    def _called(self, point: str) -> Any:
        self.calls.append(point)

    def pre_enqueue(self, pod: fwk.Pod) -> Any:
        return self._called("PreEnqueue")

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> Any:
        return self._called("PreFilter")

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Any:
        return self._called("Filter")

    async def post_filter(self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses) -> Any:
        return self._called("PostFilter")

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Any:
        return self._called("PreScore")

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> Any:
        return self._called("Reserve")

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        self.calls.append("Unreserve")

    def permit(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> Any:
        return self._called("Permit")

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> Any:
        return self._called("PreBindPreFlight")

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> Any:
        return self._called("PreBind")

    async def bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> Any:
        return self._called("Bind")


async def test_returning_none_is_success_at_every_extension_point() -> None:
    plugin = Silent()
    framework = make_framework(plugin)
    snapshot = make_snapshot(make_node("a"), make_node("b"))
    cycle = Cycle(framework, snapshot, POD)
    refused = fwk.NodeStatuses({}, fwk.unschedulable("no"))

    assert gating_plugin(framework.plugins.pre_enqueue, POD) == ""
    assert SchedulingAlgorithm().schedule_pod(cycle).feasible_nodes == 2
    assert cycle.run_filter_plugins(Rows.of(snapshot)).all_ok
    assert (await run_post_filter_plugins(cycle, refused)).status.is_success
    assert run_reserve_plugins(cycle, POD, "a").is_success
    assert run_permit_plugins(cycle, POD, "a") == (fwk.SUCCESS, {})
    plan = run_pre_bind_pre_flights(cycle, POD, "a")
    assert plan.status == await run_pre_bind_plugins(plan, cycle, POD, "a") == fwk.SUCCESS
    assert await run_bind_plugins(cycle, POD, "a") == fwk.SUCCESS
    assert {*plugin.calls} == {
        "PreEnqueue", "PreFilter", "Filter", "PostFilter", "PreScore", "Reserve", "Permit", "PreBindPreFlight",
        "PreBind", "Bind",
    }  # fmt: skip


class SilentEachNode(fwk.EachNodeFilterPlugin):
    """Looks at one node at a time, and returns nothing about the first."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> fwk.Status:
        return None if node.node.name == "a" else fwk.unschedulable("no")  # type: ignore[return-value]


def test_returning_none_for_one_node_is_success_for_that_node() -> None:
    snapshot = make_snapshot(make_node("a"), make_node("b"))

    verdicts = Cycle(make_framework(SilentEachNode()), snapshot, POD).run_filter_plugins(Rows.of(snapshot))

    assert verdicts.ok.tolist() == [True, False]


class Unnormalized(fwk.ScorePlugin):
    """Scores, and leaves the scores as they are by returning nothing."""

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Any:
        return rows.node * 10

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Any) -> Any:
        return None


@pytest.mark.parametrize("nodes", [2, 3])
def test_normalizing_to_none_leaves_the_scores_as_they_are(nodes: int) -> None:
    snapshot = make_snapshot(*(make_node(f"n{number}") for number in range(nodes)))
    cycle = Cycle(make_framework(Unnormalized()), snapshot, POD)

    assert cycle.run_score_plugins(Rows.of(snapshot)).total.tolist() == [10 * number for number in range(nodes)]

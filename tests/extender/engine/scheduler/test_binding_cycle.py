"""From a decision to a binding, or back: in which order, and who hears of what.

Upstream: pkg/scheduler/schedule_one.go, bindingCycle, handleBindingCycleError; schedule_one_test.go,
TestSchedulerScheduleOne.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.scheduler.binding_cycle import UnconfirmedBindings, binding_cycle, wake_other_pods
from extender.engine.scheduler.world import AssumedPod
from extender.testing import make_node, make_pod, make_snapshot
from extender.values.objects.pod import Pod
from tests.extender.engine.scheduler.stage import Stage, a_stage
from tests.kit.places import without_place
from tests.kit.tables import cases

P = make_pod("p").req(cpu="1")
BIG = make_pod("big").req(cpu="2")
FIT = "NodeResourcesFit"


class Noting(fwk.ReservePlugin, fwk.PreBindPlugin, fwk.BindPlugin, fwk.PostBindPlugin):
    """Notes down what it is asked, and answers as told."""

    def __init__(
        self,
        pre_bind: fwk.Status = fwk.SUCCESS,
        bind: fwk.Status | Exception = fwk.SUCCESS,
        flight: fwk.Status = fwk.SUCCESS,
    ):
        super().__init__()
        self.asked: list[str] = []
        self.look: Callable[[], Any] = lambda: None
        self._pre_bind, self._bind, self._flight = pre_bind, bind, flight

    def _note(self, what: str) -> None:
        self.asked.append(what)
        self.seen = self.look()

    def reserve(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
        self._note("unreserve")

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.PreFlight:
        return fwk.PreFlight(self._flight)

    async def pre_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self._note("pre_bind")
        return self._pre_bind

    async def bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self._note("bind")
        if isinstance(self._bind, Exception):
            raise self._bind
        return self._bind

    async def post_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
        self._note("post_bind")


def decided_with(plugin: Noting, timeouts: dict[str, float] | None = None) -> tuple[Stage, AssumedPod]:
    """The pod was popped, and decided for node n, where it waits if there are timeouts."""
    stage = a_stage(plugin)
    stage.node(make_node("n").capacity(cpu="2"))
    stage.refused(BIG, FIT)
    stage.tell(None, P)
    stage.popped()
    assumed = stage.world.cluster.assume(P.obj().uid, "n")
    assert assumed is not None
    waiting = stage.world.waiting_pods.add(assumed, timeouts) if timeouts else None
    return stage, AssumedPod(assumed, Cycle(stage.framework, make_snapshot(), assumed), waiting)


def nominations(stage: Stage) -> list[str | None]:
    return [call.nominated_node_name for call in stage.calls_of(fwk.PatchPodStatus)]


async def test_a_pod_is_prepared_bound_and_told_of() -> None:
    plugin = Noting()

    stage, decided = decided_with(plugin)
    assert await binding_cycle(stage.world, stage.framework, decided) is None
    await asyncio.sleep(0)

    assert plugin.asked == ["pre_bind", "bind", "post_bind"]
    (event,) = stage.calls_of(fwk.RecordEvent)
    fields = (event.type, event.reason, event.action, event.note)
    assert fields == ("Normal", "Scheduled", "Binding", "Successfully assigned default/p to n")
    assert stage.world.cluster.cache.is_assumed(P.obj())


async def test_the_pod_is_no_longer_in_flight_once_it_is_prepared() -> None:
    plugin = Noting()

    stage, decided = decided_with(plugin)
    in_flight: list[int] = []
    plugin.look = lambda: in_flight.append(len(stage.world.queue.in_flight_pods()))
    await binding_cycle(stage.world, stage.framework, decided)

    assert in_flight == [0, 0, 0]


@pytest.mark.parametrize(("flight", "node_names"), [(fwk.SUCCESS, ["n"]), (fwk.SKIP, [])], ids=str)
async def test_the_node_is_written_down_when_there_is_something_to_wait_for(
    flight: fwk.Status, node_names: list[str]
) -> None:
    stage, decided = decided_with(Noting(flight=flight))
    await binding_cycle(stage.world, stage.framework, decided)
    await asyncio.sleep(0)

    assert nominations(stage) == node_names


IN_BIND, BOTH = 'running Bind plugin "Noting": x', ["pre_bind", "bind"]
FAILURES = [
    pytest.param(Noting(flight=fwk.error("x")), 'running PreBindPreFlight "Noting": x', False, [], id="pre-flight"),
    pytest.param(
        Noting(pre_bind=fwk.error("x")), 'running PreBind plugin "Noting": x', False, ["pre_bind"], id="PreBind fails"
    ),
    pytest.param(Noting(pre_bind=fwk.unschedulable("x")), "x", True, ["pre_bind"], id="PreBind refuses"),
    pytest.param(Noting(bind=fwk.error("x")), IN_BIND, False, BOTH, id="Bind fails"),
    pytest.param(Noting(bind=RuntimeError("x")), IN_BIND, False, BOTH, id="Bind raises"),
    pytest.param(Noting(bind=fwk.unschedulable("x")), "x", True, BOTH, id="Bind refuses"),
    pytest.param(Noting(bind=fwk.SKIP), "", False, BOTH, id="no plugin binds it"),
]


@pytest.mark.parametrize(("plugin", "message", "is_rejected", "calls"), FAILURES)
async def test_failed_binding_is_unreserved_and_forgotten(
    plugin: Noting, message: str, is_rejected: bool, calls: list[str]
) -> None:
    """First what plugins keep, then the room in the cache; after an error the room is news to all, after a refusal only
    once the pod is back.
    """
    stage, decided = decided_with(plugin)
    plugin.asked.clear()
    plugin.look = lambda: stage.world.cluster.cache.is_assumed(P.obj())
    failure = await binding_cycle(stage.world, stage.framework, decided)

    assert failure is not None
    assert (without_place(failure.status.message), failure.status.is_rejected) == (message, is_rejected)
    assert (failure.unschedulable_plugins, failure.nominate) == (frozenset(), "")
    assert plugin.asked == [*calls, "unreserve"]
    assert plugin.seen is True
    assert stage.world.cluster.cache.pod(P.obj().uid) is None
    assert stage.is_tried(BIG) is not is_rejected
    if is_rejected:
        wake_other_pods(stage.world, decided.pod)
        assert stage.is_tried(BIG)


def _waiting(stage: Stage) -> Any:
    waiting = stage.world.waiting_pods.get(P.obj().uid)
    assert waiting is not None
    return waiting


@cases(
    "say, status, plugins",
    (
        "refused",
        lambda stage: _waiting(stage).reject("Hold", "no"),
        fwk.unschedulable("0/1 nodes are available: 1 no."),
        {"Hold"},
    ),
    (
        "time is up",
        lambda stage: None,
        fwk.unschedulable("0/1 nodes are available: 1 rejected due to timeout after waiting 5s at plugin Hold."),
        {"Hold"},
    ),
    (
        "deleted",
        lambda stage: stage.world.waiting_pods.reject(P.obj().uid),
        fwk.unschedulable("0/1 nodes are available: 1 removed."),
        set(),
    ),
    (
        "preempted",
        lambda stage: _waiting(stage).preempt("DefaultPreemption", "preempted"),
        fwk.error("waiting on permit for pod: preempted"),
        set(),
    ),
)
async def test_no_leave_is_given(say: Callable[[Stage], Any], status: fwk.Status, plugins: set[str]) -> None:
    stage, decided = decided_with(Noting(), {"Hold": 5.0})
    asyncio.get_running_loop().call_later(1, say, stage)

    failure = await binding_cycle(stage.world, stage.framework, decided)

    assert failure is not None
    assert failure.status == status
    assert failure.unschedulable_plugins == plugins
    assert nominations(stage) == ["n"]
    assert len(stage.world.waiting_pods) == 0
    assert [info.key for info in stage.world.queue.in_flight_pods()] == ["default/p"]


async def test_a_pod_that_was_refused_late_is_not_brought_back_by_its_own_room() -> None:
    stage, decided = decided_with(Noting())
    stage.world.queue.done(decided.pod.uid)
    stage.world.cluster.forget(decided.pod.uid)
    stage.refused(P, FIT)

    wake_other_pods(stage.world, decided.pod)

    assert (stage.waits(P), stage.is_tried(P)) == (True, False)
    assert stage.is_tried(BIG)


async def test_a_pod_that_is_preempted_while_it_is_prepared_is_not_bound() -> None:
    class Slow(Noting):
        async def pre_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
            await asyncio.sleep(600)
            return fwk.SUCCESS

    plugin = Slow()

    stage, decided = decided_with(plugin)
    asyncio.get_running_loop().call_later(
        1, stage.world.pods_in_pre_bind.cancel, decided.pod.uid, "preempted by DefaultPreemption"
    )
    failure = await binding_cycle(stage.world, stage.framework, decided)

    assert failure is not None
    assert failure.status == fwk.error("preempted by DefaultPreemption")
    assert plugin.asked == ["unreserve"]


async def test_pods_that_a_plugin_names_are_tried_once_the_pod_is_bound() -> None:
    stage, decided = decided_with(Noting())
    decided.cycle.write(fwk.PODS_TO_ACTIVATE, {"default/big": BIG.obj()})
    await binding_cycle(stage.world, stage.framework, decided)

    assert stage.is_tried(BIG)
    assert decided.cycle.read(fwk.PODS_TO_ACTIVATE) == {}


@pytest.mark.parametrize(
    ("seconds", "times"), [(29, 0), (45, 1), (75, 2)], ids=["not yet", "after half a minute", "and once more"]
)
async def test_a_binding_that_no_watch_has_shown_is_requested_again(seconds: float, times: int) -> None:
    stage, decided = decided_with(Noting())
    unconfirmed = UnconfirmedBindings(stage.world)
    unconfirmed.add(decided.pod, decided.node)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(unconfirmed.run(), seconds)

    assert [call.node for call in stage.calls_of(fwk.BindPod)] == ["n"] * times

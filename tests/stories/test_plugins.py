"""What plugins say from Reserve to PostBind, and what comes of it.

Upstream: test/integration/scheduler/plugins/plugins_test.go.
"""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from extender.engine import framework as fwk
from extender.values.objects.pod import Pod
from tests.kit.objects import is_binding, node, pod, refusal
from tests.kit.places import without_place
from tests.kit.saying_plugins import WAIT, binding, filtering, holding, permitting, post_binding, pre_binding, reserving
from tests.kit.scene import a_scene

REFUSED = "0/1 nodes are available: 1 not now."
BOUND = ("Scheduled", "Successfully assigned default/p to n")


def _done(_: Pod) -> fwk.Status:
    return fwk.SUCCESS


def _refuses(_: Pod) -> fwk.Status:
    return fwk.unschedulable("not now")


async def _fails_to_prepare(_: Pod) -> fwk.Status:
    return fwk.error("not now")


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(reserving(_refuses, name="Failing"), id="TestUnReserveReservePlugins"),
        pytest.param(
            permitting(lambda *_: (fwk.unschedulable("not now"), 0), "Failing"), id="TestUnReservePermitPlugins"
        ),
        pytest.param(permitting(lambda *_: (WAIT, 0.5), "Failing"), id="TestUnReservePermitPlugins, after a while"),
        pytest.param(pre_binding(_fails_to_prepare, "Failing"), id="TestUnReservePreBindPlugins"),
        pytest.param(None, id="TestUnReserveBindPlugins"),
    ],
)
@pytest.mark.anywhere
async def test_failed_attempt_is_unreserved_once_in_reverse_order(failing: type[fwk.Plugin] | None) -> None:
    """TestUnReserveReservePlugins, ...PermitPlugins, ...PreBindPlugins, ...BindPlugins."""
    given_back: list[str] = []
    plugins = [reserving(_done, lambda _, name=name: given_back.append(name), name) for name in ("First", "Second")]  # type: ignore[misc]
    plugins[1:1] = [failing] if failing is not None else []

    def refuses(request: httpx.Request) -> httpx.Response | None:
        return refusal(403, "Forbidden", "not now") if failing is None and is_binding(request) else None

    async with a_scene(node("n"), plugins=plugins, interfere=refuses) as scene:
        await scene.has(pod("p"), within=0.9)

        assert given_back == ["Second", "First"]
        assert scene.node_of("p") == ""
        assert not scene.is_assumed("p")


@pytest.mark.anywhere
async def test_a_plugin_that_prepares_may_fail_and_others_are_not_asked_then() -> None:
    """TestPrebindPlugin."""
    prepared: list[str] = []
    fails = [True]

    async def first(_: Pod) -> fwk.Status:
        return fwk.error("broken disk") if fails else fwk.SUCCESS

    async def second(pod: Pod) -> fwk.Status:
        prepared.append(pod.name)
        return fwk.SUCCESS

    async with a_scene(node("n"), plugins=[pre_binding(first, "One"), pre_binding(second, "Two")]) as scene:
        await scene.has(pod("p"), within=0.5)

        assert scene.condition("p") == ("False", "SchedulerError", 'running PreBind plugin "One": broken disk')
        assert (scene.waits_in("p"), prepared) == ("error backoff", [])

        fails.clear()
        await scene.passes(5)

        assert (scene.node_of("p"), prepared) == ("n", ["p"])


@pytest.mark.anywhere
async def test_a_refusal_at_the_end_is_tried_again_without_an_event() -> None:
    """A PreBind that says Unschedulable: the pod is unschedulable in words, and waits for nothing but its pause."""

    async def refuses(_: Pod) -> fwk.Status:
        return fwk.unschedulable("not now")

    async with a_scene(node("n"), plugins=[pre_binding(refuses)]) as scene:
        await scene.has(pod("p"), within=0.5)

        assert scene.condition("p") == ("False", "Unschedulable", "not now")
        assert (scene.waits_in("p"), scene.refused_by("p")) == ("error backoff", set())


def _binder(status: fwk.Status, name: str, calls: list[str]) -> type[fwk.Plugin]:
    async def says(pod: Pod, where: str, handle: fwk.Handle) -> fwk.Status:
        calls.append(name)
        if status.is_success:
            assert handle.dispatcher is not None
            await handle.dispatcher.perform(fwk.BindPod.of(pod, where))
        return status

    return binding(says, name)


@pytest.mark.parametrize(
    ("says", "expected_calls", "events"),
    [
        pytest.param([fwk.SKIP, fwk.SUCCESS], ["First", "Second"], [BOUND], id="the second"),
        pytest.param([fwk.SUCCESS, fwk.SUCCESS], ["First"], [BOUND], id="the first"),
        pytest.param([fwk.SKIP, fwk.SKIP], ["First", "Second"], [], id="no plugin, without a message"),
        pytest.param(
            [fwk.error("broken"), fwk.SUCCESS],
            ["First"],
            [("FailedScheduling", 'running Bind plugin "First": broken')],
            id="an error",
        ),
        pytest.param(
            [fwk.unschedulable("never"), fwk.SUCCESS], ["First"], [("FailedScheduling", "never")], id="a refusal"
        ),
    ],
)
@pytest.mark.anywhere
async def test_the_first_binder_that_does_not_skip_a_pod_has_bound_it_or_failed(
    says: list[fwk.Status], expected_calls: list[str], events: list[tuple[str, str]]
) -> None:
    """TestBindPlugin, five cases."""
    calls: list[str] = []
    after: list[str] = []
    binders = [_binder(status, name, calls) for status, name in zip(says, ["First", "Second"], strict=True)]
    plugins = [*binders, post_binding(lambda pod, _: after.append(pod.name))]
    async with a_scene(node("n"), plugins=plugins, without=("DefaultBinder",)) as scene:
        await scene.has(pod("p"), within=0.5)

        assert calls == expected_calls
        assert scene.events("p") == events
        is_bound = bool(events) and events[0][0] == "Scheduled"
        assert (scene.node_of("p"), after) == (("n", ["p"]) if is_bound else ("", []))
        if not is_bound:
            assert scene.waits_in("p") == "error backoff"
        if not events:
            assert scene.condition("p") is None


# TestPermitPlugin (its refusals: test_one_attempt.py); TestMultiplePermitPlugins; TestPermitPluginsCancelled.


@pytest.mark.anywhere
async def test_a_pod_that_waits_goes_on_once_it_is_allowed_to() -> None:
    """TestPermitPlugin, wait and allow: meanwhile it takes its room."""
    handles: list[fwk.Handle] = []

    def says(pod: Pod, handle: fwk.Handle) -> tuple[fwk.Status, float]:
        handles.append(handle)
        return (WAIT, 60) if pod.name == "held" else (fwk.SUCCESS, 0)

    async with a_scene(node("n"), plugins=[permitting(says)]) as scene:
        await scene.has(pod("held", "1500m"), pod("other", "1500m"))
        assert (scene.node_of("held"), scene.node_of("other")) == ("", "")

        (waiting,) = handles[0].waiting_pods
        assert (waiting.pod.name, waiting.pod.spec.node_name, list(waiting.pending_plugins)) == (
            "held",
            "n",
            ["Permitting"],
        )
        waiting.allow("Permitting")
        await scene.passes(1)

        assert (scene.node_of("held"), scene.node_of("other")) == ("n", "")
        assert list(handles[0].waiting_pods) == []


@pytest.mark.anywhere
async def test_pod_is_bound_once_all_permit_plugins_allow_it() -> None:
    """TestMultiplePermitPlugins."""
    async with a_scene(node("n"), plugins=[holding("p", 60, "First"), holding("p", 60, "Second")]) as scene:
        await scene.has(pod("p"))
        (waiting,) = scene.alone.world.waiting_pods

        waiting.allow("First")
        await scene.passes(1)
        assert (scene.node_of("p"), waiting.pending_plugins) == ("", ["Second"])

        waiting.allow("Second")
        await scene.passes(1)
        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_stopping_scheduler_does_not_wait_for_held_pods() -> None:
    """TestPermitPluginsCancelled: the story ends, fifteen minutes early."""
    async with a_scene(node("n"), plugins=[holding("p", 3600)]) as scene:
        await scene.has(pod("p"))
        (waiting,) = scene.alone.world.waiting_pods
        begin = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() - begin < 60
    assert len(scene.alone.world.waiting_pods) == 0
    assert waiting.pod.name == "p"


async def test_permit_holds_a_pod_for_fifteen_minutes_at_most() -> None:
    async with a_scene(node("n"), plugins=[holding("p", 36000)]) as scene:
        await scene.has(pod("p"), within=890)
        assert scene.is_assumed("p")

        await scene.passes(20)

        waited = "0/1 nodes are available: 1 rejected due to timeout after waiting 15m0s at plugin Permitting."
        assert scene.events("p") == [("FailedScheduling", waited)]


@pytest.mark.anywhere
async def test_a_pod_may_have_to_wait_for_its_companions() -> None:
    """TestCoSchedulingWithPermitPlugin: the last one lets all others go."""

    def says(pod: Pod, handle: fwk.Handle) -> tuple[fwk.Status, float]:
        waiting = list(handle.waiting_pods)
        if len(waiting) < 2:
            return WAIT, 60
        for other in waiting:
            other.allow("Permitting")
        return fwk.SUCCESS, 0

    async with a_scene(node("n"), plugins=[permitting(says)]) as scene:
        await scene.has(pod("one", "100m"), pod("two", "100m"))
        assert [scene.node_of(name) for name in ("one", "two")] == ["", ""]

        await scene.has(pod("three", "100m"))

        assert [scene.node_of(name) for name in ("one", "two", "three")] == ["n", "n", "n"]


@pytest.mark.anywhere
async def test_pods_that_a_plugin_names_are_tried_next() -> None:
    """TestActivatePods: once at the end of a successful cycle, and once after PostBind; whatever they wait for."""

    def says(pod: Pod, state: fwk.CycleState) -> None:
        if pod.name == "caller":
            state.read(fwk.PODS_TO_ACTIVATE).update(activated)

    activated: dict[str, Pod] = {}
    may_run: list[bool] = []

    def let_in(pod: Pod, _: fwk.NodeInfo) -> fwk.Status:
        return fwk.SUCCESS if may_run or pod.name == "caller" else fwk.unschedulable("not yet")

    async with a_scene(node("n"), plugins=[filtering(let_in), post_binding(says)]) as scene:
        await scene.has(pod("sleeper", "100m"), pod("stranger", "100m"))
        assert scene.waits_in("sleeper") == "unschedulable"
        may_run.append(True)
        sleeper = scene.alone.world.pod_by_key("default/sleeper")
        assert sleeper is not None
        activated["default/sleeper"] = sleeper

        await scene.has(pod("caller", "100m"))

        assert scene.node_of("sleeper") == "n"
        assert scene.waits_in("stranger") == "unschedulable"


@pytest.mark.anywhere
async def test_pods_that_a_plugin_names_are_tried_though_the_pod_of_the_cycle_still_waits() -> None:
    """TestActivatePods, from Permit: the companions that a pod waits for must not wait for it."""
    may_run: list[bool] = []

    class Calling(fwk.PermitPlugin):
        def permit(self, state: fwk.CycleState, pod: Pod, node: str) -> tuple[fwk.Status, float]:
            if pod.name != "caller":
                return fwk.SUCCESS, 0
            sleeper = scene.alone.world.pod_by_key("default/sleeper")
            assert sleeper is not None
            may_run.append(True)
            state.read(fwk.PODS_TO_ACTIVATE)["default/sleeper"] = sleeper
            return WAIT, 600

    def let_in(pod: Pod, _: fwk.NodeInfo) -> fwk.Status:
        return fwk.SUCCESS if may_run or pod.name == "caller" else fwk.unschedulable("not yet")

    async with a_scene(node("n"), plugins=[filtering(let_in), Calling]) as scene:
        await scene.has(pod("sleeper", "100m"))
        assert scene.waits_in("sleeper") == "unschedulable"

        await scene.has(pod("caller", "100m"))

        assert (scene.node_of("sleeper"), scene.node_of("caller")) == ("n", "")


# TestPluginPanic: an exception of a plugin is the affair of one pod.


class _OutOfOrderError(RuntimeError):
    pass


def _raises(*_: object) -> fwk.Status:
    raise _OutOfOrderError("out of order")


async def _raises_later(*_: object) -> fwk.Status:
    raise _OutOfOrderError("out of order")


async def _is_cancelled(_: Pod) -> fwk.Status:
    raise asyncio.CancelledError


def _unless(name: str, says: Callable[..., fwk.Status]) -> Callable[..., fwk.Status]:
    return lambda pod, *more: says(pod, *more) if pod.name == name else fwk.SUCCESS


def _unless_later(name: str, says: Callable[[Pod], Awaitable[fwk.Status]]) -> Callable[[Pod], Awaitable[fwk.Status]]:
    async def answer(pod: Pod) -> fwk.Status:
        return await says(pod) if pod.name == name else fwk.SUCCESS

    return answer


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        pytest.param(filtering(_unless("p", _raises), "X"), 'running "X" filter plugin: out of order', id="Filter"),
        pytest.param(
            reserving(_unless("p", _raises), name="X"), 'running Reserve plugin "X": out of order', id="Reserve"
        ),
        pytest.param(
            permitting(lambda pod, _: (_unless("p", _raises)(pod), 0), "X"),
            'running Permit plugin "X": out of order',
            id="Permit",
        ),
        pytest.param(
            pre_binding(_unless_later("p", _raises_later), "X"),
            'running PreBind plugin "X": out of order',
            id="PreBind",
        ),
        pytest.param(
            pre_binding(_unless_later("p", _is_cancelled), "X"),
            'running PreBind plugin "X": context canceled',
            id="PreBind is cancelled",
        ),
    ],
)
@pytest.mark.anywhere
async def test_a_plugin_that_raises_fails_that_pod_and_no_other(broken: type[fwk.Plugin], message: str) -> None:
    given_back: list[str] = []
    keeps = reserving(_done, lambda pod: given_back.append(pod.name), "Keeps")
    async with a_scene(node("n"), plugins=[keeps, broken]) as scene:
        await scene.has(pod("p", "1500m"), within=0.5)

        assert without_place(" ".join(scene.condition("p") or ())) == f"False SchedulerError {message}"
        assert scene.waits_in("p") == "error backoff"
        assert given_back == ([] if message.startswith('running "X" filter') else ["p"])

        await scene.has(pod("q", "1500m"))

        assert scene.node_of("q") == "n"


@pytest.mark.anywhere
async def test_a_plugin_that_raises_while_it_gives_back_does_not_keep_the_others_from_it() -> None:
    given_back: list[str] = []
    plugins = [
        reserving(_done, lambda pod: given_back.append(pod.name), "First"),
        reserving(_refuses, _raises, "Second"),  # type: ignore[arg-type]
    ]
    async with a_scene(node("n"), plugins=plugins) as scene:
        await scene.has(pod("p"))

        assert given_back == ["p"]
        assert scene.condition("p") == ("False", "Unschedulable", REFUSED)


@pytest.mark.anywhere
async def test_a_plugin_that_raises_after_the_binding_changes_nothing() -> None:
    async with a_scene(node("n"), plugins=[post_binding(_raises)]) as scene:  # type: ignore[arg-type]
        await scene.has(pod("p"))

        assert scene.node_of("p") == "n"
        assert scene.events("p") == [BOUND]

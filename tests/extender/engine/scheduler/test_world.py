"""Pods whose PreBind is under way can be called off; what was done cannot."""

import asyncio

import pytest

from extender.engine import framework as fwk
from extender.engine.scheduler.scheduling_cycle import nominations_of
from extender.engine.scheduler.world import PodsInPreBind
from extender.testing import make_node, make_pod
from tests.extender.engine.scheduler.stage import a_stage


async def _after(seconds: float, status: fwk.Status = fwk.SUCCESS) -> fwk.Status:
    await asyncio.sleep(seconds)
    return status


async def test_status_of_pre_bind_is_returned() -> None:
    status = await PodsInPreBind().run("p", asyncio.ensure_future(_after(1, fwk.unschedulable("no"))))

    assert status == fwk.unschedulable("no")


async def test_cancelled_pre_bind_ends_with_the_reason() -> None:
    pods, work = PodsInPreBind(), asyncio.ensure_future(_after(600))
    asyncio.get_running_loop().call_later(2, pods.cancel, "p", "preempted by DefaultPreemption")
    status, time, was_cancelled = (await pods.run("p", work), asyncio.get_running_loop().time(), work.cancelled())

    assert status == fwk.error("preempted by DefaultPreemption")
    assert time == pytest.approx(2)
    assert was_cancelled


async def test_a_plugin_that_does_not_let_itself_be_called_off_has_not_succeeded() -> None:
    """The room is promised to another by then."""

    async def stubborn() -> fwk.Status:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(3)
        return fwk.SUCCESS

    pods = PodsInPreBind()
    asyncio.get_running_loop().call_later(2, pods.cancel, "p", "preempted")

    assert await pods.run("p", asyncio.ensure_future(stubborn())) == fwk.error("preempted")


async def test_pod_that_is_not_in_pre_bind_cannot_be_cancelled() -> None:
    pods = PodsInPreBind()
    before = pods.cancel("p", "too early")
    work = asyncio.ensure_future(_after(1))
    under_way = asyncio.ensure_future(pods.run("p", work))
    await work
    at_its_end = pods.cancel("p", "too late")
    assert (await under_way).is_success

    assert (before, at_its_end, pods.cancel("p", "much too late")) == (False, False, False)


async def test_a_plugin_that_something_else_cancels_has_failed() -> None:
    work = asyncio.ensure_future(_after(600))
    asyncio.get_running_loop().call_later(1, work.cancel)

    assert await PodsInPreBind().run("p", work) == fwk.error("context canceled")


async def test_when_the_scheduler_ends_so_does_what_is_under_way() -> None:
    work = asyncio.ensure_future(_after(600))
    binding = asyncio.ensure_future(PodsInPreBind().run("p", work))
    await asyncio.sleep(1)
    binding.cancel()
    await asyncio.sleep(1)

    assert work.cancelled()


async def test_nominations_are_those_of_others() -> None:
    """A member of a group that is tried as a whole does not stand in the way of the next one."""
    stage, member, other = a_stage(), make_pod("member").uid("m").obj(), make_pod("other").uid("o").obj()
    stage.node(make_node("n"))
    for pod in (member, other):
        stage.tell(None, pod)
        stage.world.queue.add_nominated_pod(pod, "n")

    nominations = nominations_of(stage.world, but={"m"})

    assert [pod for _, pod in nominations.by_node["n"]] == [other]

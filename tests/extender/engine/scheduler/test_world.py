"""Pods whose PreBind is under way can be called off; what was done cannot."""

import asyncio

import pytest

from extender.engine import framework as fwk
from extender.engine.scheduler.world import PodsInPreBind
from extender.values.concurrency.virtual_time import run


async def _after(seconds: float, status: fwk.Status = fwk.SUCCESS) -> fwk.Status:
    await asyncio.sleep(seconds)
    return status


def test_status_of_pre_bind_is_returned() -> None:
    async def main() -> fwk.Status:
        return await PodsInPreBind().run("p", asyncio.ensure_future(_after(1, fwk.unschedulable("no"))))

    assert run(main()) == fwk.unschedulable("no")


def test_cancelled_pre_bind_ends_with_the_reason() -> None:
    async def main() -> tuple[fwk.Status, float, bool]:
        pods, work = PodsInPreBind(), asyncio.ensure_future(_after(600))
        asyncio.get_running_loop().call_later(2, pods.cancel, "p", "preempted by DefaultPreemption")
        return await pods.run("p", work), asyncio.get_running_loop().time(), work.cancelled()

    status, time, was_cancelled = run(main())

    assert status == fwk.error("preempted by DefaultPreemption")
    assert time == pytest.approx(2)
    assert was_cancelled


def test_a_plugin_that_does_not_let_itself_be_called_off_has_not_succeeded() -> None:
    """The room is promised to another by then."""

    async def stubborn() -> fwk.Status:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(3)
        return fwk.SUCCESS

    async def main() -> fwk.Status:
        pods = PodsInPreBind()
        asyncio.get_running_loop().call_later(2, pods.cancel, "p", "preempted")
        return await pods.run("p", asyncio.ensure_future(stubborn()))

    assert run(main()) == fwk.error("preempted")


def test_pod_that_is_not_in_pre_bind_cannot_be_cancelled() -> None:
    async def main() -> tuple[bool, bool, bool]:
        pods = PodsInPreBind()
        before = pods.cancel("p", "too early")
        work = asyncio.ensure_future(_after(1))
        under_way = asyncio.ensure_future(pods.run("p", work))
        await work
        at_its_end = pods.cancel("p", "too late")
        assert (await under_way).is_success
        return before, at_its_end, pods.cancel("p", "much too late")

    assert run(main()) == (False, False, False)


def test_a_plugin_that_something_else_cancels_has_failed() -> None:
    async def main() -> fwk.Status:
        work = asyncio.ensure_future(_after(600))
        asyncio.get_running_loop().call_later(1, work.cancel)
        return await PodsInPreBind().run("p", work)

    assert run(main()) == fwk.error("context canceled")


def test_when_the_scheduler_ends_so_does_what_is_under_way() -> None:
    async def main() -> bool:
        work = asyncio.ensure_future(_after(600))
        binding = asyncio.ensure_future(PodsInPreBind().run("p", work))
        await asyncio.sleep(1)
        binding.cancel()
        await asyncio.sleep(1)
        return work.cancelled()

    assert run(main())

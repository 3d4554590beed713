"""The loop: who is taken up, and when nobody is."""

import asyncio
from dataclasses import replace

import pytest

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.scheduler.scheduler import Scheduler
from extender.scheduler.world import BindsInFlight
from extender.testing import make_node, make_pod
from extender.testing.virtual_time import run
from tests.extender.scheduler.stage import PROFILE, a_stage


class Slow(fwk.PermitPlugin, fwk.BindPlugin):
    """
    Binds when it may. Pods with the label `waits` wait at Permit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.may = asyncio.Event()

    def permit(self, state: fwk.CycleState, pod: Pod, node: str) -> tuple[fwk.Status, float]:
        return (fwk.Status(fwk.Code.WAIT), 600.0) if "waits" in pod.labels else (fwk.SUCCESS, 0.0)

    async def bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self.asked.append(pod.name)
        await self.may.wait()
        return fwk.SUCCESS


def scheduling(most: int, names: list[str], waiting: int = 0) -> tuple[Scheduler, Slow]:
    slow = Slow()
    stage = a_stage(slow)
    stage.node(make_node("n").capacity(cpu="64", pods="110"))
    for number in range(waiting):
        stage.told(None, make_pod(f"waits{number}").label(waits="yes").priority(9))
    for name in names:
        stage.told(None, make_pod(name))
    world = replace(stage.world, binds=BindsInFlight(most))
    return Scheduler(world, {PROFILE: stage.framework}), slow


def test_nobody_is_taken_up_while_too_many_bindings_are_not_answered() -> None:
    """
    P9: no unbounded growth of tasks while the API server is away; whoever waits at Permit keeps nobody from being tried.
    """

    async def main() -> tuple[list[str], list[str]]:
        scheduler, slow = scheduling(2, ["a", "b", "c", "d"], waiting=5)
        running = asyncio.ensure_future(scheduler.run())
        await asyncio.sleep(60)
        at_first = [*slow.asked]
        slow.may.set()
        await asyncio.sleep(60)
        running.cancel()
        await asyncio.wait([running])
        return at_first, slow.asked

    at_first, later = run(main())

    assert at_first == ["a", "b"]
    assert later == ["a", "b", "c", "d"]


def test_who_is_told_to_stop_takes_up_nobody_and_does_what_was_decided() -> None:
    async def main() -> tuple[float, list[str]]:
        scheduler, slow = scheduling(2, ["a", "b", "c"])
        running = asyncio.ensure_future(scheduler.run())
        await asyncio.sleep(60)
        scheduler.stop()
        asyncio.get_running_loop().call_later(3, slow.may.set)
        await running
        return asyncio.get_running_loop().time(), slow.asked

    ended, asked = run(main())

    assert asked == ["a", "b"]
    assert ended == pytest.approx(63)

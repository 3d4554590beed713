"""Real processes, real signals, real sockets: whatever happens to a scheduler of gangs, one that fits runs whole in the
end, and of one that does not fit no pod is bound at any time.

Bindings that were done are not taken back, here as upstream: a gang of which a scheduler had bound a part goes on whole
with the next one. A condition that could not be written once all members are bound is not written again, either. Time
is real, and decides nothing.
"""

import asyncio
import signal
from typing import Any, Final

import pytest

from extender.rules.api_resources import POD_GROUPS, Object
from tests.invariants.socket_server import SECONDS
from tests.invariants.stage import BINDING, VICTIM, Moment, Stage, eventually, said
from tests.invariants.worlds import World
from tests.kit.faults import Action, Call, Fault, answers
from tests.kit.objects import GROUP_GATES, pod_group

pytestmark = pytest.mark.slow
GATES = GROUP_GATES

FITS, TOO_LARGE = ("g0", "g1", "g2"), ("h0", "h1", "h2", "h3", "h4")
LOW = ("a", "b", "c")
"""Whoever has to go where room is made."""
CONDITION: dict[str, Any] = {"verb": "patch", "resource": "podgroups", "subresource": "status"}
WRITES: Final = ("create", "update", "patch", "delete")


def of_the_gang_that_fits(call: Call) -> bool:
    return call.name == "g"


def is_write(call: Call) -> bool:
    return call.verb in WRITES


MOMENTS = {
    "its first pod was popped": said("popped", FITS[0]),
    "its second pod is assumed": said("assumed", FITS[1]),
    "its last pod is assumed": said("assumed", FITS[2]),
    "its second pod is prepared": said("preparing", FITS[1]),
    "no binding has come": Moment(BINDING, holds_all=True),
    "one binding is done": Moment(BINDING, skip=1, holds_all=True),
    "two bindings are done": Moment(BINDING, skip=2, holds_all=True),
    "two bindings are done, and nobody knows of the third": Moment(BINDING, skip=2, is_done=True, holds_all=True),
    "all bindings are done, and none is known": Moment(BINDING, is_done=True, holds_all=True),
    "its condition is sent": Moment(CONDITION, of_the_gang_that_fits),
    "its condition is written": Moment(CONDITION, of_the_gang_that_fits, is_done=True),
    "its first victim is told": Moment(VICTIM, makes_room=True, holds_all=True),
    "one of its victims was told": Moment(VICTIM, skip=1, makes_room=True, holds_all=True),
    "two of its victims were told": Moment(VICTIM, skip=2, makes_room=True, holds_all=True),
    "all victims were told, and none is known": Moment(VICTIM, is_done=True, makes_room=True, holds_all=True),
}
each_moment = pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS.keys())

FAULTS: dict[str, Action] = {
    "refused with 403": answers.status(403),
    "never come": answers.drop_before_commit(),
    "done and answered with 500": answers.commit_then(answers.status(500)),
}
KINDS: dict[str, Moment] = {
    "the first binding": Moment(BINDING),
    "the second binding": Moment(BINDING, skip=1),
    "the third binding": Moment(BINDING, skip=2),
    "the condition": Moment(CONDITION, of_the_gang_that_fits),
    "the first victim": Moment(VICTIM, makes_room=True),
    "the last victim": Moment(VICTIM, skip=2, makes_room=True),
}


def fill(world: World, *, makes_room: bool) -> None:
    """There is room for one of the gangs, or would be if others went, and for some pods of the other gang."""
    world.new_node("n", "3")
    world.new_node("m", "2")
    if makes_room:
        for name in LOW:
            world.new_pod(name, "1", priority="low", terminationGracePeriodSeconds=0)
            world.bind(name, "n")
    for gang, pods, priority, node in (("g", FITS, "high", "n"), ("h", TOO_LARGE, "middle", "m")):
        world.create(pod_group(gang, len(pods), priority))
        for name in pods:
            world.new_pod(
                name, "1", priority=priority, nodeSelector={"name": node}, schedulingGroup={"podGroupName": gang}
            )


def scheduled(group: Object) -> str:
    """What the group says about itself; empty as long as it says nothing."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    return next((str(condition["status"]) for condition in conditions if condition["type"] == "PodGroupScheduled"), "")


async def converges(stage: Stage, *, makes_room: bool, says_so: bool = True) -> None:
    """
    Arguments:
        says_so: False if the group need not say that it was scheduled.
    """
    world = stage.world

    async def is_settled() -> bool:
        fits, too_large = (scheduled(world.get(name, POD_GROUPS)) for name in "gh")
        return (
            all(map(world.node_of, FITS)) and fits in ("True", "" if not says_so else "True") and too_large == "False"
        )

    await eventually(is_settled)
    bindings = [write.name for write in world.monitor.writes if write.is_binding]
    assert not {*bindings} & {*TOO_LARGE}  # not even asked for
    assert sorted(write.name for write in world.monitor.done("binding")) == [*FITS]
    assert {*LOW} & {*world.names()} == set()
    assert sorted(write.name for write in world.monitor.done(verb="delete")) == ([*LOW] if makes_room else [])


@each_moment
async def test_the_next_process_carries_on_where_one_was_killed(stage: Stage, moment: Moment) -> None:
    """kill -9 between any two steps of a gang."""
    hold = stage.hold(moment)
    fill(stage.world, makes_room=moment.makes_room)
    async with stage.a_scheduler() as first:
        async with asyncio.timeout(SECONDS):
            await hold.reached.wait()
        first.told(signal.SIGKILL)
        assert await first.ends() == -signal.SIGKILL
    stage.server.faults.faults.clear()
    hold.drop()
    async with stage.a_scheduler():
        await converges(stage, makes_room=moment.makes_room, says_so=moment.where != CONDITION)


@pytest.mark.parametrize("makes_room", [False, True])
async def test_each_process_is_killed_at_its_next_write(stage: Stage, makes_room: bool) -> None:
    """The first at its first write, the second at its second, and so on, before or after the server has
    done it.
    """
    fill(stage.world, makes_room=makes_room)
    for number in range(5):
        hold = stage.hold(Moment({}, is_write, skip=number, is_done=number % 2 == 1, holds_all=True))
        async with stage.a_scheduler() as doomed:
            async with asyncio.timeout(SECONDS):
                await hold.reached.wait()
            doomed.told(signal.SIGKILL)
            await doomed.ends()
        stage.server.faults.faults.clear()
        hold.drop()
    async with stage.a_scheduler():
        await converges(stage, makes_room=makes_room)


@pytest.mark.parametrize("write", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_one_write_fails(stage: Stage, fault: Action, write: Moment) -> None:
    """The process goes on, and the gang that fits runs whole."""
    trouble = Fault(fault, **write.where, where=write.which, skip=write.skip)
    stage.server.faults.add(trouble)
    fill(stage.world, makes_room=write.makes_room)
    async with stage.a_scheduler():
        await converges(stage, makes_room=write.makes_room, says_so=write.where != CONDITION)

    assert trouble.struck

"""Real processes, real signals, real sockets: a scheduler is killed, or told to end, at each moment that matters, and
another one comes.

Whoever comes afterwards finds what the first one has left at the API server, and nothing else. Time is real, and
decides nothing.
"""

import asyncio
import signal
from typing import Any

import httpx
import pytest

from extender.rules.api_resources import LEASES, PODS
from tests.invariants.socket_server import SECONDS, Hold
from tests.invariants.stage import BINDING, VICTIM, Moment, Stage, eventually, said
from tests.invariants.worlds import World
from tests.kit.faults import Call, Fault, answers

POD = "web"
LOW = ("a", "b", "c")
"""Whoever has to go where room is made."""


def promises(call: Call) -> bool:
    return b"nominatedNodeName" in call.request.content


def announces(call: Call) -> bool:
    return b'"Scheduled"' in call.request.content


PROMISE: dict[str, Any] = {"verb": "patch", "resource": "pods", "name": POD}

MOMENTS = {
    "it was popped": said("popped", POD),
    "it is assumed": said("assumed", POD),
    "it waits at Permit": Moment(PROMISE, promises, is_done=True, waits=True),
    "it is prepared": said("preparing", POD),
    "its binding was sent": Moment(BINDING),
    "its binding is done": Moment(BINDING, is_done=True),
    "its binding is known to be done": said("bound", POD),
    "its event is told": Moment({"verb": "create", "resource": "events"}, announces),
    "room is promised to it": Moment(PROMISE, promises, makes_room=True),
    "the promise is written": Moment(PROMISE, promises, is_done=True, makes_room=True),
    "its first victim is told": Moment(VICTIM, makes_room=True),
    "its second victim is told": Moment(VICTIM, skip=1, makes_room=True),
    "its second victim was told": Moment(VICTIM, skip=1, is_done=True, makes_room=True),
    "its last victim was told": Moment(VICTIM, skip=2, is_done=True, makes_room=True),
}
each_moment = pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS.keys())
SIMILAR = ("its event is told", "room is promised to it", "its first victim is told", "its second victim was told")


def holder(stage: Stage) -> str:
    """Who leads."""
    return str(stage.world.registry.get(LEASES, "kube-system", "kube-scheduler")["spec"]["holderIdentity"])


def hold_at(stage: Stage, moment: Moment) -> Hold:
    """The request of that moment is held."""
    if moment.waits:
        fault = Fault(answers.answer("{}"), where=lambda call: call.request.url.path == f"/progress/permit/{POD}")
        stage.server.faults.add(fault)
    return stage.hold(moment)


def fill(world: World, moment: Moment) -> None:
    """The cluster as it is before the pod comes: its nodes are full, unless there is to be room."""
    for node, priority, names in (("n", "low", LOW), ("m", "middle", ("x", "y", "z"))):
        world.new_node(node, "3")
        for name in names:
            world.new_pod(name, "1", priority=priority, nodeSelector={"name": node}, terminationGracePeriodSeconds=0)
    for name in ("a", "b", "c", "x", "y", "z"):
        world.bind(name, "n" if name in LOW else "m")
    if not moment.makes_room:
        world.new_node("k", "3")
    world.new_pod(POD, "3", priority="high")


async def converges(stage: Stage) -> None:
    """Returns when nothing is wrong, as far as the server and the process that is there now say."""
    world = stage.world
    async with httpx.AsyncClient(trust_env=False) as client:
        await eventually(lambda: is_idle(stage, client))
    assert world.monitor.complaints == []
    assert len([write for write in world.monitor.done("binding") if write.name == POD]) == 1


async def is_idle(stage: Stage, client: httpx.AsyncClient) -> bool:
    if not all(pod["spec"].get("nodeName") for pod in stage.world.registry.list(PODS)):
        return False
    try:
        text = (await client.get(stage.metrics)).text
    except httpx.TransportError:
        return False
    figures = dict(line.rpartition(" ")[::2] for line in text.splitlines() if not line.startswith("#"))
    waiting = [float(value) for name, value in figures.items() if name.startswith("scheduler_pending_pods{")]
    return bool(waiting) and sum(waiting) == 0 and float(figures['scheduler_cache_size{type="assumed_pods"}']) == 0


@each_moment
async def test_the_next_process_carries_on_where_one_was_killed(stage: Stage, moment: Moment) -> None:
    """Kill -9. Nobody is bound twice, no more victims go than had to, and everybody runs in the end."""
    hold = hold_at(stage, moment)
    fill(stage.world, moment)
    async with stage.a_scheduler() as first:
        async with asyncio.timeout(SECONDS):
            await hold.reached.wait()
        first.told(signal.SIGKILL)
        assert await first.ends() == -signal.SIGKILL
    hold.drop()
    async with stage.a_scheduler():
        await converges(stage)

    gone_pods = {"a", "b", "c", "x", "y", "z"} - set(stage.world.names())
    assert gone_pods == (set(LOW) if moment.makes_room else set())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MOMENTS if name not in SIMILAR])
async def test_terminated_scheduler_finishes_what_it_decided_and_ends_in_order(stage: Stage, name: str) -> None:
    """SIGTERM. It ends by itself and in order: nothing that it could still do is left when the lease is given back."""
    moment, elects = MOMENTS[name], name in ("its binding was sent", "its second victim is told")
    hold = hold_at(stage, moment)
    fill(stage.world, moment)
    async with stage.a_scheduler(elects=elects) as first:
        async with asyncio.timeout(SECONDS):
            await hold.reached.wait()
        first.told(signal.SIGTERM)
        await asyncio.sleep(0.1)
        hold.go()
        assert await first.ends() == 0
        assert "Traceback" not in first.said()
        assert not elects or holder(stage) == ""
        if not (moment.waits or moment.makes_room):
            assert stage.world.node_of(POD)  # decided is decided
    async with stage.a_scheduler():
        await converges(stage)

    gone_pods = {"a", "b", "c", "x", "y", "z"} - set(stage.world.names())
    assert gone_pods == (set(LOW) if moment.makes_room else set())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["it is prepared", "its binding was sent", "its binding is done", "its second victim is told"]
)
async def test_second_sigterm_ends_the_process_at_once(stage: Stage, name: str) -> None:
    """What is under way is left to the next one, as if it had been killed; the exit code and the last line say so."""
    hold = hold_at(stage, MOMENTS[name])
    fill(stage.world, MOMENTS[name])
    async with stage.a_scheduler() as first:
        async with asyncio.timeout(SECONDS):
            await hold.reached.wait()
        first.told(signal.SIGTERM)
        await eventually(first.says("Shutting down"))
        first.told(signal.SIGTERM)
        assert await first.ends() == 4
        assert first.said().splitlines()[-1].startswith("reprieve: ended by a second signal")
    hold.drop()
    async with stage.a_scheduler():
        await converges(stage)


async def test_second_sigterm_after_the_server_has_ended_does_not_kill_the_process(stage: Stage) -> None:
    """Or says that it was told a second time; but the signal does not kill it."""
    async with stage.a_scheduler() as first:
        await eventually(first.says("Application startup complete"))
        first.told(signal.SIGTERM)
        while "Finished server process" not in first.said():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0)
        first.told(signal.SIGTERM)
        assert await first.ends() in (0, 4)

"""The scheduler dies, or is told to end, at the worst moments."""

import asyncio
import random
from collections.abc import Callable

import httpx
import pytest

from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.values.config import Configuration
from extender.values.targets.target import Target
from tests.invariants.oracle import settles
from tests.invariants.worlds import World, a_world
from tests.kit.faults import Action, Call, Fault, FaultyTransport, answers
from tests.kit.faults.script import Forward

Where = dict[str, str]


def dying(world: World, *, after_commit: bool) -> Action:
    """The process ends as this request is about to be sent, or right after the server has done it: nothing more comes
    from it.
    """

    async def act(call: Call, forward: Forward) -> httpx.Response:
        if after_commit:
            await (await forward()).aread()
        world.faults.go_down()
        raise httpx.ConnectError("connection refused")

    return act


def is_nomination(call: Call) -> bool:
    return b"nominatedNodeName" in call.request.content


@pytest.mark.parametrize("after_commit", [False, True], ids=["before it is sent", "after it is done"])
@pytest.mark.parametrize(
    ("where", "which", "skip"),
    [
        pytest.param({"verb": "create", "subresource": "binding"}, None, 0, id="at the binding"),
        pytest.param({"verb": "patch"}, is_nomination, 0, id="at the promise"),
        pytest.param({"verb": "delete"}, None, 0, id="at the first victim"),
        pytest.param({"verb": "delete"}, None, 1, id="between the victims"),
        pytest.param({"verb": "delete"}, None, 2, id="at the last victim"),
    ],
)
async def test_the_next_process_carries_on_where_one_was_killed(
    where: Where, which: Callable[[Call], bool] | None, skip: int, after_commit: bool
) -> None:
    """It converges, and nobody has to go besides those who had to."""
    async with a_world() as world:
        world.node("n", "3")
        world.node("m", "3")
        for name in ("a", "b", "c"):
            world.pod(name, "1", priority="low", nodeSelector={"name": "n"})
        for name in ("x", "y", "z"):
            world.pod(name, "1", priority="middle", nodeSelector={"name": "m"})
        await asyncio.sleep(10)
        verb, subresource = where["verb"], where.get("subresource")
        world.faults.add(
            Fault(
                dying(world, after_commit=after_commit),
                verb=verb,
                resource="pods",
                subresource=subresource,
                where=which,
                skip=skip,
            )
        )
        cpu = "3" if verb in ("patch", "delete") else "100m"
        if verb == "create":
            world.node("k", "3")
        world.pod("high", cpu, priority="high")
        await asyncio.sleep(20)
        assert not world.faults.missed
        await world.restart()
        await settles(world, but_first=30)

        assert world.node_of("high")
        gone = {"a", "b", "c", "x", "y", "z"} - set(world.names())
        assert gone == (set() if verb == "create" else {"a", "b", "c"})
        assert len([write for write in world.monitor.done("binding") if write.name == "high"]) == 1


@pytest.mark.parametrize("how", [answers.delay(3), answers.commit_late(2)], ids=["slow", "late"])
async def test_stopped_scheduler_finishes_its_binding_and_writes_nothing_afterwards(how: Action) -> None:
    async with a_world() as world:
        await world.life.kill()
        world.node("n")
        faults = FaultyTransport(world.monitor, Fault(how, verb="create", subresource="binding"))
        client = Client(Target("http://embedded"), transport=faults, rng=random.Random(1))
        async with live_backend(Configuration(), client, LiveOptions(decides=True), rng=random.Random(1)):
            await asyncio.sleep(5)
            world.pod("web")
            await asyncio.sleep(0.5)
            assert world.node_of("web") == ""
        num_calls = len(faults.calls)
        world.pod("later")
        await asyncio.sleep(60)

        assert (world.node_of("web"), world.node_of("later")) == ("n", "")
        assert len(faults.calls) == num_calls
        assert world.events_of("web", "Scheduled") == 1
        assert not world.monitor.complaints
        await client.aclose()


async def test_stopped_scheduler_ends_while_the_server_is_away() -> None:
    """Within the seconds that there are for it."""
    async with a_world() as world:
        await world.life.kill()
        world.node("n")
        faults = FaultyTransport(
            world.monitor, Fault(answers.drop_before_commit(), verb="create", subresource="binding", times=None)
        )
        client = Client(Target("http://embedded"), transport=faults, rng=random.Random(1))
        async with live_backend(Configuration(), client, LiveOptions(decides=True), rng=random.Random(1)):
            await asyncio.sleep(5)
            world.pod("web")
            await asyncio.sleep(0.5)
            began = asyncio.get_running_loop().time()
        took = asyncio.get_running_loop().time() - began
        await client.aclose()

        assert took <= 15

"""The scheduler is told to end at the worst moments."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.values.config.configuration import Configuration
from extender.values.targets.target import Target
from tests.invariants.worlds import World, a_world
from tests.kit.faults import Action, Fault, FaultyTransport, answers


@asynccontextmanager
async def deciding(world: World, faults: FaultyTransport) -> AsyncIterator[None]:
    """A pod is being bound when the block ends, and with it the scheduler, as if it had been told to."""
    await world.life.kill()
    world.new_node("n")
    client = Client(Target("http://embedded"), transport=faults, rng=random.Random(1))
    async with live_backend(Configuration(), client, LiveOptions(decides=True), rng=random.Random(1)):
        await asyncio.sleep(5)
        world.new_pod("web")
        await asyncio.sleep(0.5)
        yield
    await client.aclose()


@pytest.mark.parametrize("how", [answers.delay(3), answers.commit_late(2)], ids=["slow", "late"])
async def test_stopped_scheduler_finishes_its_binding_and_writes_nothing_afterwards(how: Action) -> None:
    async with a_world() as world:
        faults = FaultyTransport(world.monitor, Fault(how, verb="create", subresource="binding"))
        async with deciding(world, faults):
            assert world.node_of("web") == ""
        num_calls = len(faults.calls)
        world.new_pod("later")
        await asyncio.sleep(60)

        assert (world.node_of("web"), world.node_of("later")) == ("n", "")
        assert len(faults.calls) == num_calls
        assert world.num_events("web", "Scheduled") == 1
        assert not world.monitor.complaints


async def test_stopped_scheduler_ends_while_the_server_is_away() -> None:
    """Within the seconds that there are for it."""
    async with a_world() as world:
        away = Fault(answers.drop_before_commit(), verb="create", subresource="binding", times=None)
        async with deciding(world, FaultyTransport(world.monitor, away)):
            began = asyncio.get_running_loop().time()

        assert asyncio.get_running_loop().time() - began <= 15

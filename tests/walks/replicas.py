"""Replicas of a scheduler beside one another, for stories about who of them leads. Everything is real but time."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from extender.assembly.backend import Backend
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.client.lease.leader_election import LeaderElector
from extender.cluster import OwnCluster, own_cluster
from extender.cluster.api_resources import LEASES, Object
from extender.cluster.in_memory import EmbeddedTransport
from extender.values.config import Configuration
from extender.values.targets.target import Target
from tests.kit.faults import Fault, FaultyTransport

WRITES = ("create", "update", "patch", "delete")


class Replica:
    """One of them, with a network and a boot clock of its own."""

    def __init__(
        self, name: str, own: OwnCluster, faults: Iterable[Fault], configuration: Configuration | None = None
    ) -> None:
        self.transport = FaultyTransport(EmbeddedTransport(own.api), *faults)
        self.slept = 0.0
        loop = asyncio.get_running_loop()
        self.configuration = configuration = configuration or Configuration()
        self.elector = LeaderElector(
            Client(Target("http://embedded"), transport=self.transport),
            configuration.leader_election,
            name,
            rng=random.Random(name),
            boot_time=lambda: loop.time() + self.slept,
        )
        self.client = Client(
            Target("http://embedded"),
            transport=self.transport,
            fence=self.elector.fence,
            write_seconds=self.elector.write_seconds,
        )
        self.following: Backend | None = None
        self._stack = AsyncExitStack()

    async def start(self) -> "Replica":
        await self._stack.enter_async_context(self._running())
        return self

    async def stop(self) -> None:
        """As SIGTERM does."""
        await self._stack.aclose()

    async def kill(self) -> None:
        """As kill -9 does: nothing that it may still do reaches anybody."""
        self.transport.go_down()
        await self.stop()

    @property
    def leads(self) -> bool:
        return self.elector.fence() is None

    @property
    def why_over(self) -> str:
        return self.following.why_over() if self.following is not None else ""

    def writes(self) -> int:
        return sum(self.transport.count(verb) for verb in WRITES)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        async with live_backend(
            self.configuration, self.client, LiveOptions(decides=True), elector=self.elector, rng=random.Random(1)
        ) as found:
            self.following = found
            yield


@asynccontextmanager
async def replicas(
    *objects: Object,
    first: Iterable[Fault] = (),
    second: Iterable[Fault] = (),
    configuration: Configuration | None = None,
) -> AsyncIterator[tuple[OwnCluster, Replica, Replica]]:
    """A cluster with two replicas: the first leads.

    Arguments:
        first, second: what goes wrong with their networks.
    """
    async with own_cluster(objects, rng=random.Random(1)) as own:
        leader = await Replica("first", own, first, configuration).start()
        await asyncio.sleep(0.5)
        standby = await Replica("second", own, second, configuration).start()
        await asyncio.sleep(0.5)
        try:
            yield own, leader, standby
        finally:
            await leader.stop()
            await standby.stop()


def holder(own: OwnCluster) -> str:
    return str(own.api.registry.get(LEASES, "kube-system", "kube-scheduler")["spec"]["holderIdentity"])

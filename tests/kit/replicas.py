"""Replicas of a scheduler that elect one of them, each with a network and a boot clock of its own. Everything is real but time."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import final

import httpx

from extender.assembly.backend import Backend
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.client.leader_election import LeaderElector
from extender.rules.api_resources import LEASES, Object
from extender.values.config.configuration import Configuration, LeaderElection
from extender.values.targets.target import Target
from reprieve.cluster import own_cluster
from tests.kit.cluster import NOW
from tests.kit.faults import Fault, FaultyTransport
from tests.kit.scene import ClusterByHand

WRITES = ("create", "update", "patch", "delete")


class Candidate:
    """Wants to lead, by a connection of its own; its network can go wrong, and its clocks can."""

    def __init__(
        self,
        name: str,
        server: httpx.AsyncBaseTransport,
        faults: Iterable[Fault] = (),
        election: LeaderElection | None = None,
    ) -> None:
        self.transport = FaultyTransport(server, *faults, rng=random.Random(name))
        self.slept = 0.0
        """Seconds for which the machine was asleep, which the event loop does not see."""
        self.wall_is_off_by = timedelta()
        loop, rng = asyncio.get_running_loop(), random.Random(name)
        self.elector = LeaderElector(
            Client(Target("http://embedded"), transport=self.transport, rng=rng),
            election or LeaderElection(),
            name,
            rng=rng,
            now=lambda: NOW + timedelta(seconds=loop.time()) + self.wall_is_off_by,
            boot_time=lambda: loop.time() + self.slept,
        )

    @property
    def leads(self) -> bool:
        return self.elector.fence() is None

    def writes(self) -> int:
        return sum(self.transport.count(verb) for verb in WRITES)


@final
class Replica(Candidate):
    """A scheduler of several, from its start to its end."""

    def __init__(
        self,
        name: str,
        server: httpx.AsyncBaseTransport,
        faults: Iterable[Fault] = (),
        configuration: Configuration | None = None,
    ) -> None:
        self._configuration = configuration or Configuration()
        super().__init__(name, server, faults, self._configuration.leader_election)
        self._rng = random.Random(name)
        self._client = Client(
            Target("http://embedded"),
            transport=self.transport,
            rng=self._rng,
            fence=self.elector.fence,
            write_seconds=self.elector.write_seconds,
        )
        self.following: Backend | None = None
        self._stack = AsyncExitStack()

    async def start(self) -> "Replica":
        options = LiveOptions(decides=True)
        self.following = await self._stack.enter_async_context(
            live_backend(self._configuration, self._client, options, elector=self.elector, rng=self._rng)
        )
        return self

    async def stop(self) -> None:
        """As SIGTERM does."""
        await self._stack.aclose()

    async def kill(self) -> None:
        """As kill -9 does: nothing that it may still do reaches anybody."""
        self.transport.go_down()
        await self.stop()

    @property
    def why_over(self) -> str:
        return self.following.why_over() if self.following is not None else ""


@asynccontextmanager
async def replicas(
    *objects: Object,
    first: Iterable[Fault] = (),
    second: Iterable[Fault] = (),
    configuration: Configuration | None = None,
) -> AsyncIterator[tuple[ClusterByHand, Replica, Replica]]:
    """A cluster with two replicas: the first leads.

    Arguments:
        first, second: what goes wrong with their networks.
    """
    async with own_cluster(objects, rng=random.Random(1)) as cluster:
        leader = await Replica("first", cluster.transport(), first, configuration).start()
        await asyncio.sleep(0.5)
        standby = await Replica("second", cluster.transport(), second, configuration).start()
        await asyncio.sleep(0.5)
        try:
            yield ClusterByHand(cluster.api.registry), leader, standby
        finally:
            await leader.stop()
            await standby.stop()


def holder(cluster: ClusterByHand) -> str:
    return str(cluster.registry.get(LEASES, "kube-system", "kube-scheduler")["spec"]["holderIdentity"])

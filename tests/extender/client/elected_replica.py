"""Replicas that want to lead, each with a connection of its own to one API server that goes wrong as scripted."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from extender.client.client import Client
from extender.client.leader_election import LeaderElector
from extender.rules.api_resources import LEASES, Object
from extender.testing import virtual_time
from extender.values.config.configuration import LeaderElection
from extender.values.targets.target import Target
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.kit.faults import Fault, FaultyTransport

T = TypeVar("T")

LEASE, RENEW, RETRY = 15.0, 10.0, 2.0
"""Seconds, of the default configuration."""


class Replica:
    """A candidate. Its clocks can go wrong, its network can, and it can freeze."""

    def __init__(self, identity: str, server: "Server", *faults: Fault, election: LeaderElection | None = None) -> None:
        self.transport = FaultyTransport(EmbeddedTransport(KubeApi(server.registry)), *faults)
        self.slept = 0.0
        """Seconds for which the machine was asleep, which the event loop does not see."""
        self.wall_is_off_by = timedelta()
        self.began_to_lead: float | None = None
        self.ended: tuple[float, str] | None = None
        self.elector = LeaderElector(
            Client(Target("http://server"), transport=self.transport, rng=random.Random(1)),
            election or LeaderElection(),
            identity,
            rng=random.Random(identity),
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=now()) + self.wall_is_off_by,
            boot_time=lambda: now() + self.slept,
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> "Replica":
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def kill(self) -> None:
        """As kill -9 does."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    async def stop(self) -> None:
        """As SIGTERM does."""
        await self.kill()
        await self.elector.release()

    @property
    def leads(self) -> bool:
        return self.elector.fence() is None

    def writes(self) -> int:
        return sum(self.transport.count(verb) for verb in ("create", "update"))

    async def _run(self) -> None:
        await self.elector.acquire()
        self.began_to_lead = now()
        why = await self.elector.keep()
        self.ended = now(), why


class Server:
    def __init__(self) -> None:
        self.registry = make_registry("kube-system")

    def lease(self) -> Object:
        return self.registry.get(LEASES, "kube-system", "kube-scheduler")

    def spec(self) -> Any:
        return self.lease()["spec"]

    def write(self, **spec: object) -> None:
        """Somebody writes into the lease."""
        lease = self.lease()
        self.registry.update(LEASES, "kube-system", "kube-scheduler", {**lease, "spec": {**lease["spec"], **spec}})

    def delete(self) -> None:
        self.registry.delete(LEASES, "kube-system", "kube-scheduler", {})


def now() -> float:
    return asyncio.get_running_loop().time()


async def never_two(*replicas: Replica, seconds: float) -> None:
    """Time passes, and at no moment two may write."""
    for _ in range(round(seconds * 20)):
        assert sum(replica.leads for replica in replicas) <= 1
        await asyncio.sleep(0.05)


def story(tell: Callable[[Server], Awaitable[T]]) -> T:
    async def main() -> T:
        try:
            return await tell(Server())
        finally:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    return virtual_time.run(main())

"""Replicas that want to lead, each with a connection of its own to one API server that goes wrong as scripted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from extender.rules.api_resources import LEASES, Object
from extender.testing import virtual_time
from extender.values.config.configuration import LeaderElection
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.kit.faults import Fault
from tests.kit.replicas import Candidate

T = TypeVar("T")

LEASE, RENEW, RETRY = 15.0, 10.0, 2.0
"""Seconds, of the default configuration."""


class Replica(Candidate):
    """A candidate that does nothing but lead."""

    def __init__(self, identity: str, server: "Server", *faults: Fault, election: LeaderElection | None = None) -> None:
        super().__init__(identity, EmbeddedTransport(KubeApi(server.registry)), faults, election)
        self.began_to_lead: float | None = None
        self.ended: tuple[float, str] | None = None
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

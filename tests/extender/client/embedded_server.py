"""The embedded API behind a transport that goes wrong as scripted, and a dispatcher that writes to it."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from extender.client.client import Client
from extender.client.writes.dispatcher import ApiDispatcher
from extender.testing import virtual_time
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from extender.values.targets.target import Target
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.kit.faults import Fault, FaultyTransport
from tests.kit.scene import ClusterByHand

T = TypeVar("T")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Server(ClusterByHand):
    """An API server with one namespace, and whoever writes to it."""

    def __init__(self, *faults: Fault, rng: random.Random | None = None) -> None:
        super().__init__(make_registry("default"))
        self.transport = FaultyTransport(EmbeddedTransport(KubeApi(self.registry)), *faults, rng=rng)
        self.fenced: str | None = None

    def count(self, verb: str, plural: str | None = None, subresource: str = "") -> int:
        """How many such requests came."""
        return sum(
            (call.verb, call.subresource) == (verb, subresource) and plural in (None, call.resource)
            for call in self.transport.calls
        )

    @asynccontextmanager
    async def dispatching(self) -> Any:
        client = Client(
            Target("http://server"), transport=self.transport, rng=random.Random(1), fence=lambda: self.fenced
        )
        dispatcher = ApiDispatcher(client, rng=random.Random(1), now=lambda: NOW, instance="host")
        running = asyncio.ensure_future(dispatcher.run())
        try:
            yield dispatcher
        finally:
            running.cancel()
            await asyncio.wait([running])
            await client.aclose()

    def run(self, story: Callable[[ApiDispatcher], Awaitable[T]]) -> T:
        """What the story returns, in virtual time."""

        async def main() -> T:
            async with self.dispatching() as dispatcher:
                return await story(dispatcher)

        return virtual_time.run(main())


BINDING: dict[str, Any] = {"verb": "create", "subresource": "binding"}
"""The requests that bind a pod, for a fault."""


def pod_on(server: Server, name: str = "p", **spec: Any) -> Pod:
    """A pod that waits for a node."""
    return convert(Pod, server.new_pod(name, **spec))

"""The embedded API behind a transport that goes wrong as scripted, and a dispatcher that writes to it."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from extender.client.client import Client
from extender.client.writes.dispatcher import ApiDispatcher
from extender.rules.api_resources import RESOURCES, Object, Resource
from extender.testing import virtual_time
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from extender.values.targets.target import Target
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.kit.faults import Fault, FaultyTransport

T = TypeVar("T")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Server:
    """An API server with one namespace, and whoever writes to it."""

    def __init__(self, *faults: Fault, rng: random.Random | None = None) -> None:
        self.registry = make_registry("default")
        self.transport = FaultyTransport(EmbeddedTransport(KubeApi(self.registry)), *faults, rng=rng)
        self.fenced: str | None = None

    def create(self, plural: str, name: str, namespace: str = "default", **members: Any) -> Object:
        metadata = {"name": name, **members.pop("metadata", {})}
        return self.registry.create(resource(plural), namespace, {"metadata": metadata, **members})

    def create_pod(self, name: str = "p", **spec: Any) -> Object:
        return self.create("pods", name, spec={"containers": [{"name": "c", "image": "i"}], **spec})

    def delete(self, plural: str, name: str) -> None:
        self.registry.delete(resource(plural), "default", name, {"gracePeriodSeconds": 0})

    def delete_pod(self, name: str = "p") -> None:
        self.delete("pods", name)

    def all(self, plural: str) -> list[Object]:
        return self.registry.list(resource(plural))

    def get(self, plural: str, name: str, namespace: str = "default") -> Object:
        return self.registry.get(resource(plural), namespace, name)

    def node_of(self, pod: str = "p") -> str:
        return str(self.get("pods", pod)["spec"].get("nodeName", ""))

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


def resource(plural: str) -> Resource:
    return next(one for one in RESOURCES if one.plural == plural)


BINDING: dict[str, Any] = {"verb": "create", "subresource": "binding"}
"""The requests that bind a pod, for a fault."""


def pod_on(server: Server, name: str = "p", **spec: Any) -> Pod:
    """A pod that waits for a node."""
    return convert(Pod, server.create_pod(name, **spec))

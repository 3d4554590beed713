"""Where stories are told: in memory, where time passes at once, or over sockets, where it passes as it does."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, final

import httpx

from extender.client.client import Client
from extender.rules.api_resources import PODS, Object
from extender.rules.seeding import seed
from extender.testing import virtual_time
from extender.values.config.configuration import Extender
from extender.values.config.feature_gates import FeatureGates
from extender.values.targets.target import Target
from reprieve.cluster import own_cluster
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.kit.objects import PRIORITIES, resource_of
from tests.kit.scene.passing_time import Settling
from tests.kit.scene.remote import Api, RemoteApi, verification
from tests.kit.scene.running_scheduler import RunningScheduler

Interfere = Callable[[httpx.Request], Any]
"""What stands between the scheduler and its API server: an answer of its own, None to let the request pass; or
something to wait for.
"""

LONGEST: Final = 120.0
"""Seconds that a story may take where time passes as it does."""


@final
@dataclass(frozen=True)
class Opening:
    """What a cluster is to have when a story begins."""

    objects: Iterable[Object]
    kubelet: bool
    controllers: bool
    interfere: Interfere | None
    features: FeatureGates


@final
@dataclass(frozen=True)
class Setting:
    """A cluster without a scheduler."""

    api: Api
    client: Client
    passes: Callable[[float, RunningScheduler], Awaitable[None]]
    """So much time passes; or as much as is needed for all to happen that would have happened meanwhile."""
    version: Callable[[], int]
    """How far history is."""
    history: Callable[[int], list[Object]]
    """Pods as they became since a version, one after the other; those that are gone as they were last."""


class Stage(ABC):
    """A place for stories."""

    extenders: Sequence[Extender] = ()
    """Those that the configuration of each scheduler has besides its own."""

    @abstractmethod
    def run(self, tale: Coroutine[Any, Any, None]) -> None:
        """Tell it."""

    @abstractmethod
    def open(self, opening: Opening) -> AbstractAsyncContextManager[Setting]:
        """A cluster with these objects and some priority classes, and with nothing else in it."""


@final
class InMemory(Stage):
    """The embedded API under virtual time."""

    def __init__(self, extenders: Sequence[Extender] = ()) -> None:
        self.extenders = extenders

    def run(self, tale: Coroutine[Any, Any, None]) -> None:
        virtual_time.run(tale)

    @asynccontextmanager
    async def open(self, opening: Opening) -> AsyncIterator[Setting]:
        objects, features = [*PRIORITIES, *map(_placed, opening.objects)], opening.features
        if opening.controllers:
            async with own_cluster(objects, rng=random.Random(1), kubelet=opening.kubelet, features=features) as base:
                yield _in_memory(base.api, opening.interfere)
        else:
            registry = make_registry("default", now=lambda: datetime.now(UTC), features=features)
            seed(registry, objects)
            yield _in_memory(KubeApi(registry), opening.interfere)


def _placed(obj: Object) -> Object:
    return {**obj, "metadata": {"namespace": "default", **obj["metadata"]}} if resource_of(obj).namespaced else obj


def _in_memory(api: KubeApi, interfere: Interfere | None) -> Setting:
    store = api.registry.store
    return Setting(
        api.registry,
        Client(Target("http://embedded"), transport=_Between(EmbeddedTransport(api), interfere or (lambda _: None))),
        passes=lambda seconds, _: asyncio.sleep(seconds),
        version=lambda: store.resource_version,
        history=lambda since: [change.new.decoded() for change in store.follow([PODS], since).take()],
    )


@final
class _Between(httpx.AsyncBaseTransport):
    def __init__(self, transport: httpx.AsyncBaseTransport, interfere: Interfere) -> None:
        self._transport = transport
        self._interfere = interfere
        self.num_held = 0
        """Requests that wait for what the story makes them wait for."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._interfere(request)
        if asyncio.iscoroutine(answer):
            self.num_held += 1
            try:
                answer = await answer
            finally:
                self.num_held -= 1
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


@final
class OverSockets(Stage):
    """A server in another process: a kube-apiserver, or ours. It has no kubelet, and it is all ours: each story begins
    by clearing it.
    """

    def __init__(self, target: Target) -> None:
        self._target = target

    def run(self, tale: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(LONGEST):
                await tale

        asyncio.run(bounded())

    @asynccontextmanager
    async def open(self, opening: Opening) -> AsyncIterator[Setting]:
        api = RemoteApi(self._target)
        between = None
        if opening.interfere is not None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            carrier = httpx.AsyncHTTPTransport(verify=verification(self._target), trust_env=False, limits=limits)
            between = _Between(carrier, opening.interfere)
        try:
            api.clear()
            known_names = {priority["metadata"]["name"] for priority in api.list(resource_of(PRIORITIES[0]))}
            for obj in (*(obj for obj in PRIORITIES if obj["metadata"]["name"] not in known_names), *opening.objects):
                resource = resource_of(obj)
                api.create(resource, "default" if resource.namespaced else "", obj)
            count_held = (lambda: 0) if between is None else (lambda: between.num_held)
            yield Setting(
                api,
                Client(self._target, transport=between),
                passes=Settling(api, count_held, kubelet=opening.kubelet).passes,
                version=api.version,
                history=lambda since: api.changes(PODS, since),
            )
        finally:
            api.close()


STAGE: Final[ContextVar[Stage]] = ContextVar("STAGE", default=InMemory())  # noqa: B039 - it has no state

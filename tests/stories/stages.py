"""Where stories are told: in memory, where time passes at once, or over sockets, where it passes as it does."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, final

import httpx

from extender.client.client import Client
from extender.rules.api_resources import PODS, Object
from extender.rules.seeding import seed
from extender.testing import virtual_time
from extender.values.config.configuration import Extender
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.targets.target import Target
from reprieve.cluster import own_cluster
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.registry import subresources
from tests.kit.cluster import make_registry
from tests.kit.objects import PRIORITIES, resource_of
from tests.stories.passing_time import Settling, Watched
from tests.stories.remote import Api, RemoteApi, verification

Interfere = Callable[[httpx.Request], Any]
"""What stands between the scheduler and its API server: an answer of its own, None to let the request pass; or
something to wait for.
"""

LONGEST: Final = 120.0
"""Seconds that a story may take where time passes as it does."""


class Setting(ABC):
    """A cluster without a scheduler."""

    def __init__(self, api: Api, client: Client) -> None:
        self.api = api
        self.client = client

    @abstractmethod
    def bind(self, name: str, body: Object) -> None:
        """A pod gets its node."""

    @abstractmethod
    def version(self) -> int:
        """How far history is."""

    @abstractmethod
    def history(self, since: int) -> list[Object]:
        """Pods as they became, one after the other; those that are gone as they were last."""

    @abstractmethod
    async def passes(self, seconds: float, watched: Watched) -> None:
        """So much time passes; or as much as is needed for all to happen that would have happened meanwhile."""


class Stage(ABC):
    """A place for stories."""

    extenders: Sequence[Extender] = ()
    """Those that the configuration of each scheduler has besides its own."""

    @abstractmethod
    def run(self, tale: Coroutine[Any, Any, None]) -> None:
        """Tell it."""

    @abstractmethod
    def open(
        self,
        objects: Iterable[Object],
        *,
        kubelet: bool,
        controllers: bool,
        interfere: Interfere | None,
        features: FeatureGates = DEFAULT_FEATURES,
    ) -> AbstractAsyncContextManager[Setting]:
        """A cluster with these objects and some priority classes, and with nothing else in it."""


@final
class InMemory(Stage):
    """The embedded API under virtual time."""

    def __init__(self, extenders: Sequence[Extender] = ()) -> None:
        self.extenders = extenders

    def run(self, tale: Coroutine[Any, Any, None]) -> None:
        virtual_time.run(tale)

    @asynccontextmanager
    async def open(
        self,
        objects: Iterable[Object],
        *,
        kubelet: bool,
        controllers: bool,
        interfere: Interfere | None,
        features: FeatureGates = DEFAULT_FEATURES,
    ) -> AsyncIterator[Setting]:
        if controllers:
            async with own_cluster(
                [*PRIORITIES, *map(_placed, objects)], rng=random.Random(1), kubelet=kubelet, features=features
            ) as own:
                yield _InMemorySetting(own.api, interfere)
        else:
            registry = make_registry("default", now=lambda: datetime.now(UTC), features=features)
            seed(registry, [*PRIORITIES, *map(_placed, objects)])
            yield _InMemorySetting(KubeApi(registry), interfere)


def _placed(obj: Object) -> Object:
    return {**obj, "metadata": {"namespace": "default", **obj["metadata"]}} if resource_of(obj).namespaced else obj


@final
class _InMemorySetting(Setting):
    def __init__(self, api: KubeApi, interfere: Interfere | None) -> None:
        transport = _Between(EmbeddedTransport(api), interfere or (lambda request: None))
        super().__init__(api.registry, Client(Target("http://embedded"), transport=transport))
        self._registry = api.registry

    def bind(self, name: str, body: Object) -> None:
        subresources.bind(self._registry, "default", name, body)

    def version(self) -> int:
        return self._registry.store.resource_version

    def history(self, since: int) -> list[Object]:
        return [change.new.decoded() for change in self._registry.store.follow([PODS], since).take()]

    async def passes(self, seconds: float, watched: Watched) -> None:
        await asyncio.sleep(seconds)


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
    async def open(
        self,
        objects: Iterable[Object],
        *,
        kubelet: bool,
        controllers: bool,
        interfere: Interfere | None,
        features: FeatureGates = DEFAULT_FEATURES,
    ) -> AsyncIterator[Setting]:
        api = RemoteApi(self._target)
        between = None
        if interfere is not None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            between = _Between(
                httpx.AsyncHTTPTransport(verify=verification(self._target), trust_env=False, limits=limits), interfere
            )
        try:
            api.clear()
            known = {each["metadata"]["name"] for each in api.list(resource_of(PRIORITIES[0]))}
            for each in (*(each for each in PRIORITIES if each["metadata"]["name"] not in known), *objects):
                resource = resource_of(each)
                api.create(resource, "default" if resource.namespaced else "", each)
            held = (lambda: 0) if between is None else (lambda: between.num_held)
            yield _RemoteSetting(api, Client(self._target, transport=between), Settling(api, held, kubelet=kubelet))
        finally:
            api.close()


@final
class _RemoteSetting(Setting):
    def __init__(self, api: RemoteApi, client: Client, settling: Settling) -> None:
        super().__init__(api, client)
        self._remote = api
        self._settling = settling

    def bind(self, name: str, body: Object) -> None:
        self._remote.bind("default", name, body)

    def version(self) -> int:
        return self._remote.version()

    def history(self, since: int) -> list[Object]:
        return self._remote.changes(PODS, since)

    async def passes(self, seconds: float, watched: Watched) -> None:
        await self._settling.passes(seconds, watched)


STAGE: Final[ContextVar[Stage]] = ContextVar("STAGE", default=InMemory())  # noqa: B039 - it has no state

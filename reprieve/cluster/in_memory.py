"""A Kubernetes cluster in memory with its controllers, and the transport by which an httpx client reaches it."""

import asyncio
import logging
import random
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn, final
from urllib.parse import parse_qs, unquote

import httpx

from extender.rules.api_resources import EVENTS, RESOURCE_CLAIM_TEMPLATES, RESOURCES, Object, Resource
from extender.rules.seeding import SeedReport, seed
from extender.rules.state_file import save_state, saved_version
from extender.rules.trial_registry import TrialRegistry
from extender.values.concurrency.replaced_file import remove_leftovers
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.objects.grouping import SYSTEM_CLASSES
from extender.values.reasons import in_one_line
from reprieve.cluster import controllers, limits
from reprieve.cluster.controllers.garbage_collector import SYSTEM_NAMESPACES
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.requests.request_info import Request
from reprieve.cluster.responses.response import StreamResponse
from reprieve.cluster.store import stored_objects
from reprieve.cluster.store.custom_resources import custom_resources
from reprieve.cluster.store.object_store import ObjectStore
from reprieve.cluster.store.stored_objects import Stored


@final
class EmbeddedTransport(httpx.AsyncBaseTransport):
    """Hands requests to a KubeApi in the same event loop. A watch streams; closing its response ends it."""

    def __init__(self, api: KubeApi) -> None:
        self._api: Final = api

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._api.answer(
            Request(
                request.method,
                unquote(request.url.raw_path.partition(b"?")[0].decode("ascii"), errors="replace"),
                parse_qs(request.url.query.decode("ascii"), keep_blank_values=True),
                {name.lower(): value for name, value in request.headers.items()},
                await request.aread(),
            )
        )
        headers = dict(answer.headers)
        if isinstance(answer, StreamResponse):
            return httpx.Response(answer.status, headers=headers, stream=_Chunks(answer.chunks), request=request)
        headers["Content-Length"] = str(len(answer.body))
        return httpx.Response(answer.status, headers=headers, content=answer.body, request=request)


@final
class _Chunks(httpx.AsyncByteStream):
    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._chunks.aclose()


_LOGGER: Final = logging.getLogger(__name__)

SAVE_EVERY: Final = 60.0
"""The seconds between two checks for changes to save."""

SECONDS_KEPT: Final = 3600.0
SECONDS_BETWEEN_LOOKS: Final = 10.0
"""The seconds for which Events are kept, and those between two looks for expired ones while new ones arrive."""

_UNSAVED_VERSIONS: Final = 100_000
"""The largest number of changes between the last save of a cluster and its end by a signal."""

_CRITICAL: Final = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can be moved to "
    "another node if necessary.",
}
"""The priority classes of every API server (pkg/apis/scheduling/v1/helpers.go, SystemPriorityClasses)."""


@final
@dataclass(frozen=True, slots=True)
class OwnCluster:
    """The API of a cluster in memory, and the report about the objects it was started with."""

    api: KubeApi
    report: SeedReport
    unsaved: Callable[[], str]
    """Returns why the state was not saved at the end; empty if it was, or if there is no file."""

    def admission(self, seed: int = 0) -> TrialRegistry:
        """Returns a registry for trials, from any thread; it finds the ResourceClaimTemplates of this cluster."""
        return TrialRegistry(self._template, self.api.registry.features, seed)

    def _template(self, namespace: str, name: str) -> Object | None:
        stored = self.api.registry.store.get(RESOURCE_CLAIM_TEMPLATES, namespace, name)
        return None if stored is None else stored.decoded()

    def transport(self) -> EmbeddedTransport:
        return EmbeddedTransport(self.api)


@asynccontextmanager
async def own_cluster(
    objects: Iterable[Object] = (),
    *,
    kubelet: bool = True,
    save_to: Path | None = None,
    saves_each_change: bool = False,
    address: str = "",
    rng: random.Random | None = None,
    features: FeatureGates = DEFAULT_FEATURES,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[OwnCluster]:
    """Opens a cluster in memory until the end of the block.

    Arguments:
        objects: the objects it starts with; they must not be changed afterwards.
        kubelet: whether bound pods run and deleted pods end by themselves.
        save_to: the file for its state, written at the start, each minute if something has changed, and at the end.
        saves_each_change: whether a write is answered once it is in the file, and with 500 if the file cannot be
            written.
        address: the `host:port` under which other processes reach it.
        now: the time of day, for the timestamps of its objects.
    """
    chance = rng or random.Random()
    # A restarted cluster does not repeat earlier versions, so that clients have to list again. The clock is ahead of
    # these versions, unless it was set back meanwhile.
    version = int(now().timestamp() * 10_000)
    last_version = saved_version(save_to) + _UNSAVED_VERSIONS if save_to is not None else 0
    registry = ObjectRegistry(
        ObjectStore(resource_version=max(version, last_version)), now=now, rng=chance, features=features
    )
    # These exist from the first request on. Objects that are given replace them.
    seed(
        registry, ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SYSTEM_NAMESPACES)
    )
    seed(registry, (_priority_class(name, description) for name, description in _CRITICAL.items()))
    report = seed(registry, objects)
    saved = _SavedState(registry, save_to) if save_to is not None else None
    if saved is not None:
        # From now on the file holds the first version, in case the cluster is killed before anything changes.
        await saved.save_or_log()
    keep = saved.save_changes if saved is not None and saves_each_change else None
    api = KubeApi(registry, address=address, keep=keep)
    cluster = OwnCluster(api, report, lambda: "" if saved is None else saved.lost)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(controllers.run(registry, now=now, rng=chance, kubelet=kubelet), name="controllers"),
            group.create_task(expire_events(registry.store), name="expiry of events"),
        ]
        if saved is not None:
            tasks.append(group.create_task(saved.keep(), name="saving"))
        try:
            yield cluster
        finally:
            for task in tasks:
                task.cancel()
            if saved is not None:
                saved.finish()


def _priority_class(name: str, description: str) -> Object:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return kind | {"metadata": {"name": name}, "value": SYSTEM_CLASSES[name], "description": description}


async def expire_events(store: ObjectStore) -> NoReturn:
    """Removes Events an hour after their last write, as kube-apiserver's --event-ttl does, until it is cancelled.

    Existing Events count as written now. Of more than `STORED_EVENTS` the oldest are removed sooner, because they are
    in the memory of this process.
    """
    clock = asyncio.get_running_loop().time
    write_times: dict[int, float] = {}
    while True:
        now = clock()
        events = sorted(store.read(EVENTS), key=lambda event: event.resource_version)
        write_times = {event.resource_version: write_times.get(event.resource_version, now) for event in events}
        surplus = len(events) - limits.STORED_EVENTS
        for place, event in enumerate(events):
            if place < surplus or write_times[event.resource_version] + SECONDS_KEPT <= now:
                store.remove(EVENTS, event.namespace, event.name)
                del write_times[event.resource_version]
        changes = store.follow([EVENTS], store.resource_version)
        try:
            async with asyncio.timeout_at(min(write_times.values()) + SECONDS_KEPT if write_times else None):
                await changes.wait()
        except TimeoutError:
            continue
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


@final
class _SavedState:
    """The file of the state, and the version of the cluster that was saved in it."""

    def __init__(self, registry: ObjectRegistry, path: Path) -> None:
        self._registry = registry
        self._path = path
        self._version = 0
        self.lost = ""
        """The reason why the last save failed; empty if it did not fail, or has not happened yet."""
        self._writing = threading.Lock()
        remove_leftovers(path)

    async def keep(self) -> None:
        """Saves what has changed, each minute until cancelled."""
        while True:
            await asyncio.sleep(SAVE_EVERY)
            await self.save_or_log()

    async def save_or_log(self) -> None:
        """Saves the state if it has changed; a failure, such as a full disk, is logged, and tried again later."""
        try:
            await self.save_changes()
        except OSError as exc:
            _LOGGER.error(
                "the cluster could not be saved to %s, and will be tried again: %s", self._path, exc.strerror or exc
            )

    async def save_changes(self) -> None:
        """Saves the state if it has changed. Raises OSError."""
        version = self._registry.store.resource_version
        if version != self._version:
            # The objects are collected at one moment, but decoded and written in a thread.
            await asyncio.to_thread(self.write, _stored(self._registry), version)

    def finish(self) -> None:
        try:
            self.write(_stored(self._registry), self._registry.store.resource_version)
        except OSError as exc:
            self.lost = f"the cluster could not be saved to {self._path}, which is as it was before: {in_one_line(exc)}"
            _LOGGER.error("%s", self.lost)

    def write(self, objects: list[tuple[Resource, Stored]], version: int) -> None:
        """Writes the objects unless the file is newer. Locked, since a thread outlives its cancelled task."""
        with self._writing:
            if version > self._version:
                served = (stored_objects.shown(resource, stored) for resource, stored in objects)
                save_state(self._path, served, version)
                self._version = version


def _stored(registry: ObjectRegistry) -> list[tuple[Resource, Stored]]:
    resources = (*RESOURCES, *custom_resources(registry.store))
    kinds = {resource.stored_as: resource for resource in reversed(resources) if resource.stored_as != EVENTS.stored_as}
    return [(resource, stored) for resource in kinds.values() for stored in registry.store.read(resource)]

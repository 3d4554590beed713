"""Whole clusters under virtual time, with faults between the scheduler and its API server: everything is real but time
and the network.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, final

import httpx
import msgspec

from extender.assembly.scheduling import Scheduling, assemble_scheduler
from extender.client.client import Client
from extender.client.informers.informers import Informers
from extender.client.informers.store import Change
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.runtime.registry import Registry as Plugins
from extender.rules.api_resources import EVENTS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Object, Resource
from extender.values.config.configuration import Configuration
from extender.values.objects.kinds import KINDS
from extender.values.objects.meta import HasMetadata
from extender.values.targets.target import Target
from reprieve.cluster import controllers
from reprieve.cluster.controllers.garbage_collector import SYSTEM_NAMESPACES
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.registry import subresources
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.store.object_store import ObjectStore
from tests.invariants.write_monitor import WriteMonitor
from tests.kit.faults import FaultyTransport

Take = Callable[[HasMetadata | None, HasMetadata | None], None]
"""Takes a change in: table, old, new."""

PRIORITIES = {"low": 10, "middle": 100, "high": 1000}
RELIST = 40.0
"""Seconds between two lists, so that what a watch never said is healed within a test."""
THE_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)

SIZE = int(os.environ.get("INVARIANT_SIZE", "1"))
"""How many times as large crowds are, for those who have the time."""


def now() -> float:
    """The virtual time."""
    return asyncio.get_running_loop().time()


def clock() -> datetime:
    """The clock on the wall: it goes with the virtual time, so that nothing differs between two runs."""
    return THE_BEGINNING + timedelta(seconds=now())


@final
class Bugs:
    """What may be planted between parts that are in order: changes that never arrive, writes that are not as they were
    asked for.
    """

    def __init__(
        self,
        taking: Callable[[Take], Take] = lambda take: take,
        writing: Callable[[fwk.Dispatcher], fwk.Dispatcher] = lambda dispatcher: dispatcher,
        listening: Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport] = lambda server: server,
        losing: Callable[[Scheduling], object] = lambda alone: None,
    ) -> None:
        """Arguments:
        losing: takes something from a scheduler that has just been put together.
        """
        self.taking = taking
        self.writing = writing
        self.listening = listening
        self.losing = losing


NO_BUGS = Bugs()


@final
class Life:
    """One process of the scheduler, from its start to its end."""

    def __init__(
        self,
        monitor: WriteMonitor,
        seed: int,
        configuration: Configuration,
        bugs: Bugs,
        plugins: Plugins | None,
        relist: float,
    ) -> None:
        chance = random.Random(seed)
        self.transport = FaultyTransport(monitor, rng=random.Random(seed))
        self.client = Client(Target("http://embedded"), transport=bugs.listening(self.transport), rng=chance)
        self.dispatcher = ApiDispatcher(self.client, rng=chance, now=clock, instance="test")
        self.informers = Informers(self.client, rng=chance, relist_period=relist)
        self.failed: list[str] = []
        """Changes that could not be taken in."""
        self.known: dict[tuple[str, str, str], tuple[HasMetadata, bytes]] = {}
        """(table, namespace, name) -> an object as the informers hold it, and what it was when it came."""
        self.alone = assemble_scheduler(
            configuration, Cluster(), bugs.writing(self.dispatcher), chance, plugins=plugins
        )
        bugs.losing(self.alone)
        take = bugs.taking(self.alone.handlers.changed)
        for kind in KINDS:
            self.informers.add(kind, partial(self._tell, take, kind.field))
        self.task = asyncio.get_running_loop().create_task(self._run(), name="a life")

    async def kill(self) -> None:
        """As with SIGKILL: nothing is written any more."""
        self.transport.go_down()
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.client.aclose()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.informers.run(), name="informers")
            group.create_task(self.dispatcher.run(), name="dispatcher")
            group.create_task(self._schedule(), name="scheduler")

    async def _schedule(self) -> None:
        await self.informers.wait_for_sync()
        await self.alone.scheduler.run()

    def _tell(self, take: Take, table: str, changes: Sequence[Change[Any]]) -> None:
        for change in changes:
            self._note(table, change)
            try:
                take(change.old, change.new)
            except Exception as exc:  # as `following`: one object must not keep the others from being known
                self.failed.append(f"{table}: {exc!r}")

    def _note(self, table: str, change: Change[Any]) -> None:
        obj = change.old if change.new is None else change.new
        assert obj is not None
        meta = obj.metadata
        key = table, meta.namespace, meta.name
        if change.new is None:
            self.known.pop(key, None)
        else:
            self.known[key] = change.new, msgspec.json.encode(change.new)


@final
class World:
    """An API server with all that moves in a cluster, and a scheduler that may be killed and started again."""

    def __init__(
        self,
        seed: int,
        configuration: Configuration | None,
        bugs: Bugs,
        plugins: Plugins | None,
        relist: float = RELIST,
    ) -> None:
        self.seed = seed
        self._configuration = configuration or Configuration()
        features = self._configuration.feature_gates
        self.registry = ObjectRegistry(
            ObjectStore(resource_version=1000), now=clock, rng=random.Random(seed), features=features
        )
        self.monitor = WriteMonitor(self.registry, EmbeddedTransport(KubeApi(self.registry)))
        self._bugs = bugs
        self._plugins = plugins
        self._relist = relist
        self._lives = 0
        for name in SYSTEM_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}})
        for name, value in PRIORITIES.items():
            self.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        self.life = self._begin()

    @property
    def faults(self) -> FaultyTransport:
        """Between the scheduler that lives and the API server."""
        return self.life.transport

    async def restart(self) -> None:
        """The scheduler is killed, and another one begins."""
        await self.life.kill()
        self.life = self._begin()

    def _begin(self) -> Life:
        self._lives += 1
        return Life(self.monitor, self.seed + self._lives, self._configuration, self._bugs, self._plugins, self._relist)

    # What others do with the cluster.

    def create(self, resource: Resource, obj: Object) -> Object:
        """Of namespace default, if it has one."""
        return self.registry.create(resource, "default" if resource.namespaced else "", obj)

    def node(self, name: str, cpu: str = "2", **spec: Any) -> Object:
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}}
        return self.create(
            NODES, {"metadata": {"name": name, "labels": {"name": name}}, "spec": spec, "status": status}
        )

    def pod(
        self, name: str, cpu: str = "1", *, priority: str = "", labels: dict[str, str] | None = None, **spec: Any
    ) -> Object:
        container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}} | spec.pop(
            "container", {}
        )
        metadata = {"name": name, "labels": labels or {}, **spec.pop("metadata", {})}
        named = {"priorityClassName": priority} if priority else {}
        return self.create(PODS, {"metadata": metadata, "spec": {"containers": [container], **named, **spec}})

    def delete(self, name: str, resource: Resource = PODS, *, at_once: bool = False) -> None:
        """It goes; at once, or with the time it asked for."""
        options: Object = {"gracePeriodSeconds": 0} if at_once else {}
        self.registry.delete(resource, "default" if resource.namespaced else "", name, options)

    def lets_go(self, name: str) -> None:
        """Nothing keeps the pod from going any more."""
        pod = self.get(name)
        pod["metadata"]["finalizers"] = []
        self.registry.update(PODS, "default", name, pod)

    def bind(self, name: str, node: str) -> None:
        """Somebody else binds a pod."""
        subresources.bind(
            self.registry, "default", name, {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        )

    # What there is to see.

    def get(self, name: str, resource: Resource = PODS) -> Object:
        return self.registry.get(resource, "default" if resource.namespaced else "", name)

    def names(self, resource: Resource = PODS) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.registry.list(resource)]

    def node_of(self, name: str) -> str:
        return str(self.get(name)["spec"].get("nodeName", ""))

    def events_of(self, name: str, reason: str) -> int:
        found = [event for event in self.registry.list(EVENTS, "default") if event["involvedObject"]["name"] == name]
        return sum(event["count"] if event.get("count") else 1 for event in found if event["reason"] == reason)


@asynccontextmanager
async def a_world(
    seed: int = 1,
    *,
    configuration: Configuration | None = None,
    bugs: Bugs = NO_BUGS,
    plugins: Plugins | None = None,
    kubelet: bool = True,
    relist: float = RELIST,
) -> AsyncIterator[World]:
    """A world for as long as the block runs."""
    world = World(seed, configuration, bugs, plugins, relist)
    moving = asyncio.get_running_loop().create_task(
        controllers.run(world.registry, now=clock, rng=random.Random(seed), kubelet=kubelet), name="controllers"
    )
    try:
        yield world
    finally:
        await world.life.kill()
        moving.cancel()
        with suppress(asyncio.CancelledError):
            await moving

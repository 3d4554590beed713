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

from extender.assembly.scheduling import Scheduling
from extender.client.client import Client
from extender.client.informers.store import Change
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine import framework as fwk
from extender.engine.runtime.registry import Registry as Plugins
from extender.rules.api_resources import EVENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, Object
from extender.values.config.configuration import Configuration
from extender.values.objects.kinds import WatchedKind
from extender.values.objects.meta import HasMetadata
from extender.values.targets.target import Target
from reprieve.cluster import controllers
from reprieve.cluster.controllers.garbage_collector import SYSTEM_NAMESPACES
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.store.object_store import ObjectStore
from tests.invariants.write_monitor import WriteMonitor
from tests.kit.cluster import make_registry
from tests.kit.faults import FaultyTransport
from tests.kit.objects import PRIORITIES, budget
from tests.kit.scene import ClusterByHand
from tests.kit.scene.running_scheduler import RunningScheduler

Take = Callable[[HasMetadata | None, HasMetadata | None], None]
"""Takes a change in: table, old, new."""

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
        self.failed: list[str] = []
        """Changes that could not be taken in."""
        self.known: dict[tuple[str, str, str], tuple[HasMetadata, bytes]] = {}
        """(table, namespace, name) -> an object as the informers hold it, and what it was when it came."""
        self.running = RunningScheduler(
            self.client,
            configuration,
            self.dispatcher,
            hearing=chance,
            deciding=chance,
            writes=bugs.writing,
            plugins=plugins,
            relist_period=relist,
        )
        self.alone = self.running.alone
        bugs.losing(self.alone)
        self.running.follow(partial(self._tell, bugs.taking(self.alone.handlers.changed)))
        self.task = asyncio.get_running_loop().create_task(self.running.run(), name="a life")

    async def kill(self) -> None:
        """As with SIGKILL: nothing is written any more."""
        self.transport.go_down()
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.client.aclose()

    def _tell(self, take: Take, kind: WatchedKind[Any], changes: Sequence[Change[Any]]) -> None:
        for change in changes:
            self._note(kind.field, change)
            try:
                take(change.old, change.new)
            except Exception as exc:  # as `following`: one object must not keep the others from being known
                self.failed.append(f"{kind.field}: {exc!r}")

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
class World(ClusterByHand):
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
        registry = make_registry(
            *SYSTEM_NAMESPACES,
            store=ObjectStore(resource_version=1000),
            now=clock,
            seed=seed,
            features=self._configuration.feature_gates,
        )
        super().__init__(registry)
        self.monitor = WriteMonitor(registry, EmbeddedTransport(KubeApi(registry)))
        self._bugs = bugs
        self._plugins = plugins
        self._relist = relist
        self._lives = 0
        self.create(*PRIORITIES)
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

    def new_node(self, name: str, cpu: str = "2", **spec: Any) -> Object:
        """With its name for a label, and with room for twenty pods."""
        return super().new_node(name, cpu, **{"labels": {"name": name}, "pods": "20", **spec})

    # What may happen to it by chance.

    def relabel(self, name: str, app: str) -> None:
        self.change(name, lambda pod: pod["metadata"].setdefault("labels", {}).update(app=app))

    def gated(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.api.list(PODS) if pod["spec"].get("schedulingGates")]

    def open_gates(self, name: str) -> None:
        self.change(name, lambda pod: pod["spec"].update(schedulingGates=[]))

    def cordon_or_not(self, name: str) -> None:
        def change(node: Object) -> None:
            node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)

        self.change(name, change, resource=NODES)

    def grow(self, name: str, cpu: str) -> None:
        """The node has so much."""
        grown = {"cpu": cpu}
        self.change(
            name, lambda node: node["status"]["allocatable"].update(grown), resource=NODES, subresource="status"
        )

    def budget_comes_or_goes(self) -> None:
        if self.names(POD_DISRUPTION_BUDGETS):
            self.delete("a", POD_DISRUPTION_BUDGETS)
        else:
            self.create(budget("a", {"matchLabels": {"app": "a"}}, minAvailable=1))

    # What is seen.

    def num_events(self, name: str, reason: str) -> int:
        """How often this was said of pods of that name."""
        events = [event for event in self.registry.list(EVENTS, "default") if event["involvedObject"]["name"] == name]
        return sum(event["count"] if event.get("count") else 1 for event in events if event["reason"] == reason)


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

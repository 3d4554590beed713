"""A server, reflectors that talk to it through faults, a cluster that is told of changes; and what must be true of them
at rest.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any, Unpack, final

import pytest
from msgspec.structs import replace

from extender.client.client import Client
from extender.client.informers.informers import Informers, ReflectorOptions
from extender.client.informers.keeping import keeper_of
from extender.client.informers.reflector import Reflector
from extender.client.informers.store import Change
from extender.engine.cache.cluster import Cluster
from extender.engine.cache.dump import NodeDump
from extender.rules import api_resources
from extender.testing import virtual_time
from extender.values.objects import kinds
from extender.values.objects.decoding import convert
from extender.values.objects.kinds import WatchedKind
from extender.values.targets.target import Target
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.store.object_store import ObjectStore
from tests.kit.cluster import make_registry
from tests.kit.faults import Call, Fault, FaultyTransport
from tests.kit.scene import ClusterByHand
from tests.kit.storage_objects import claim

WATCHED: dict[str, tuple[WatchedKind[Any], api_resources.Resource]] = {
    "nodes": (kinds.NODES, api_resources.NODES),
    "pods": (kinds.PODS, api_resources.PODS),
    "pvcs": (kinds.PERSISTENT_VOLUME_CLAIMS, api_resources.PERSISTENT_VOLUME_CLAIMS),
}
"""Table of the cluster -> what is watched for it."""

SERVER = Target("http://server")

both_ways = pytest.mark.parametrize(
    "streams", [pytest.param(True, id="streamed lists"), pytest.param(False, id="ordinary lists")]
)

PODS = ["p0", "p1", "p2"]

Story = Callable[["World"], Awaitable[None]]


@final
class Server(ClusterByHand):
    """An embedded API, and what others do with it; a table of the cluster stands for its resource."""

    def __init__(self, resource_version: int = 1000) -> None:
        super().__init__(make_registry("default", store=ObjectStore(resource_version=resource_version)))

    def new(self, table: str, name: str) -> None:
        if table == "pvcs":
            self.create(claim(name))
        else:
            (self.new_node if table == "nodes" else self.new_pod)(name)

    def label(self, table: str, name: str, value: str) -> None:
        """An object changes."""
        labels = {"changed": value}
        self.change(
            name, lambda obj: obj["metadata"].setdefault("labels", {}).update(labels), resource=WATCHED[table][1]
        )

    def finish(self, name: str) -> None:
        """A pod has succeeded: the selector does not see it any more."""
        self.change(name, lambda pod: pod["status"].update(phase="Succeeded"), subresource="status")

    def end(self, table: str, name: str) -> None:
        self.delete(name, WATCHED[table][1], at_once=True)

    def names_in(self, table: str) -> list[str]:
        return self.names(WATCHED[table][1])

    def compact(self) -> None:
        """All history is forgotten."""
        self.registry.store.compact(self.registry.store.resource_version)


@final
class World:
    """A server, faults, reflectors of nodes, pods and claims, and the cluster they tell."""

    def __init__(self, *faults: Fault, seed: int, target: Target, **options: Unpack[ReflectorOptions]) -> None:
        self.server = Server()
        self.faults = FaultyTransport(EmbeddedTransport(KubeApi(self.server.registry)), *faults, rng=Random(seed))
        self.client = Client(target, transport=self.faults, rng=Random(seed))
        self.informers = Informers(self.client, rng=Random(seed), **options)
        self.cluster = Cluster()
        self.told: list[tuple[str, str, str]] = []
        """(table, change as old -> new by name and UID, resource version), in order."""
        self.sizes: list[tuple[str, int]] = []
        """(table, how many objects the reflector has) each time that changes were told."""
        for table, (kind, _) in WATCHED.items():
            self.informers.add(kind, partial(self._tell, table))

    def reflector(self, table: str) -> Reflector[Any]:
        return next(reflector for reflector in self.informers.reflectors if reflector.kind is WATCHED[table][0])

    def restart_server(self, *, resource_version: int) -> None:
        """The server comes back with another past."""
        self.server = Server(resource_version)
        self.faults.inner = EmbeddedTransport(KubeApi(self.server.registry))

    def names(self, table: str) -> list[str]:
        """Names that the reflector knows."""
        return sorted(name for _, name in self.reflector(table).objects)

    def changes(self, table: str) -> list[str]:
        """What was told of a table, such as `+a`, `~a`, `-a`."""
        return [change for changed_table, change, _ in self.told if changed_table == table]

    def wrong(self) -> list[str]:
        """Where what is known differs from what a new list says; empty at rest."""
        fresh, differences = Cluster(), []
        for table, (kind, resource) in WATCHED.items():
            objects = {}
            for obj in self.server.registry.list(resource):
                if obj.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                    stored = keeper_of(kind)(convert(kind.type, json.loads(json.dumps(obj))))
                    objects[stored.metadata.namespace, stored.metadata.name] = stored
                    fresh.changed(None, stored)
            if self.reflector(table).objects != objects:
                differences.append(
                    f"the reflector of {table} knows {self.names(table)}, there are "
                    f"{sorted(name for _, name in objects)}"
                )
        if in_cache(self.cluster) != in_cache(fresh):
            differences.append("the cache is not what it would be if it were filled again")
        if self.cluster.pending != fresh.pending or self.cluster.cache.objects.pvcs != fresh.cache.objects.pvcs:
            differences.append("pending pods or claims are not what they would be")
        return differences

    async def settles(self, seconds: float) -> None:
        """Returns when all is as a new list says; fails if that takes too long."""
        for _ in range(100):
            if not self.wrong():
                return
            await asyncio.sleep(seconds / 100)
        if self.wrong():
            raise AssertionError(f"after {seconds} s " + "; ".join(self.wrong()))

    def _tell(self, table: str, changes: Sequence[Change[Any]]) -> None:
        for change in changes:
            self.cluster.changed(change.old, change.new)
            sign = "+" if change.old is None else "-" if change.new is None else "~"
            meta = next(obj.metadata for obj in (change.new, change.old) if obj is not None)
            self.told.append((table, f"{sign}{meta.name}", meta.resource_version))
        self.sizes.append((table, len(self.reflector(table).objects)))


@asynccontextmanager
async def a_world(
    *faults: Fault,
    seed: int = 1,
    seconds: float = 120.0,
    misses: bool = False,
    target: Target = SERVER,
    **options: Unpack[ReflectorOptions],
) -> AsyncIterator[World]:
    """A world whose reflectors run; after the block all must be as a new list says.

    Arguments:
        options: of the reflectors; unless told, so much time passes between two lists that nothing is healed by them.
        seconds: how long that may take, from the end of the block.
        misses: some faults may not strike.
    """
    world = World(*faults, seed=seed, target=target, **({"relist_period": 1e6} | options))
    running = asyncio.ensure_future(world.informers.run())
    try:
        yield world
        await world.settles(seconds)
    finally:
        if running.done():
            running.result()
        running.cancel()
        await asyncio.wait([running])
        await world.client.aclose()
    assert misses or world.faults.missed == []
    assert [reflector.counters.on_changes_failed for reflector in world.informers.reflectors] == [0] * len(WATCHED)


@asynccontextmanager
async def begun(*faults: Fault, **how: Any) -> AsyncIterator[World]:
    """A world, as `a_world` makes it, in which there is something and all of it is known."""
    async with a_world(*faults, **how) as world:
        await begin(world)
        yield world


def tell(story: Story, *faults: Fault, **how: Any) -> World:
    """Runs a story against a world in virtual time; arguments as `a_world`."""

    async def run() -> World:
        async with a_world(*faults, **how) as world:
            await story(world)
        return world

    return virtual_time.run(run(), horizon=1e7)


def in_cache(cluster: Cluster) -> dict[str, NodeDump]:
    """What the cache holds, but for the order of pods, which is that of their arrival."""
    dump = cluster.cache.dump()
    return {name: replace(node, pods=tuple(sorted(node.pods))) for name, node in dump.items()}


def now() -> float:
    """The virtual time."""
    return asyncio.get_running_loop().time()


async def begin(world: World) -> None:
    """Two nodes, three pods, one claim; all known."""
    for name in ("n0", "n1"):
        world.server.new_node(name)
    for number, name in enumerate(PODS):
        world.server.new_pod(name, nodeName=f"n{number % 2}")
    world.server.new("pvcs", "c0")
    await world.informers.wait_for_sync()
    await asyncio.sleep(5)


def is_plain(call: Call) -> bool:
    """A watch that does not begin with a list."""
    return "sendInitialEvents" not in call.params


def lists_of_pods(world: World) -> list[dict[str, str]]:
    """What the lists of pods asked for, streamed or not, besides the selector."""
    queries = [
        call.params
        for call in world.faults.calls
        if call.resource == "pods" and (call.verb == "list" or not is_plain(call))
    ]
    parameters = ("limit", "resourceVersion", "resourceVersionMatch")
    return [{name: value for name, value in params.items() if name in parameters} for params in queries]


def times(
    world: World, verb: str, resource: str = "pods", where: Callable[[Call], bool] = lambda _: True
) -> list[float]:
    return [call.at for call in world.faults.calls if (call.verb, call.resource) == (verb, resource) and where(call)]

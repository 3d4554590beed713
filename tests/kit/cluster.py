"""Clusters of the tests: an API server's registry, and whole clusters that are scheduled. Everything is real but time."""

import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from extender.assembly.backend import Backend, Tap
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.client.http_extender import Transports, no_transport
from extender.engine.cache.cluster import Cluster
from extender.rules.api_resources import EVENTS, NAMESPACES, Object
from extender.testing import NodeBuilder, PodBuilder
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.objects.cluster import ClusterState
from extender.values.objects.pod import Pod
from reprieve.cluster import own_cluster
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.store.object_store import ObjectStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_registry(
    *namespaces: str,
    store: ObjectStore | None = None,
    now: Callable[[], datetime] = lambda: NOW,
    seed: int = 1,
    features: FeatureGates = DEFAULT_FEATURES,
) -> ObjectRegistry:
    """An API server's registry with these namespaces, where time stands still and no controller is at work."""
    registry = ObjectRegistry(store or ObjectStore(), now=now, rng=random.Random(seed), features=features)
    for name in namespaces:
        registry.create(NAMESPACES, "", {"metadata": {"name": name}})
    return registry


def cluster_of(*nodes: NodeBuilder, pods: Iterable[PodBuilder | Pod] = (), **others: Any) -> Cluster:
    """What the engine has of a cluster with these nodes and pods; `others` are lists of other kinds."""
    made = [pod.obj() if isinstance(pod, PodBuilder) else pod for pod in pods]
    return Cluster.of(ClusterState(nodes=[node.obj() for node in nodes], pods=made, **others))


@asynccontextmanager
async def a_cluster(*objects: Object) -> AsyncIterator[ObjectRegistry]:
    """A cluster with these objects whose pods are scheduled."""
    async with a_followed_cluster(*objects) as (registry, _):
        yield registry


@asynccontextmanager
async def a_followed_cluster(
    *objects: Object,
    configuration: Configuration | None = None,
    transports: Transports = no_transport,
    taps: Sequence[Tap] = (),
    kubelet: bool = True,
    rng: random.Random | None = None,
) -> AsyncIterator[tuple[ObjectRegistry, Backend]]:
    """The same, and what follows it."""
    async with own_cluster(objects, rng=random.Random(1), kubelet=kubelet) as own:
        client, chosen = Client.over(own.transport()), configuration or Configuration()
        async with live_backend(
            chosen, client, LiveOptions(decides=True, taps=taps, transports=transports), rng=rng or random.Random(1)
        ) as found:
            yield own.api.registry, found
        await client.aclose()


def events_of(registry: ObjectRegistry, name: str) -> list[tuple[str, str]]:
    found = [event for event in registry.list(EVENTS, "default") if event["involvedObject"]["name"] == name]
    return [(event["reason"], event["message"]) for event in found]

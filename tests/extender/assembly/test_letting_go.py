"""What was deleted is let go, though nobody asks: a snapshot holds its pods until the next one is taken."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from extender.assembly.backend import Tap
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.engine.cache import CacheError
from extender.engine.cache.cluster import Cluster
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.snapshot import Snapshot
from extender.rules.api_resources import PODS, Object
from extender.testing import make_node
from extender.values.config.configuration import Configuration, Extender
from reprieve.cluster import own_cluster
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.tables import cases

NODE: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}

EXTENDED = Configuration(extenders=(Extender(url_prefix="http://elsewhere", filter_verb="filter"),))


@asynccontextmanager
async def followed(options: LiveOptions, configuration: Configuration) -> AsyncIterator[tuple[ObjectRegistry, Cluster]]:
    """A cluster, and what the backend that follows it knows."""
    clusters: list[Cluster] = []

    def attached(cluster: Cluster, _: SchedulingQueue | None) -> None:
        clusters.append(cluster)

    async with own_cluster([NODE], rng=random.Random(1), kubelet=False) as server:
        client = Client.over(server.transport())
        chosen = LiveOptions(decides=options.decides, taps=[Tap(attached=attached)])
        async with live_backend(configuration, client, chosen, rng=random.Random(1)):
            await asyncio.sleep(1)
            yield server.api.registry, clusters[0]
        await client.aclose()


def pod_names(snapshot: Snapshot) -> list[str]:
    return [pod.name for pod in snapshot.pods.objects if pod is not None]


def pod(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}


@cases(
    "options, configuration",
    ("one that only answers", LiveOptions(), Configuration()),
    ("a scheduler that waits for a pod", LiveOptions(decides=True), Configuration()),
    ("one with a cluster of its own", LiveOptions(decides=True), EXTENDED),
)
async def test_a_snapshot_holds_no_pod_longer_than_some_seconds(
    options: LiveOptions, configuration: Configuration
) -> None:
    async with followed(options, configuration) as (registry, cluster):
        for name in ("goes", "stays"):
            registry.create(PODS, "default", pod(name))
        await asyncio.sleep(1)
        snapshot = cluster.cache.update_snapshot()
        before = pod_names(snapshot)
        registry.delete(PODS, "default", "goes", {"gracePeriodSeconds": 0})
        await asyncio.sleep(3)

        assert sorted(before) == ["goes", "stays"]
        assert pod_names(snapshot) == ["stays"]


async def test_a_cache_that_is_found_inconsistent_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    in_z1, in_z2 = (make_node("z").label({"topology.kubernetes.io/zone": zone}).obj() for zone in ("z1", "z2"))
    async with followed(LiveOptions(), Configuration()) as (registry, cluster):
        registry.create(PODS, "default", pod("goes"))
        cluster.cache.add_node(in_z1)
        await asyncio.sleep(1)
        cluster.cache.update_snapshot()
        with pytest.raises(CacheError):
            cluster.cache.remove_node(in_z2)
        cluster.cache.add_node(in_z2)
        registry.delete(PODS, "default", "goes", {"gracePeriodSeconds": 0})
        with caplog.at_level(logging.ERROR):
            await asyncio.sleep(3)

        (logged,) = (record.getMessage() for record in caplog.records)
        assert "lets go of what was deleted" in logged
        assert "snapshot state is not consistent" in logged
        assert pod_names(cluster.cache.update_snapshot()) == []

"""Recorded clusters: everything is real but time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from extender.client.http_extender import Transports, no_transport
from extender.rules.api_resources import PODS, Object
from extender.testing import virtual_time
from extender.values.config.configuration import Configuration
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.lab.recordings.recording_file import recorded_in
from tests.kit.objects import node, pod
from tests.kit.scene.followed import a_followed_cluster

Tell = Callable[[ObjectRegistry], Awaitable[None]]


@asynccontextmanager
async def a_recorded_cluster(
    file: Path,
    *objects: Object,
    configuration: Configuration | None = None,
    transports: Transports = no_transport,
    **options: Any,
) -> AsyncIterator[ObjectRegistry]:
    """A cluster whose pods are scheduled, and whose scheduler is recorded."""
    chosen = configuration or Configuration()
    async with (
        recorded_in(file, chosen, **options) as tap,
        a_followed_cluster(*objects, configuration=chosen, transports=transports, taps=[tap]) as (cluster, _),
    ):
        yield cluster.registry


def record(file: Path, tell: Tell, *objects: Object, **options: Any) -> Path:
    async def story() -> None:
        async with a_recorded_cluster(file, *objects, **options) as cluster:
            await tell(cluster)

    virtual_time.run(story())
    return file


def zoned(name: str, zone: str, cpu: str = "4") -> Object:
    return node(name, cpu, memory="0", labels={"topology.kubernetes.io/zone": zone})


NODES = [zoned(f"n{number}", "abc"[number % 3]) for number in range(9)]


def create(
    cluster: ObjectRegistry, name: str, cpu: str = "1", labels: dict[str, str] | None = None, **spec: Any
) -> None:
    pod_object = pod(name, cpu, **spec)
    pod_object["metadata"] |= {"labels": labels or {"app": "web"}, "annotations": {"team.example/token": "hush-hush"}}
    cluster.create(PODS, "default", pod_object)

"""Clusters to tell stories in: everything is real but time."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from extender.assembly.backend import Backend
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.client.http_extender import Transports, no_transport
from extender.cluster import own_cluster
from extender.cluster.api_resources import EVENTS, Object
from extender.cluster.registry.object_registry import ObjectRegistry
from extender.testing import virtual_time
from extender.values.config import Configuration


def node(name: str, cpu: str = "2") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
    }


def pod(name: str, cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


@asynccontextmanager
async def a_cluster(*objects: Object) -> AsyncIterator[ObjectRegistry]:
    """A cluster with these objects whose pods are scheduled."""
    async with a_followed_cluster(*objects) as (registry, _):
        yield registry


@asynccontextmanager
async def a_followed_cluster(
    *objects: Object, configuration: Configuration | None = None, transports: Transports = no_transport
) -> AsyncIterator[tuple[ObjectRegistry, Backend]]:
    """The same, and what follows it."""
    async with own_cluster(objects, rng=random.Random(1)) as own:
        client, chosen = Client.over(own.transport()), configuration or Configuration()
        async with live_backend(
            chosen, client, LiveOptions(decides=True, transports=transports), rng=random.Random(1)
        ) as found:
            yield own.api.registry, found
        await client.aclose()


def story(tell: Callable[[], Awaitable[None]]) -> None:
    virtual_time.run(tell())  # type: ignore[arg-type]


def events_of(registry: ObjectRegistry, name: str) -> list[tuple[str, str]]:
    found = [event for event in registry.list(EVENTS, "default") if event["involvedObject"]["name"] == name]
    return [(event["reason"], event["message"]) for event in found]

"""A cluster that moves by itself, in virtual time: objects in short, and what became of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from extender.rules.api_resources import DEPLOYMENTS, NODES, PODS, REPLICA_SETS, Object, Resource
from reprieve.cluster import controllers
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.registry.subresources import bind
from reprieve.cluster.store.object_store import ObjectStore
from tests.kit.cluster import make_registry

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def now() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def empty_registry(history: int = 1000) -> ObjectRegistry:
    return make_registry(store=ObjectStore(history=history), now=now)


@asynccontextmanager
async def running_controllers(
    registry: ObjectRegistry | None = None, *, node: str = "", kubelet: bool = True
) -> AsyncIterator[ObjectRegistry]:
    """A registry with controllers at work on it, the system namespaces made, and a node if one is named."""
    registry = registry or empty_registry()
    running = asyncio.create_task(controllers.run(registry, now=now, rng=Random(2), kubelet=kubelet))
    await settle()
    if node:
        add_node(registry, node)
    try:
        yield registry
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def deployed(replicas: int, **spec: Any) -> AsyncIterator[ObjectRegistry]:
    """The same, with the deployment `web`, whose pods run on the node `a`."""
    async with running_controllers(node="a") as registry:
        add_deployment(registry, "web", replicas, **spec)
        await scheduled(registry, 5)
        yield registry


async def settle(seconds: float = 3.0) -> None:
    """Let everything happen that happens within a few seconds."""
    await asyncio.sleep(seconds)


def add_node(registry: ObjectRegistry, name: str, **more: Any) -> Object:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return registry.create(
        NODES, "", {"metadata": {"name": name}, "status": {"capacity": capacity, "allocatable": capacity}, **more}
    )


def template(app: str = "web", image: str = "web:1", **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def add_pod(registry: ObjectRegistry, name: str, node: str = "", namespace: str = "default", **more: Any) -> Object:
    metadata = {"name": name, **more.pop("metadata", {})}
    pod = registry.create(PODS, namespace, {"metadata": metadata, "spec": template(**more)["spec"]})
    if node:
        bind_to(registry, name, node, namespace)
    return pod


def bind_to(registry: ObjectRegistry, name: str, node: str, namespace: str = "default") -> None:
    bind(registry, namespace, name, {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}})


def bind_all(registry: ObjectRegistry, node: str = "a") -> None:
    for pod in registry.list(PODS):
        if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
            bind_to(registry, pod["metadata"]["name"], node, pod["metadata"]["namespace"])


async def scheduled(registry: ObjectRegistry, seconds: float, node: str = "a") -> None:
    """Let time pass while pods are bound every half second."""
    for _ in range(int(seconds * 2)):
        bind_all(registry, node)
        await asyncio.sleep(0.5)


def workload(
    resource: Resource, name: str, replicas: int, image: str = "web:1", app: str = "web", **spec: Any
) -> Object:
    selector: Object = {"app": app} if resource.kind == "ReplicationController" else {"matchLabels": {"app": app}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template(app, image), **spec},
    }


def add_deployment(registry: ObjectRegistry, name: str, replicas: int, **spec: Any) -> Object:
    return registry.create(DEPLOYMENTS, "default", workload(DEPLOYMENTS, name, replicas, **spec))


def change(
    registry: ObjectRegistry,
    resource: Resource,
    name: str,
    how: Callable[[Object], object],
    *,
    subresource: str = "",
    namespace: str = "default",
) -> Object:
    """Edit an object, as `kubectl edit` would."""
    obj = registry.get(resource, namespace if resource.namespaced else "", name)
    how(obj)
    return registry.update(resource, namespace if resource.namespaced else "", name, obj, subresource=subresource)


def say_ready(registry: ObjectRegistry, resource: Resource, name: str, status: str) -> None:
    """The kubelet of a node or pod says whether it is ready."""
    change(registry, resource, name, lambda obj: condition_of(obj, "Ready").update(status=status), subresource="status")


def with_image(image: str) -> Callable[[Object], None]:
    """Gives the template of a workload another image, for `change`."""

    def edit(workload: Object) -> None:
        workload["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return edit


def scale(registry: ObjectRegistry, resource: Resource, name: str, replicas: int) -> None:
    change(registry, resource, name, lambda obj: obj["spec"].update(replicas=replicas))


def names(registry: ObjectRegistry, resource: Resource) -> list[str]:
    return [obj["metadata"]["name"] for obj in registry.list(resource, "default" if resource.namespaced else None)]


def phases(registry: ObjectRegistry) -> list[str]:
    return [pod["status"].get("phase", "") for pod in registry.list(PODS, "default")]


def replicas_by_set(registry: ObjectRegistry) -> list[int]:
    """Replicas of the ReplicaSets, oldest revision first."""
    sets = registry.list(REPLICA_SETS, "default")
    sets.sort(key=lambda replica_set: int(replica_set["metadata"]["annotations"]["deployment.kubernetes.io/revision"]))
    return [replica_set["spec"]["replicas"] for replica_set in sets]


def condition_of(obj: Object, kind: str) -> Object:
    return next((condition for condition in obj["status"].get("conditions", []) if condition["type"] == kind), {})

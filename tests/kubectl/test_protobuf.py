"""What kubectl sends in protobuf is stored as if it had sent JSON.

Here kubectl talks to an API without controllers, so that nobody changes an object before we look at it.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from api.kubernetes import KubernetesApp
from extender.rules.api_resources import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    Object,
    Resource,
)
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.requests import request_bodies
from reprieve.cluster.requests.protobuf_objects import MEDIA_TYPE
from tests.kit.cluster import make_registry
from tests.kit.service import in_a_thread
from tests.kubectl.conftest import NO_KUBECTL, Kubectl

FIRST_WITH_PROTOBUF = (1, 32)
NOW = datetime(2026, 11, 20, tzinfo=UTC)
POD = {"metadata": {"name": "web"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}


@dataclass(frozen=True)
class World:
    """An API of its own, and kubectl for it."""

    registry: ObjectRegistry
    kubectl: Kubectl
    bodies: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Path, media type and bytes of what was sent."""

    def sent_to(self, end: str) -> list[Any]:
        """What the bodies say that were sent to paths with this end."""
        return [request_bodies.parse(body, kind) for path, kind, body in self.bodies if path.endswith(end)]


@contextmanager
def served_world(home: Path) -> Iterator[World]:
    registry = make_registry("default")
    app = KubernetesApp(KubeApi(registry))
    bodies: list[tuple[str, str, bytes]] = []

    async def recorded(scope: Any, receive: Any, send: Any) -> None:
        async def overheard() -> Any:
            message = await receive()
            if message.get("body"):
                kind = dict(scope["headers"]).get(b"content-type", b"").decode()
                bodies.append((scope["path"], kind, message["body"]))
            return message

        await app(scope, overheard, send)

    with in_a_thread(
        uvicorn.Server(uvicorn.Config(recorded, port=0, log_config=None, timeout_graceful_shutdown=1))
    ) as port:
        yield World(registry, Kubectl(f"http://127.0.0.1:{port}", home), bodies)


Worlds = Callable[[], AbstractContextManager[World]]


@pytest.fixture(scope="module")
def new_world(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    if NO_KUBECTL:
        pytest.skip("kubectl is not installed")
    version = json.loads(
        subprocess.run(["kubectl", "version", "--client", "-o", "json"], capture_output=True, check=True).stdout
    )
    major, minor = (version["clientVersion"][part] for part in ("major", "minor"))
    if (int(major), int(minor.rstrip("+"))) < FIRST_WITH_PROTOBUF:
        pytest.skip(f"kubectl {major}.{minor} sends JSON only")
    return lambda: served_world(tmp_path_factory.mktemp("home"))


@pytest.fixture
def world(new_world: Worlds) -> Iterator[World]:
    with new_world() as it:
        yield it


@pytest.mark.parametrize(
    ("command", "resource", "name"),
    [
        pytest.param("namespace team", NAMESPACES, "team", id="namespace"),
        pytest.param("deployment shop --image=nginx --replicas=3 --port=80", DEPLOYMENTS, "shop", id="deployment"),
        pytest.param("deployment shop --image=nginx --image=redis", DEPLOYMENTS, "shop", id="two containers"),
        pytest.param("deployment shop --image=busybox -- sleep 1", DEPLOYMENTS, "shop", id="a command"),
        pytest.param("service clusterip shop --tcp=80:8080 --tcp=443:https", SERVICES, "shop", id="service"),
        pytest.param("service nodeport shop --tcp=80 --node-port=30080", SERVICES, "shop", id="service on nodes"),
        pytest.param("service externalname shop --external-name=a.example", SERVICES, "shop", id="service elsewhere"),
        pytest.param(
            "pdb shop --selector=app=shop --min-available=50%", POD_DISRUPTION_BUDGETS, "shop", id="pdb by percentage"
        ),
        pytest.param(
            "pdb shop --selector=app=shop --max-unavailable=1", POD_DISRUPTION_BUDGETS, "shop", id="pdb by number"
        ),
        pytest.param(
            "priorityclass low --value=-10 --description=later --preemption-policy=Never",
            PRIORITY_CLASSES,
            "low",
            id="priorityclass",
        ),
    ],
)
def test_objects_created_in_protobuf_are_stored_as_in_json(
    new_world: Worlds, command: str, resource: Resource, name: str
) -> None:
    options, dashes, rest = command.partition(" -- ")
    prints = f"{options} --dry-run=client -o json{dashes}{rest}"

    with new_world() as one, new_world() as other:
        one.kubectl("create", *command.split())
        other.kubectl("create", "-f", "-", stdin=other.kubectl("create", *prints.split()))

        assert [kind for _, kind, _ in one.bodies] == [MEDIA_TYPE]
        assert [kind for _, kind, _ in other.bodies] == ["application/json"]
        assert stored(one, resource, name) == stored(other, resource, name)


def stored(world: World, resource: Resource, name: str) -> Object:
    """The object, but for what no other has."""
    obj = world.registry.get(resource, "default" if resource.namespaced else "", name)
    del obj["metadata"]["uid"]
    return obj


def test_drain_evicts(world: World) -> None:
    """In JSON up to now: kubectl 1.32 asks for protobuf elsewhere."""
    world.registry.create(NODES, "", {"metadata": {"name": "n"}})
    world.registry.create(PODS, "default", POD)

    world.kubectl("drain", "n", "--force", "--grace-period=0")

    (eviction,) = world.sent_to("/pods/web/eviction")
    assert (eviction["kind"], eviction["apiVersion"]) == ("Eviction", "policy/v1")
    assert (eviction["metadata"]["name"], eviction["metadata"]["namespace"]) == ("web", "default")
    assert eviction["deleteOptions"] == {"gracePeriodSeconds": 0}
    assert world.registry.list(PODS) == []


def test_drain_deletes_if_it_shall_not_evict(world: World) -> None:
    world.registry.create(NODES, "", {"metadata": {"name": "n"}})
    world.registry.create(PODS, "default", POD)

    world.kubectl("drain", "n", "--force", "--grace-period=0", "--disable-eviction")

    assert world.bodies[-1][1] == MEDIA_TYPE
    assert world.sent_to("/pods/web") == [{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}]
    assert world.registry.list(PODS) == []


def test_auth_can_i(world: World) -> None:
    assert world.kubectl("auth", "can-i", "delete", "pods/web", "--namespace=default", "--subresource=status") == "yes"

    assert [kind for _, kind, _ in world.bodies] == [MEDIA_TYPE]
    (review,) = world.sent_to("/selfsubjectaccessreviews")
    attributes = {key: value for key, value in review["spec"]["resourceAttributes"].items() if value}
    assert attributes == {
        "namespace": "default",
        "verb": "delete",
        "resource": "pods",
        "subresource": "status",
        "name": "web",
    }

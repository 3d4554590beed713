"""What a contract test asks: a Kubernetes API, and places in it that nobody else uses."""

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, final

from extender.client.client import Client
from extender.client.paths import path
from extender.values.targets.target import Target
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit import objects
from tests.kit.cluster import make_registry
from tests.kit.control_plane import ADMIN, ControlPlane

Object = dict[str, Any]

_numbers = itertools.count(1)


class Server(ABC):
    """A server, and a way to ask it."""

    @abstractmethod
    def client(self, user: str = ADMIN) -> Client:
        """To be closed by the caller."""


@final
class Embedded(Server):
    """Ours, in memory."""

    def __init__(self) -> None:
        self._api = KubeApi(make_registry(now=lambda: datetime.now(UTC)))

    def client(self, user: str = ADMIN) -> Client:
        return Client(Target("http://embedded"), transport=self.transport())

    def transport(self) -> EmbeddedTransport:
        return EmbeddedTransport(self._api)


@final
class Real(Server):
    """A kube-apiserver over etcd."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def client(self, user: str = ADMIN) -> Client:
        return Client(self.plane.target(user))


@final
@dataclass(frozen=True)
class Room:
    """A namespace and a node name that no other test uses, and short ways to ask."""

    client: Client
    namespace: str
    node: str

    def pod_path(self, name: str | None = None, subresource: str | None = None) -> str:
        return path("", "v1", "pods", namespace=self.namespace, name=name, subresource=subresource)

    async def get(self, where: str, **params: str) -> Object:
        return _decoded(await self.client.get(where, params=params))

    async def create(self, where: str, obj: Mapping[str, Any]) -> Object:
        return _decoded(await self.client.create(where, obj))

    async def update(self, where: str, obj: Mapping[str, Any]) -> Object:
        return _decoded(await self.client.update(where, obj))

    async def patch(self, where: str, patch: Mapping[str, Any], kind: str) -> Object:
        return _decoded(await self.client.patch(where, patch, kind))

    async def create_pod(self, name: str, **spec: Any) -> Object:
        return await self.create(self.pod_path(), pod(name, **spec))

    async def bind(self, name: str, uid: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        metadata = {"name": name, "namespace": self.namespace, "uid": uid}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self.client.create(self.pod_path(name, "binding"), binding)


def pod(name: str, **spec: Any) -> Object:
    return objects.pod(name, labels={"app": "web"}, **spec)


async def make_room(client: Client) -> Room:
    number = next(_numbers)
    namespace = f"contract-{number}"
    await client.create(path("", "v1", "namespaces"), {"metadata": {"name": namespace}})
    return Room(client, namespace, f"node-{number}")


def _decoded(body: bytes) -> Object:
    decoded: Object = json.loads(body)
    return decoded

"""A cluster as its users, its kubelets and other schedulers change it, and as they see it; no time passes meanwhile."""

from collections.abc import Callable
from typing import Any

from extender.rules.api_resources import EVENTS, PODS, Object, Resource
from reprieve.cluster.registry import subresources
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit import objects
from tests.kit.scene.remote import Api, RemoteApi, change


class ClusterByHand:
    """Objects are of namespace default, unless their kind has none."""

    def __init__(self, api: Api) -> None:
        self.api = api

    @property
    def registry(self) -> ObjectRegistry:
        """The objects of a cluster in memory."""
        assert isinstance(self.api, ObjectRegistry)
        return self.api

    # What is done to it.

    def create(self, *created: Object) -> Object:
        """Objects come, one after the other; returns the last one as it is there."""
        for obj in created:
            resource = objects.resource_of(obj)
            last = self.api.create(resource, _namespace(resource), obj)
        return last

    def new_node(self, name: str, cpu: str = "2", **spec: Any) -> Object:
        return self.create(objects.node(name, cpu, **spec))

    def new_pod(self, name: str, cpu: str = "1", *, metadata: Object | None = None, **spec: Any) -> Object:
        pod_object = objects.pod(name, cpu, **spec)
        return self.create({**pod_object, "metadata": {**pod_object["metadata"], **(metadata or {})}})

    def delete(self, name: str, resource: Resource = PODS, *, at_once: bool = False) -> None:
        """It goes; at once, or with the time it asked for."""
        self.api.delete(resource, _namespace(resource), name, {"gracePeriodSeconds": 0} if at_once else None)

    def change(
        self, name: str, *changes: Callable[[Object], Any], resource: Resource = PODS, subresource: str = ""
    ) -> None:
        """An object is changed in place."""
        change(self.api, resource, _namespace(resource), name, *changes, subresource=subresource)

    def let_go(self, name: str) -> None:
        """Nothing keeps the pod from going any more."""
        self.change(name, lambda pod: pod["metadata"].pop("finalizers"))

    def bind(self, name: str, node: str) -> None:
        """Somebody else gives a pod its node."""
        metadata = {"name": name, "uid": self.pod(name)["metadata"]["uid"]}
        body = {"metadata": metadata, "target": {"kind": "Node", "name": node}}
        if isinstance(self.api, ObjectRegistry):
            subresources.bind(self.api, "default", name, body)
        else:
            assert isinstance(self.api, RemoteApi)
            self.api.bind("default", name, body)

    # What is seen.

    def get(self, name: str, resource: Resource) -> Object:
        return self.api.get(resource, _namespace(resource), name)

    def pod(self, name: str) -> Object:
        return self.get(name, PODS)

    def names(self, resource: Resource = PODS) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.api.list(resource)]

    def pods(self) -> set[str]:
        return {*self.names()}

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def nominated_node_of(self, name: str) -> str:
        return str(self.pod(name)["status"].get("nominatedNodeName", ""))

    def leaving(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.api.list(PODS) if "deletionTimestamp" in pod["metadata"]}

    def condition(self, name: str, kind: str = "PodScheduled") -> tuple[str, str, str] | None:
        """(status, reason, message)."""
        for condition in self.pod(name)["status"].get("conditions", []):
            if condition["type"] == kind:
                return condition["status"], condition.get("reason", ""), condition.get("message", "")
        return None

    def events(self, name: str) -> list[tuple[str, str]]:
        """(reason, note) of the events about pods of that name."""
        events = [event for event in self.api.list(EVENTS, "default") if event["involvedObject"]["name"] == name]
        return [(event["reason"], event["message"]) for event in events]


def _namespace(resource: Resource) -> str:
    return "default" if resource.namespaced else ""

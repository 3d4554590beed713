"""What may happen to a cluster, to be done when the story comes to it."""

from collections.abc import Callable
from typing import Any

from extender.rules.api_resources import CSI_NODES, NODES, PODS, Object, Resource
from tests.kit.objects import node, pod, resource_of
from tests.kit.scene import Scene
from tests.kit.scene.remote import change

Happens = Callable[[Scene], Any]
Change = Callable[[Object], Any]


def comes(*objects: Object) -> Happens:
    def happens(scene: Scene) -> None:
        for obj in objects:
            resource = resource_of(obj)
            scene.api.create(resource, _namespace(resource), obj)

    return happens


def new_node(*args: Any, **kwargs: Any) -> Happens:
    return comes(node(*args, **kwargs))


def new_pod(*args: Any, **kwargs: Any) -> Happens:
    return comes(pod(*args, **kwargs))


def changed(resource: Resource, name: str, *changes: Change, subresource: str = "") -> Happens:
    return lambda scene: change(scene.api, resource, _namespace(resource), name, *changes, subresource=subresource)


def changed_node(name: str, *changes: Change, subresource: str = "") -> Happens:
    return changed(NODES, name, *changes, subresource=subresource)


def changed_pod(name: str, *changes: Change) -> Happens:
    return changed(PODS, name, *changes)


def changed_csi_node(name: str, *changes: Change) -> Happens:
    return changed(CSI_NODES, name, *changes)


def goes(resource: Resource, name: str) -> Happens:
    return lambda scene: scene.api.delete(resource, _namespace(resource), name)


def leaves(name: str) -> Happens:
    """A pod, at once."""
    return lambda scene: scene.api.delete(PODS, "default", name, {"gracePeriodSeconds": 0})


def then(*happenings: Happens) -> Happens:
    """One after the other."""

    def happens(scene: Scene) -> None:
        for happening in happenings:
            happening(scene)

    return happens


def spec(**members: Any) -> Change:
    return lambda obj: obj["spec"].update(members)


def tolerates(key: str) -> Change:
    """Besides what admission has it tolerate."""
    return lambda obj: obj["spec"].setdefault("tolerations", []).append({"key": key, "operator": "Exists"})


def labels(**members: str) -> Change:
    return lambda obj: obj["metadata"].setdefault("labels", {}).update(members)


def only_labels(**members: str) -> Change:
    """These, and no others."""
    return lambda obj: obj["metadata"].update(labels=members)


def annotations(**members: str) -> Change:
    return lambda obj: obj["metadata"].setdefault("annotations", {}).update(members)


def allocatable(**members: str) -> Change:
    return lambda obj: obj["status"]["allocatable"].update(members)


def _namespace(resource: Resource) -> str:
    return "default" if resource.namespaced else ""

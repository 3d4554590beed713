"""Devices, and pods that want them as extended resources."""

from collections.abc import Mapping
from typing import Any, Final

from extender.cluster.api_resources import RESOURCE_CLAIMS, Object
from tests.kit.objects import node
from tests.stories.scene import Scene

GPU: Final = "example.com/gpu"
DRIVER: Final = "gpu.example.com"
BY_CLASS: Final = "deviceclass.resource.kubernetes.io/gpu"
_GROUP: Final = {"apiVersion": "resource.k8s.io/v1"}


def device_class(resource: str | None = GPU, *, name: str = "gpu") -> Object:
    """A class of all devices of the driver, which backs the extended resource."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    named = {} if resource is None else {"extendedResourceName": resource}
    return {**_GROUP, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": [selector], **named}}


def devices(on: str, *names: str, **of_each: Any) -> Object:
    """What the driver has on a node."""
    spec = {
        "driver": DRIVER,
        "nodeName": on,
        "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, **of_each} for name in names],
    }
    return {**_GROUP, "kind": "ResourceSlice", "metadata": {"name": on}, "spec": spec}


def plugged(name: str, amount: int, resource: str = GPU) -> Object:
    """A node whose device plugin offers so much of the resource."""
    made = node(name)
    made["status"]["allocatable"][resource] = str(amount)
    return made


def container(name: str, amounts: Mapping[str, int], **more: Any) -> Object:
    """A container that requests extended resources beside a little cpu."""
    wanted = {resource: str(amount) for resource, amount in amounts.items()}
    return {
        "name": name,
        "image": "web:1",
        "resources": {"requests": {"cpu": "100m", **wanted}, "limits": wanted},
        **more,
    }


def wanting(name: str, amount: int = 1, resource: str = GPU, **spec: Any) -> Object:
    """A pod with one container that requests so much of the resource."""
    return with_containers(name, container("main", {resource: amount}), **spec)


def with_containers(name: str, *containers: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": list(containers), **spec},
    }


def leftover(scene: Scene, name: str, *, allocated: bool = True) -> None:
    """The special claim that a scheduler made for the pod before it was killed."""
    uid = scene.pod(name)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    claim = {
        **_GROUP,
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{name}-extended-resources-left",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "finalizers": ["resource.kubernetes.io/delete-protection"] if allocated else [],
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [{"name": "container-0-request-1", "exactly": exactly}]}},
    }
    made = scene.api.create(RESOURCE_CLAIMS, "default", claim)
    if allocated:
        result = {"request": "container-0-request-1", "driver": DRIVER, "pool": "n", "device": "gpu-1"}
        made["status"] = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
        }
        scene.api.update(RESOURCE_CLAIMS, "default", made["metadata"]["name"], made, subresource="status")


def claims(scene: Scene) -> list[Object]:
    return scene.api.list(RESOURCE_CLAIMS, "default")


def held(scene: Scene) -> list[str]:
    """The devices that claims have."""
    results = [
        each["status"]["allocation"]["devices"]["results"]
        for each in claims(scene)
        if "allocation" in each.get("status", {})
    ]
    return sorted(result["device"] for every in results for result in every)

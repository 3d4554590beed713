"""Devices, claims and pods that want them, as people write them."""

from collections.abc import Mapping
from typing import Any, Final

from extender.rules.api_resources import Object
from tests.kit.objects import node, obj

GPU: Final = "example.com/gpu"
DRIVER: Final = "gpu.example.com"
BY_CLASS: Final = "deviceclass.resource.kubernetes.io/gpu"
API: Final = "resource.k8s.io/v1"
GROUP: Final = {"apiVersion": API}


def device_class(resource: str | None = GPU, *, name: str = "gpu") -> Object:
    """A class of all devices of the driver, which backs the extended resource."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    extended_resource = {} if resource is None else {"extendedResourceName": resource}
    return obj("DeviceClass", API, name, spec={"selectors": [selector], **extended_resource})


def devices(on: str, *names: str, **of_each: Any) -> Object:
    """What the driver has on a node."""
    spec = {
        "driver": DRIVER,
        "nodeName": on,
        "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, **of_each} for name in names],
    }
    return obj("ResourceSlice", API, on, spec=spec)


def plugged(name: str, amount: int, resource: str = GPU) -> Object:
    """A node whose device plugin offers so much of the resource."""
    plugged_node = node(name)
    plugged_node["status"]["allocatable"][resource] = str(amount)
    return plugged_node


def container(name: str, amounts: Mapping[str, int], **more: Any) -> Object:
    """A container that requests extended resources beside a little cpu."""
    quantities = {resource: str(amount) for resource, amount in amounts.items()}
    return {
        "name": name,
        "image": "web:1",
        "resources": {"requests": {"cpu": "100m", **quantities}, "limits": quantities},
        **more,
    }


def wanting(name: str, amount: int = 1, resource: str = GPU, **spec: Any) -> Object:
    """A pod with one container that requests so much of the resource."""
    return with_containers(name, container("main", {resource: amount}), **spec)


def with_containers(name: str, *containers: Object, **spec: Any) -> Object:
    return obj("Pod", name=name, spec={"containers": list(containers), **spec})


def device_claim(name: str = "gpu") -> Object:
    """A claim of one device."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return obj("ResourceClaim", API, name, spec=spec)


WITH_DEVICE: Final[Object] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
"""Spec of a pod."""

"""Builders for dynamic resources: devices, slices, classes and claims in one line each. Field names are those of
manifests.

make_slice("gpu-0", make_device("gpu-1", {"model": "a100"}), nodeName="n1") make_claim("c", exactly(2,
**selecting('device.attributes["gpu.example.com"].model == "a100"')))
"""

from collections.abc import Mapping, Sequence
from typing import Any

from extender.testing import PodBuilder, make_pod
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.values.objects.pod import Pod, PodResourceClaim

DRIVER = "gpu.example.com"

Manifest = Mapping[str, Any]
"""A part of an object, as in a manifest."""

_ATTRIBUTE_KINDS = {str: "string", int: "int", bool: "bool"}


def make_device(name: str, /, attributes: Mapping[str, str | int | bool] | None = None, **more: Any) -> Manifest:
    """Returns a device for a slice, with typed attributes."""
    typed = {key: {_ATTRIBUTE_KINDS[type(value)]: value} for key, value in (attributes or {}).items()}
    return {"name": name, "attributes": typed, **more}


def make_slice(
    *devices: Manifest | str, name: str = "slice", pool: str = "pool", generation: int = 1, of: int = 1, **where: Any
) -> ResourceSlice:
    """Returns one of `of` slices of a pool, for the node `n` unless `where` is given. A bare name is a device without
    attributes.
    """
    spec = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": of},
        "devices": [make_device(device) if isinstance(device, str) else device for device in devices],
        **(where or {"nodeName": "n"}),
    }
    return convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec})


def slice_of(node: str, *devices: Manifest | str) -> ResourceSlice:
    """Returns what a driver has on a node: a slice, and a pool, that are named like it."""
    return make_slice(*devices, name=node, pool=node, nodeName=node)


def make_device_class(name: str, *expressions: str, backs: str | None = None) -> DeviceClass:
    """Returns a class of the devices that all the expressions match, and that back an extended resource."""
    spec = {**selecting(*expressions), "extendedResourceName": backs}
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": spec})


def with_claims(pod: PodBuilder, *claims: str) -> Pod:
    """Returns the pod with references to claims, each under the claim's name."""
    pod_object = pod.obj()
    references = [PodResourceClaim(name=name, resource_claim_name=name) for name in claims]
    return replaced(pod_object, spec=replaced(pod_object.spec, resource_claims=references))


def selecting(*expressions: str) -> dict[str, Any]:
    """Returns CEL selectors, as classes and requests contain them."""
    return {"selectors": [{"cel": {"expression": expression}} for expression in expressions]}


def exactly(count: int = 1, /, name: str = "r", device_class: str = "any", **more: Any) -> Manifest:
    """Returns a request for this many devices of a class."""
    request = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **more}
    return {"name": name, "exactly": request}


def everything(name: str = "r", device_class: str = "any", **more: Any) -> Manifest:
    """Returns a request for all devices of a class."""
    return {"name": name, "exactly": {"deviceClassName": device_class, "allocationMode": "All", **more}}


def first_of(*alternatives: Manifest, name: str = "r") -> Manifest:
    """Returns a request for the first alternative that can be allocated."""
    return {"name": name, "firstAvailable": [{"name": one["name"], **one["exactly"]} for one in alternatives]}


def make_claim(
    name: str,
    *requests: Manifest,
    constraints: Sequence[Manifest] = (),
    metadata: Manifest | None = None,
    **status: Any,
) -> ResourceClaim:
    """Returns a claim in namespace `default`. Its UID is its name."""
    return convert(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "default", "uid": name, **(metadata or {})},
            "spec": {"devices": {"requests": list(requests), "constraints": list(constraints)}},
            "status": status,
        },
    )


def pod_with(*claims: str, name: str = "p") -> Pod:
    """Returns a pod with these claims, whose UID is its name."""
    return with_claims(make_pod(name).uid(name), *claims)


def allocation_of(*devices: Manifest | str, node_selector: Manifest | None = None, **more: Any) -> Manifest:
    """Returns an allocation for status.allocation. A bare name is a device of the pool `pool`."""
    full = [{"device": device} if isinstance(device, str) else device for device in devices]
    results = [{"request": "r", "driver": DRIVER, "pool": "pool", **device} for device in full]
    where = {} if node_selector is None else {"nodeSelector": node_selector}
    return {"devices": {"results": results}, **where, **more}


def label_selector(key: str, *values: str) -> Manifest:
    """Returns a node selector for a label with one of these values."""
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]}

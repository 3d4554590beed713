"""Objects of storage as people write them, in a line each."""

from typing import Any, Final

from extender.rules.api_resources import Object
from tests.kit.objects import obj


def volume(
    name: str, *modes: str, zone: str = "", near: Object | None = None, storage_class: str = "", **source: Any
) -> Object:
    """A volume of one MiB.

    Arguments:
        modes: access modes; ReadWriteMany unless told.
        zone: as its label says.
        near: labels of the nodes that reach it, all of them unless told.
        source: where the data is; on the host unless told.
    """
    spec: Object = {
        "capacity": {"storage": "1Mi"},
        "accessModes": list(modes or ("ReadWriteMany",)),
        **(source or {"hostPath": {"path": "/tmp", "type": "DirectoryOrCreate"}}),
    }
    if storage_class:
        spec["storageClassName"] = storage_class
    if near is not None:
        terms = [{"key": key, "operator": "In", "values": [value]} for key, value in near.items()]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    volume_object = obj("PersistentVolume", name=name, spec=spec)
    volume_object["metadata"]["labels"] = {"topology.kubernetes.io/zone": zone} if zone else {}
    return volume_object


def csi(driver: str, handle: str) -> Object:
    """Source of a volume."""
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def claim(name: str, *modes: str, bound_to: str = "", storage_class: str = "") -> Object:
    """A claim of one MiB; bound if a volume is named."""
    spec: Object = {"accessModes": list(modes or ("ReadWriteMany",)), "resources": {"requests": {"storage": "1Mi"}}}
    claim_object = obj("PersistentVolumeClaim", name=name, spec=spec)
    if bound_to:
        spec["volumeName"] = bound_to
        claim_object["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "true"}
    if storage_class:
        spec["storageClassName"] = storage_class
    return claim_object


def storage_class(
    name: str,
    mode: str = "WaitForFirstConsumer",
    zones: tuple[str, ...] = (),
    provisioner: str = "example.com/disks",
    annotations: Object | None = None,
    **labels: str,
) -> Object:
    class_object: Object = {"provisioner": provisioner, "volumeBindingMode": mode}
    if zones:
        class_object["allowedTopologies"] = topologies(*zones)
    return _of_storage("StorageClass", name, labels=labels, annotations=annotations or {}) | class_object


def topologies(*zones: str) -> list[Object]:
    return [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": list(zones)}]}]


def csi_node(name: str, **limits: int) -> Object:
    """What drivers of a node can attach; in their names, dots are written as underscores."""
    drivers = [
        {"name": driver.replace("_", "."), "nodeID": name, "topologyKeys": None, "allocatable": {"count": count}}
        for driver, count in limits.items()
    ]
    return _of_storage("CSINode", name) | {"spec": {"drivers": drivers}}


def csi_driver(name: str, *, storage_capacity: bool = True) -> Object:
    return _of_storage("CSIDriver", name) | {"spec": {"storageCapacity": storage_capacity}}


def capacity(name: str, storage_class: str, amount: str) -> Object:
    fields = {"storageClassName": storage_class, "capacity": amount, "nodeTopology": {}}
    return _of_storage("CSIStorageCapacity", name) | fields


def attachment(name: str, driver: str, node: str, volume: str) -> Object:
    spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return _of_storage("VolumeAttachment", name) | {"spec": spec, "status": {"attached": True}}


def _of_storage(kind: str, name: str, **metadata: Any) -> Object:
    return {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": name, **metadata}}


DATA: Final = claim("data", storage_class="std")
WITH_DATA: Final[Object] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
"""Spec of a pod."""
PROVISIONED: Final = storage_class("std", provisioner="csi.example.com")
NOT_PROVISIONED: Final = storage_class("std", provisioner="kubernetes.io/no-provisioner")


def local_volume(name: str, on: str) -> Object:
    return volume(name, near={"kubernetes.io/hostname": on}, storage_class="std")

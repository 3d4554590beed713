"""Builders for storage: a claim, a volume, a class in one line each.

    make_claim("data", volume="pv", storage_class="std")
    make_volume("pv", claim="data", csi="ebs.csi.aws.com", affinity=[label_term("zone", "In", "z1")])

They return finished objects, because objects of storage have few fields that tests need. `tests.kit.storage_objects` has
them as people write them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.values.objects.claims import BIND_COMPLETED_ANNOTATION, SELECTED_NODE_ANNOTATION
from extender.values.objects.decoding import convert
from extender.values.objects.meta import LabelSelector, NodeSelectorTerm
from extender.values.objects.pod import Pod, Volume
from extender.values.objects.storage import (
    MIGRATED_PLUGINS_ANNOTATION,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

LATER: Final = "WaitForFirstConsumer"
AT_ONCE: Final = "Immediate"


def make_claim(
    name: str,
    *,
    volume: str = "",
    storage_class: str | None = "std",
    size: str = "1Gi",
    access: str = "ReadWriteOnce",
    selected_node: str | None = None,
    selector: LabelSelector | None = None,
    owner: Pod | None = None,
    phase: str = "",
    deleted: bool = False,
    version: str = "",
) -> PersistentVolumeClaim:
    """Returns a claim in namespace `default`: fully bound if it has a `volume`, else pending.

    Arguments:
        selected_node: the node for which a volume is being provisioned.
        owner: the pod of whose generic ephemeral volume it is.
    """
    # A claim counts as fully bound only with the annotation that the volume controller adds last.
    annotations = {BIND_COMPLETED_ANNOTATION: "yes"} if volume else {}
    if selected_node is not None:
        annotations[SELECTED_NODE_ANNOTATION] = selected_node
    owners = [] if owner is None else [{"kind": "Pod", "name": owner.name, "uid": owner.uid, "controller": True}]
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": version,
        "annotations": annotations,
        "ownerReferences": owners,
        "deletionTimestamp": "2026-01-01T00:00:00Z" if deleted else None,
    }
    spec = {
        "accessModes": [access],
        "selector": selector,
        "resources": {"requests": {"storage": size} if size else {}},
        "volumeName": volume,
        "storageClassName": storage_class,
    }
    status = {"phase": phase or ("Bound" if volume else "Pending")}
    return convert(PersistentVolumeClaim, {"metadata": metadata, "spec": spec, "status": status})


def make_volume(
    name: str,
    *,
    claim: str = "",
    storage_class: str = "std",
    size: str = "1Gi",
    access: str = "ReadWriteOnce",
    csi: str = "",
    ebs: str = "",
    labels: Mapping[str, str] | None = None,
    affinity: Sequence[NodeSelectorTerm] | None = None,
    phase: str = "",
    version: str = "",
) -> PersistentVolume:
    """Returns a volume: bound if it has a `claim`, else available. Its CSI handle is its name.

    Arguments:
        csi: its driver.
        ebs: its volume ID as an in-tree EBS volume.
        affinity: the nodes that can reach it, any of the terms; None for all.
    """
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim, "uid": f"uid-{claim}"}
    spec = {
        "capacity": {"storage": size},
        "accessModes": [access],
        "claimRef": reference if claim else None,
        "storageClassName": storage_class,
        "nodeAffinity": None if affinity is None else {"required": {"nodeSelectorTerms": list(affinity)}},
        "csi": {"driver": csi, "volumeHandle": name} if csi else None,
        "awsElasticBlockStore": {"volumeID": ebs} if ebs else None,
    }
    metadata = {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {}), "resourceVersion": version}
    status = {"phase": phase or ("Bound" if claim else "Available")}
    return convert(PersistentVolume, {"metadata": metadata, "spec": spec, "status": status})


def make_class(
    name: str = "std",
    *,
    provisioner: str = "csi.example.com",
    binding: str | None = LATER,
    topology: Mapping[str, Sequence[str]] | None = None,
) -> StorageClass:
    """Returns a StorageClass.

    Arguments:
        topology: label -> values, all in one term of allowedTopologies; None for no such list.
    """
    expressions = [{"key": key, "values": list(values)} for key, values in (topology or {}).items()]
    terms = [] if topology is None else [{"matchLabelExpressions": expressions}]
    members = {"provisioner": provisioner, "volumeBindingMode": binding, "allowedTopologies": terms}
    return convert(StorageClass, {"metadata": {"name": name}, **members})


def make_csi_node(
    name: str, limits: Mapping[str, int | None] | None = None, *, migrated: Sequence[str] = ()
) -> CSINode:
    """Returns a CSINode: driver -> the limit of volumes, None for no limit; and the in-tree plugins that are
    migrated.
    """
    annotations = {MIGRATED_PLUGINS_ANNOTATION: ",".join(migrated)} if migrated else {}
    drivers = [
        {"name": driver, "allocatable": None if limit is None else {"count": limit}}
        for driver, limit in (limits or {}).items()
    ]
    return convert(CSINode, {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}})


def make_csi_driver(
    name: str = "csi.example.com", *, publishes_capacity: bool = True, is_required: bool | None = None
) -> CSIDriver:
    """Returns a CSIDriver that publishes the storage capacity of its topologies, unless told otherwise.

    Arguments:
        is_required: whether its volumes may only be used on nodes where it is installed.
    """
    spec = {"storageCapacity": publishes_capacity, "preventPodSchedulingIfMissing": is_required}
    return convert(CSIDriver, {"metadata": {"name": name}, "spec": spec})


def make_capacity(
    name: str, capacity: str, topology: LabelSelector | None, *, storage_class: str = "std", largest: str | None = None
) -> CSIStorageCapacity:
    """Returns the capacity that a driver has for volumes of a class, on the nodes with such labels."""
    members = {"nodeTopology": topology, "storageClassName": storage_class, "capacity": capacity}
    metadata = {"name": name, "namespace": "kube-system"}
    return convert(CSIStorageCapacity, {"metadata": metadata, **members, "maximumVolumeSize": largest})


def make_attachment(volume: str, node: str, *, driver: str = "csi.example.com") -> VolumeAttachment:
    """Returns an attachment of the volume to the node."""
    spec = {"attacher": driver, "source": {"persistentVolumeName": volume}, "nodeName": node}
    return convert(VolumeAttachment, {"metadata": {"name": f"{volume}-{node}"}, "spec": spec})


def _disk(name: str, source: str, **members: Any) -> Volume:
    """Returns a volume for a pod's spec, by the name that its source has in a manifest."""
    return convert(Volume, {"name": name, source: members})


def ephemeral(name: str = "scratch") -> Volume:
    """Returns a generic ephemeral volume, whose claim is named `<pod>-<name>`."""
    return _disk(name, "ephemeral")


def ebs_disk(volume_id: str, *, read_only: bool = False) -> Volume:
    return _disk("ebs", "awsElasticBlockStore", volumeID=volume_id, readOnly=read_only)


def gce_disk(name: str, *, read_only: bool = False) -> Volume:
    return _disk("gce", "gcePersistentDisk", pdName=name, readOnly=read_only)


def iscsi_disk(iqn: str, *, read_only: bool = False) -> Volume:
    return _disk("iscsi", "iscsi", iqn=iqn, readOnly=read_only)


def rbd_image(image: str, *monitors: str, pool: str = "rbd", read_only: bool = False) -> Volume:
    return _disk("rbd", "rbd", monitors=list(monitors), image=image, pool=pool, readOnly=read_only)

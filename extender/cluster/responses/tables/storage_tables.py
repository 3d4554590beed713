"""Tables of volumes, claims and the kinds of storage.k8s.io.

Upstream: pkg/printers/internalversion/printers.go, printPersistentVolume and following; pkg/apis/core/helper (v1.36.2).
"""

from collections.abc import Sequence
from typing import Any, Final

from extender.cluster.api_resources import Object
from extender.cluster.responses.tables.layout import (
    AGE,
    NAME,
    NONE,
    Ages,
    Column,
    Layout,
    is_going,
    name_of,
    spec_of,
    status_of,
    wide,
)

UNSET: Final = "<unset>"

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _access_modes(modes: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def _annotations(obj: Object) -> Object:
    return obj["metadata"].get("annotations") or {}


def _class_of(obj: Object) -> str:
    named = _annotations(obj).get(_CLASS_ANNOTATION)
    return str(spec_of(obj).get("storageClassName") or "") if named is None else str(named)


def _phase(obj: Object) -> str:
    return "Terminating" if is_going(obj) else status_of(obj).get("phase", "")


def _persistent_volume(volume: Object, ages: Ages) -> list[Any]:
    spec = spec_of(volume)
    claim = spec.get("claimRef")
    return [
        name_of(volume),
        (spec.get("capacity") or {}).get("storage", "0"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(volume),
        "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}",
        _class_of(volume),
        spec.get("volumeAttributesClassName") or UNSET,
        status_of(volume).get("reason") or "",
        ages.of(volume),
        spec.get("volumeMode") or UNSET,
    ]


def _persistent_volume_claim(claim: Object, ages: Ages) -> list[Any]:
    spec, status = spec_of(claim), status_of(claim)
    volume = spec.get("volumeName") or ""
    return [
        name_of(claim),
        _phase(claim),
        volume,
        (status.get("capacity") or {}).get("storage", "0") if volume else "",
        _access_modes(status.get("accessModes")) if volume else "",
        _class_of(claim),
        spec.get("volumeAttributesClassName") or UNSET,
        ages.of(claim),
        spec.get("volumeMode") or UNSET,
    ]


_STATUS: Final = Column("Status", "Whether volume and claim have found each other.")
_CLASS: Final = Column("StorageClass", "The storage class.")
_ATTRIBUTES: Final = Column("VolumeAttributesClass", "The class of the volume's attributes.")
_MODE: Final = wide("VolumeMode", "Whether the volume is a file system or a block device.")


def _storage_class(obj: Object, ages: Ages) -> list[Any]:
    is_default = any(_annotations(obj).get(name) == "true" for name in _DEFAULT_ANNOTATIONS)
    return [
        name_of(obj) + (" (default)" if is_default else ""),
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        ages.of(obj),
    ]


def _csi_node(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), len(spec_of(obj).get("drivers") or ()), ages.of(obj)]


def _csi_driver(obj: Object, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    tokens = spec.get("tokenRequests")
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if tokens is None else ",".join(each.get("audience", "") for each in tokens),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        ages.of(obj),
    ]


def _csi_storage_capacity(obj: Object, ages: Ages) -> list[Any]:
    del ages
    return [name_of(obj), obj.get("storageClassName") or "", obj.get("capacity") or UNSET]


def _volume_attachment(obj: Object, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("attacher") or "",
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName") or "",
        bool(status_of(obj).get("attached")),
        ages.of(obj),
    ]


LAYOUTS: Final = {
    "CSIDriver": Layout(
        (
            NAME,
            Column("AttachRequired", "Whether volumes are attached to nodes first.", "boolean"),
            Column("PodInfoOnMount", "Whether the driver wants to know for which pod it mounts.", "boolean"),
            Column("StorageCapacity", "Whether the driver says how much room is where.", "boolean"),
            Column("TokenRequests", "The audiences of the tokens that the driver wants."),
            Column("RequiresRepublish", "Whether the driver wants to be called again and again.", "boolean"),
            Column("Modes", "For how long the driver's volumes may live."),
            AGE,
        ),
        _csi_driver,
    ),
    "CSINode": Layout(
        (NAME, Column("Drivers", "Drivers indicates the number of CSI drivers registered on the node", "integer"), AGE),
        _csi_node,
    ),
    "CSIStorageCapacity": Layout(
        (
            NAME,
            Column("StorageClassName", "The storage class that the capacity is for."),
            Column("Capacity", "How much room there is."),
        ),
        _csi_storage_capacity,
    ),
    "PersistentVolume": Layout(
        (
            NAME,
            Column("Capacity", "The size of the volume."),
            Column("Access Modes", "How the volume may be mounted."),
            Column("Reclaim Policy", "What becomes of the volume when its claim goes."),
            _STATUS,
            Column("Claim", "The claim that the volume belongs to."),
            _CLASS,
            _ATTRIBUTES,
            Column("Reason", "Why the volume is in a state of failure."),
            AGE,
            _MODE,
        ),
        _persistent_volume,
    ),
    "PersistentVolumeClaim": Layout(
        (
            NAME,
            _STATUS,
            Column("Volume", "The volume that belongs to the claim."),
            Column("Capacity", "The size of the volume."),
            Column("Access Modes", "How the volume may be mounted."),
            _CLASS,
            _ATTRIBUTES,
            AGE,
            _MODE,
        ),
        _persistent_volume_claim,
    ),
    "StorageClass": Layout(
        (
            NAME,
            Column("Provisioner", "Who makes the volumes."),
            Column("ReclaimPolicy", "What becomes of the volumes when their claims go."),
            Column("VolumeBindingMode", "When claims are bound."),
            Column("AllowVolumeExpansion", "Whether volumes may grow."),
            AGE,
        ),
        _storage_class,
    ),
    "VolumeAttachment": Layout(
        (
            NAME,
            Column("Attacher", "The driver that attaches.", format="name"),
            Column("PV", "The volume."),
            Column("Node", "The node."),
            Column("Attached", "Whether the volume is attached.", "boolean"),
            AGE,
        ),
        _volume_attachment,
    ),
}

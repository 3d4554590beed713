"""Tables of volumes, claims and the kinds of storage.k8s.io.

Upstream: pkg/printers/internalversion/printers.go, printPersistentVolume and following; pkg/apis/core/helper.
"""

from dataclasses import replace
from typing import Final

from extender.rules.api_resources import Object
from reprieve.cluster.responses.tables import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    Layout,
    field,
    flag,
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


def _access_modes(path: str) -> Cell:
    modes = field(path, ())
    return lambda obj: ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes(obj))


def _annotations(obj: Object) -> Object:
    return obj["metadata"].get("annotations") or {}


def _class_of(obj: Object) -> str:
    annotation = _annotations(obj).get(_CLASS_ANNOTATION)
    return str(spec_of(obj).get("storageClassName") or "") if annotation is None else str(annotation)


def _phase(obj: Object) -> str:
    return "Terminating" if is_going(obj) else status_of(obj).get("phase", "")


def _if_bound(cell: Cell) -> Cell:
    return lambda claim: cell(claim) if spec_of(claim).get("volumeName") else ""


def _claim(volume: Object) -> str:
    claim = spec_of(volume).get("claimRef")
    return "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}"


def _class_name(obj: Object) -> str:
    is_default = any(_annotations(obj).get(name) == "true" for name in _DEFAULT_ANNOTATIONS)
    return name_of(obj) + (" (default)" if is_default else "")


def _audiences(driver: Object) -> str:
    tokens = spec_of(driver).get("tokenRequests")
    return UNSET if tokens is None else ",".join(token.get("audience", "") for token in tokens)


_STATUS: Final = Column("Status", "Whether volume and claim have found each other.", _phase)
_CLASS: Final = Column("StorageClass", "The storage class.", _class_of)
_ATTRIBUTES: Final = Column(
    "VolumeAttributesClass", "The class of the volume's attributes.", field("spec.volumeAttributesClassName", UNSET)
)
_MODE: Final = wide(
    "VolumeMode", "Whether the volume is a file system or a block device.", field("spec.volumeMode", UNSET)
)

LAYOUTS: Final = {
    "CSIDriver": Layout(
        NAME,
        Column(
            "AttachRequired",
            "Whether volumes are attached to nodes first.",
            lambda driver: spec_of(driver).get("attachRequired", True),
            "boolean",
        ),
        flag("PodInfoOnMount", "Whether the driver wants to know for which pod it mounts.", "spec.podInfoOnMount"),
        flag("StorageCapacity", "Whether the driver says how much room is where.", "spec.storageCapacity"),
        Column("TokenRequests", "The audiences of the tokens that the driver wants.", _audiences),
        flag("RequiresRepublish", "Whether the driver wants to be called again and again.", "spec.requiresRepublish"),
        Column(
            "Modes",
            "For how long the driver's volumes may live.",
            lambda driver: ",".join(spec_of(driver).get("volumeLifecycleModes") or ()) or NONE,
        ),
        AGE,
    ),
    "CSINode": Layout(
        NAME,
        Column(
            "Drivers",
            "Drivers indicates the number of CSI drivers registered on the node",
            lambda node: len(spec_of(node).get("drivers") or ()),
            "integer",
        ),
        AGE,
    ),
    "CSIStorageCapacity": Layout(
        NAME,
        Column("StorageClassName", "The storage class that the capacity is for.", field("storageClassName")),
        Column("Capacity", "How much room there is.", field("capacity", UNSET)),
    ),
    "PersistentVolume": Layout(
        NAME,
        Column("Capacity", "The size of the volume.", field("spec.capacity.storage", "0")),
        Column("Access Modes", "How the volume may be mounted.", _access_modes("spec.accessModes")),
        Column(
            "Reclaim Policy",
            "What becomes of the volume when its claim goes.",
            field("spec.persistentVolumeReclaimPolicy"),
        ),
        _STATUS,
        Column("Claim", "The claim that the volume belongs to.", _claim),
        _CLASS,
        _ATTRIBUTES,
        Column("Reason", "Why the volume is in a state of failure.", field("status.reason")),
        AGE,
        _MODE,
    ),
    "PersistentVolumeClaim": Layout(
        NAME,
        _STATUS,
        Column("Volume", "The volume that belongs to the claim.", field("spec.volumeName")),
        Column("Capacity", "The size of the volume.", _if_bound(field("status.capacity.storage", "0"))),
        Column("Access Modes", "How the volume may be mounted.", _if_bound(_access_modes("status.accessModes"))),
        _CLASS,
        _ATTRIBUTES,
        AGE,
        _MODE,
    ),
    "StorageClass": Layout(
        replace(NAME, cell=_class_name),
        Column("Provisioner", "Who makes the volumes.", field("provisioner")),
        Column("ReclaimPolicy", "What becomes of the volumes when their claims go.", field("reclaimPolicy", "Delete")),
        Column("VolumeBindingMode", "When claims are bound.", field("volumeBindingMode", "Immediate")),
        Column("AllowVolumeExpansion", "Whether volumes may grow.", field("allowVolumeExpansion", False)),
        AGE,
    ),
    "VolumeAttachment": Layout(
        NAME,
        Column("Attacher", "The driver that attaches.", field("spec.attacher"), format="name"),
        Column("PV", "The volume.", field("spec.source.persistentVolumeName")),
        Column("Node", "The node.", field("spec.nodeName")),
        flag("Attached", "Whether the volume is attached.", "status.attached"),
        AGE,
    ),
}

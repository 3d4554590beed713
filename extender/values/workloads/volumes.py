"""PersistentVolumes: which one fits which claim, and how both look once they are bound or provisioned.

Upstream: pkg/controller/volume/persistentvolume, pv_controller.go, index.go; component-helpers/storage/volume.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.values.objects.claims import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    STORAGE_CLASS_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
)
from extender.values.objects.csi_translation import PLUGIN_BY_NAME
from extender.values.objects.meta import Object
from extender.values.objects.quantity import QuantityError, nanos_of
from extender.values.workloads.templates import label_selector

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
YES: Final = "yes"


def annotations_of(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def class_of(obj: Object) -> str:
    """Returns the name of the StorageClass of a claim or a volume; empty if it has none."""
    legacy = annotations_of(obj).get(STORAGE_CLASS_ANNOTATION)
    return legacy if legacy is not None else (obj.get("spec") or {}).get("storageClassName") or ""


def waits_for_consumer(storage_class: Object | None) -> bool:
    """Returns whether claims of the class are bound only when a pod that uses them is scheduled."""
    return storage_class is not None and storage_class.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


def is_for(volume: Object, claim: Object) -> bool:
    """Returns whether the volume is reserved for this very claim. Upstream: IsVolumeBoundToClaim."""
    reference = (volume.get("spec") or {}).get("claimRef") or {}
    metadata = claim["metadata"]
    return (
        reference.get("name") == metadata["name"]
        and reference.get("namespace") == metadata["namespace"]
        and reference.get("uid", "") in ("", metadata["uid"])
    )


def wanted_bytes(claim: Object) -> int:
    """Returns the storage that a claim requests, in billionths of a byte."""
    return _storage((claim["spec"].get("resources") or {}).get("requests"))


def offered_bytes(volume: Object) -> int:
    """Returns the storage that a volume has, in billionths of a byte."""
    return _storage((volume.get("spec") or {}).get("capacity"))


def may_hold(volume: Object, claim: Object) -> bool:
    """Returns whether a volume reserved for the claim can be bound to it (pv_helpers.go, FindMatchingVolume)."""
    return (
        _mode(volume) == _mode(claim)
        and offered_bytes(volume) >= wanted_bytes(claim)
        and not volume["metadata"].get("deletionTimestamp")
    )


def fits(volume: Object, claim: Object) -> bool:
    """Returns whether a free volume of the claim's class can be bound to it."""
    spec = claim["spec"]
    if not may_hold(volume, claim):
        return False
    if not set(spec.get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ()):
        return False
    return spec.get("selector") is None or label_selector(spec["selector"]).matches(
        volume["metadata"].get("labels") or {}
    )


def bound_claim(claim: Object, volume: Object) -> Object:
    spec = claim["spec"]
    ours = {} if spec.get("volumeName") else {BOUND_BY_CONTROLLER_ANNOTATION: YES}
    return annotated(claim, {BIND_COMPLETED_ANNOTATION: YES, **ours}) | {
        "spec": {**spec, "volumeName": volume["metadata"]["name"]}
    }


def provisioned(claim: Object, storage_class: Object, node: Object | None, topology_keys: Iterable[str]) -> Object:
    """Returns the volume that the class's provisioner would make for the selected node.

    `topology_keys` are the labels by which its volumes are reachable, as the node's CSINode says.
    """
    spec, provisioner = claim["spec"], storage_class["provisioner"]
    name = f"pvc-{claim['metadata']['uid']}"
    labels = (node["metadata"].get("labels") or {}) if node is not None else {}
    expressions = [{"key": key, "operator": "In", "values": [labels[key]]} for key in topology_keys if key in labels]
    plugin = PLUGIN_BY_NAME.get(provisioner)
    affinity = (
        {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}
        if expressions
        else {}
    )
    return {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner}},
        "spec": {
            "capacity": {"storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")},
            "accessModes": spec.get("accessModes") or [],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": storage_class["metadata"]["name"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": claim["metadata"]["namespace"],
                "name": claim["metadata"]["name"],
                "uid": claim["metadata"]["uid"],
            },
            "csi": {
                "driver": plugin.driver if plugin is not None else provisioner.replace("/", "."),
                "volumeHandle": name,
            },
            **affinity,
        },
    }


def annotated(obj: Object, annotations: Mapping[str, str]) -> Object:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}}


def _mode(obj: Object) -> str:
    mode: str = obj["spec"].get("volumeMode") or "Filesystem"
    return mode


def _storage(resources: Mapping[str, str] | None) -> int:
    try:
        return nanos_of((resources or {}).get("storage", "0"))
    except QuantityError:
        return 0

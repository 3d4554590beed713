"""The relation of claims and volumes: class, binding, access; and upstream's messages for those that do not exist.

Upstream: component-helpers/storage/volume, helpers.go, pv_helpers.go; storage/ephemeral/ephemeral.go, VolumeIsForPod.
"""

from typing import Final

from extender.values.golang.quoting import quoted
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod, Volume
from extender.values.objects.quantity import Quantity, QuantityError, quantity_of
from extender.values.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim

STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED_ANNOTATION: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER_ANNOTATION: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE_ANNOTATION: Final = "volume.kubernetes.io/selected-node"

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes are made by hand."""
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
CLAIM_LOST: Final = "Lost"
VOLUME_AVAILABLE: Final = "Available"

_STORAGE: Final = "storage"
_FILESYSTEM: Final = "Filesystem"
_ZERO: Final = Quantity()


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Returns the claim that a volume uses, if any. A generic ephemeral volume's is `<pod>-<volume>`."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.name}-{volume.name}"
    return None


def volumes_with_claims(pod: Pod) -> tuple[Volume, ...]:
    """Returns the pod's volumes that use a claim, in order; of thousands that name one, the first."""
    first: dict[str, Volume] = {}
    volumes: list[Volume] = []
    for volume in pod.spec.volumes:
        source = volume.persistent_volume_claim
        if source is not None:
            if first.setdefault(source.claim_name, volume) is volume:
                volumes.append(volume)
        elif volume.ephemeral is not None:
            volumes.append(volume)
    return tuple(volumes)


def names_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    names = (source.claim_name for source in sources if source is not None)
    return pod.namespace == claim.namespace and claim.metadata.name in names


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Returns whether a volume of the pod uses the claim, be it named or made for a generic ephemeral volume."""
    return pod.namespace == claim.namespace and any(
        claim_name(pod, volume) == claim.metadata.name for volume in pod.spec.volumes
    )


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Returns the StorageClass that a claim asks for; "" if it asks for none. The old annotation wins."""
    annotated = claim.metadata.annotations.get(STORAGE_CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def volume_class(volume: PersistentVolume) -> str:
    """Returns the StorageClass that a volume belongs to; "" if to none. The old annotation wins."""
    annotated = volume.metadata.annotations.get(STORAGE_CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


VolumeGroup = tuple[str, tuple[str, str] | None]
"""(StorageClass, the claim that the volume names as namespace and name; None for a volume that is free)."""


def volume_group(volume: PersistentVolume) -> VolumeGroup:
    """Returns the volumes among which a claim looks for its own: the free ones of its class, and those that name it."""
    reference = volume.spec.claim_ref
    return volume_class(volume), None if reference is None else (reference.namespace or "default", reference.name)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """True once the volume controller has bound the claim on both sides (binder.go, isPVCFullyBound)."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED_ANNOTATION in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Returns whether the volume names this claim, by a user's hand or the controller's (IsVolumeBoundToClaim)."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and reference.name == claim.metadata.name
        and (reference.namespace or "default") == claim.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Returns the volume, naming this claim; the same object if it does already. Upstream: GetBindVolumeToClaim."""
    claim_ref = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        resource_version=claim.metadata.resource_version,
    )
    reference = volume.spec.claim_ref
    bound = volume
    if reference is None or (reference.name, reference.namespace, reference.uid) != (
        claim_ref.name,
        claim_ref.namespace,
        claim_ref.uid,
    ):
        bound = replaced(volume, spec=replaced(volume.spec, claim_ref=claim_ref))
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER_ANNOTATION not in volume.metadata.annotations:
        annotations = {**volume.metadata.annotations, BOUND_BY_CONTROLLER_ANNOTATION: "yes"}
        bound = replaced(bound, metadata=replaced(bound.metadata, annotations=annotations))
    return bound


def has_mode_of(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Returns whether both want a filesystem, or both a block device. Upstream: CheckVolumeModeMismatches."""
    return (claim.spec.volume_mode or _FILESYSTEM) == (volume.spec.volume_mode or _FILESYSTEM)


def has_access_of(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Returns whether the volume can be used in every way the claim asks for. Upstream: CheckAccessModes."""
    return set(claim.spec.access_modes).issubset(volume.spec.access_modes)


def has_attributes_of(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Returns whether both name the same VolumeAttributesClass, or none."""
    return (claim.spec.volume_attributes_class_name or "") == (volume.spec.volume_attributes_class_name or "")


def requested_storage(claim: PersistentVolumeClaim) -> Quantity | None:
    """spec.resources.requests.storage, if any. Raises QuantityError; the message names the claim."""
    raw = claim.spec.resources.requests.get(_STORAGE)
    if raw is None:
        return None
    try:
        return quantity_of(raw)
    except QuantityError as exc:
        raise QuantityError(
            f"persistentvolumeclaim {quoted(claim.metadata.name)}: spec.resources.requests.storage: {exc}"
        ) from exc


def storage_capacity(volume: PersistentVolume) -> Quantity:
    """spec.capacity.storage; zero if there is none. Raises QuantityError; the message names the volume."""
    raw = volume.spec.capacity.get(_STORAGE)
    if raw is None:
        return _ZERO
    try:
        return quantity_of(raw)
    except QuantityError as exc:
        raise QuantityError(f"persistentvolume {quoted(volume.metadata.name)}: spec.capacity.storage: {exc}") from exc


def why_not_owned(claim: PersistentVolumeClaim, pod_name: str, pod_uid: str) -> str | None:
    """Returns why a generic ephemeral volume of the pod cannot use the claim: the pod must control it."""
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    if controller is not None and controller.uid == pod_uid:
        return None
    namespace = claim.namespace
    return f"PVC {namespace}/{claim.metadata.name} was not created for pod {namespace}/{pod_name} (pod is not owner)"


# The words of upstream's listers.


def claim_not_found(name: str) -> str:
    return f"persistentvolumeclaim {quoted(name)} not found"


def volume_not_found(name: str) -> str:
    return f"persistentvolume {quoted(name)} not found"


def class_not_found(name: str) -> str:
    return f"storageclass.storage.k8s.io {quoted(name)} not found"

"""Builders for storage: a claim, a volume, a class in one line each.

    make_claim("data", volume="pv", storage_class="std")
    make_volume("pv", claim="data", csi="ebs.csi.aws.com", affinity=[label_term("zone", "In", "z1")])

They return finished objects, because objects of storage have few fields that tests need.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.values.objects.claims import BIND_COMPLETED_ANNOTATION, SELECTED_NODE_ANNOTATION
from extender.values.objects.meta import LabelSelector, NodeSelector, NodeSelectorTerm, ObjectMeta, OwnerReference
from extender.values.objects.pod import (
    AWSElasticBlockStore,
    EphemeralVolumeSource,
    GCEPersistentDisk,
    ISCSIVolume,
    Pod,
    RBDVolume,
    ResourceRequirements,
    Volume,
)
from extender.values.objects.storage import (
    MIGRATED_PLUGINS_ANNOTATION,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
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
    owners = [OwnerReference(kind="Pod", name=owner.name, uid=owner.uid, controller=True)] if owner is not None else []
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version=version,
            annotations=annotations,
            owner_references=owners,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleted else None,
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=[access],
            selector=selector,
            resources=ResourceRequirements(requests={"storage": size} if size else {}),
            volume_name=volume,
            storage_class_name=storage_class,
        ),
        status=PersistentVolumeClaimStatus(phase=phase or ("Bound" if volume else "Pending")),
    )


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
    reference = (
        ObjectReference(kind="PersistentVolumeClaim", namespace="default", name=claim, uid=f"uid-{claim}")
        if claim
        else None
    )
    return PersistentVolume(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=dict(labels or {}), resource_version=version),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=[access],
            claim_ref=reference,
            storage_class_name=storage_class,
            node_affinity=None
            if affinity is None
            else VolumeNodeAffinity(required=NodeSelector(node_selector_terms=list(affinity))),
            csi=CSIPersistentVolumeSource(driver=csi, volume_handle=name) if csi else None,
            aws_elastic_block_store=AWSElasticBlockStore(volume_id=ebs) if ebs else None,
        ),
        status=PersistentVolumeStatus(phase=phase or ("Bound" if claim else "Available")),
    )


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
    expressions = [
        TopologySelectorLabelRequirement(key=key, values=list(values)) for key, values in (topology or {}).items()
    ]
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=binding,
        allowed_topologies=[] if topology is None else [TopologySelectorTerm(match_label_expressions=expressions)],
    )


def make_csi_node(
    name: str, limits: Mapping[str, int | None] | None = None, *, migrated: Sequence[str] = ()
) -> CSINode:
    """Returns a CSINode: driver -> the limit of volumes, None for no limit; and the in-tree plugins that are
    migrated.
    """
    annotations = {MIGRATED_PLUGINS_ANNOTATION: ",".join(migrated)} if migrated else {}
    drivers = [
        CSINodeDriver(name=driver, allocatable=None if limit is None else VolumeNodeResources(count=limit))
        for driver, limit in (limits or {}).items()
    ]
    return CSINode(metadata=ObjectMeta(name=name, annotations=annotations), spec=CSINodeSpec(drivers=drivers))


def make_csi_driver(
    name: str = "csi.example.com", *, publishes_capacity: bool = True, is_required: bool | None = None
) -> CSIDriver:
    """Returns a CSIDriver that publishes the storage capacity of its topologies, unless told otherwise.

    Arguments:
        is_required: whether its volumes may only be used on nodes where it is installed.
    """
    spec = CSIDriverSpec(storage_capacity=publishes_capacity, prevent_pod_scheduling_if_missing=is_required)
    return CSIDriver(metadata=ObjectMeta(name=name), spec=spec)


def make_capacity(
    name: str, capacity: str, topology: LabelSelector | None, *, storage_class: str = "std", largest: str | None = None
) -> CSIStorageCapacity:
    """Returns the capacity that a driver has for volumes of a class, on the nodes with such labels."""
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        node_topology=topology,
        storage_class_name=storage_class,
        capacity=capacity,
        maximum_volume_size=largest,
    )


def make_attachment(volume: str, node: str, *, driver: str = "csi.example.com") -> VolumeAttachment:
    """Returns an attachment of the volume to the node."""
    spec = VolumeAttachmentSpec(
        attacher=driver, source=VolumeAttachmentSource(persistent_volume_name=volume), node_name=node
    )
    return VolumeAttachment(metadata=ObjectMeta(name=f"{volume}-{node}"), spec=spec)


def ephemeral(name: str = "scratch") -> Volume:
    """Returns a generic ephemeral volume, whose claim is named `<pod>-<name>`."""
    return Volume(name=name, ephemeral=EphemeralVolumeSource())


def ebs_disk(volume_id: str, *, read_only: bool = False) -> Volume:
    """Returns an in-tree EBS volume for a pod's spec."""
    return Volume(name="ebs", aws_elastic_block_store=AWSElasticBlockStore(volume_id=volume_id, read_only=read_only))


def gce_disk(name: str, *, read_only: bool = False) -> Volume:
    """Returns an in-tree GCE disk for a pod's spec."""
    return Volume(name="gce", gce_persistent_disk=GCEPersistentDisk(pd_name=name, read_only=read_only))


def iscsi_disk(iqn: str, *, read_only: bool = False) -> Volume:
    """Returns an iSCSI disk for a pod's spec."""
    return Volume(name="iscsi", iscsi=ISCSIVolume(iqn=iqn, read_only=read_only))


def rbd_image(image: str, *monitors: str, pool: str = "rbd", read_only: bool = False) -> Volume:
    """Returns a Ceph image for a pod's spec."""
    return Volume(name="rbd", rbd=RBDVolume(monitors=list(monitors), image=image, pool=pool, read_only=read_only))

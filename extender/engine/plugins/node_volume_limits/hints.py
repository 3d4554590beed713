"""Which events may help a pod with too many volumes.

Upstream: framework/plugins/nodevolumelimits/csi.go, isSchedulableAfterPodDeleted, isSchedulableAfterPVCAdded,
isSchedulableAfterVolumeAttachmentDeleted, isSchedulableAfterCSINodeUpdated (v1.36.2).
"""

from extender.engine import framework as fwk
from extender.values.objects.claims import claim_name, uses_claim
from extender.values.objects.csi_translation import TranslationError, in_tree_plugin, inline_handle
from extender.values.objects.storage import CSINode, PersistentVolumeClaim, VolumeAttachment


def after_csi_node_update(pod: fwk.Pod, old: CSINode, new: CSINode) -> fwk.QueueingHint:
    """Queues the pod if a driver can attach more volumes than before."""
    had = _limits(old)
    return fwk.queue_if(any(limit > had.get(driver, 0) for driver, limit in _limits(new).items()))


def _limits(node: CSINode) -> dict[str, int]:
    """Returns driver -> its limit; here a driver without a limit has 0."""
    return {
        driver.name: (driver.allocatable.count or 0) if driver.allocatable is not None else 0
        for driver in node.spec.drivers
    }


def after_pod_deletion(pod: fwk.Pod, old: fwk.Pod, new: None) -> fwk.QueueingHint:
    """Queues the pod if the deleted pod had a node or a nomination, and volumes that a CSI driver may have attached."""
    if not old.spec.node_name and not old.status.nominated_node_name:
        return fwk.QueueingHint.QUEUE_SKIP
    return fwk.queue_if(
        any(claim_name(old, volume) is not None or in_tree_plugin(volume) is not None for volume in old.spec.volumes)
    )


def after_claim_addition(pod: fwk.Pod, old: None, new: PersistentVolumeClaim) -> fwk.QueueingHint:
    """Queues the pod if the claim is its own."""
    return fwk.queue_if(uses_claim(pod, new))


def after_attachment_deletion(pod: fwk.Pod, old: VolumeAttachment, new: None) -> fwk.QueueingHint:
    """Queues the pod if it has claims, or an in-line disk of the driver that detached a volume.

    Raises:
        TranslationError: a disk of the pod has no CSI form.
    """
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return fwk.QueueingHint.QUEUE
        plugin = in_tree_plugin(volume)
        if plugin is None:
            continue
        try:
            inline_handle(volume, plugin)
        except TranslationError as exc:
            raise TranslationError(f"converting volume({volume.name}) from inline to csi: {exc}") from exc
        if plugin.driver == old.spec.attacher:
            return fwk.QueueingHint.QUEUE
    return fwk.QueueingHint.QUEUE_SKIP

"""Writes the assumed volumes and claims, and waits until the volume controller and the provisioners have bound them.

Upstream: framework/plugins/volumebinding/binder.go, BindPodVolumes, bindAPIUpdate, checkBindings.
"""

from typing import Final

from extender.engine import framework as fwk
from extender.engine.framework import storage_calls
from extender.engine.plugins.volume_binding.binder import AssumedVolumes, restore_pod_volumes
from extender.engine.plugins.volume_binding.pod_claims import CLAIM_KIND, VOLUME_KIND, Storage, not_found
from extender.engine.plugins.volume_binding.reach import why_unreached
from extender.values.golang.quoting import quoted
from extender.values.objects.claims import SELECTED_NODE_ANNOTATION, is_fully_bound
from extender.values.objects.csi_translation import TranslationError
from extender.values.objects.meta import version
from extender.values.objects.node import Node
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim

CHECK_INTERVAL: Final = 1.0


class BindingError(Exception):
    """The volumes will not be bound on this node, as upstream words it, and the pod has to be rescheduled."""


async def bind_pod_volumes(
    storage: Storage, assumed: AssumedVolumes, pod: fwk.Pod, node: str, handle: fwk.Handle, max_wait: float
) -> None:
    """Writes the assumed objects, and waits up to `max_wait` seconds until all of them are bound.

    Raises CallError if the API server refused: objects already written stay, the others are no longer assumed.
    Raises BindingError if binding failed for good, or the time is up.
    """
    dispatcher, live = handle.dispatcher, handle.live
    if dispatcher is None or live is None:
        raise BindingError("binding volumes: there is no API server to bind through")
    saved = await _write(storage, assumed, pod, dispatcher)
    try:
        await fwk.poll(lambda: _is_bound(saved, pod, node, live), every=CHECK_INTERVAL, within=max_wait)
    except (_CheckError, TimeoutError) as exc:
        raise BindingError(f"binding volumes: {exc}") from exc


async def _write(storage: Storage, assumed: AssumedVolumes, pod: fwk.Pod, dispatcher: fwk.Dispatcher) -> AssumedVolumes:
    """Writes the volumes and claims, and returns them as the API server has them then."""
    volumes: list[PersistentVolume] = []
    claims: list[PersistentVolumeClaim] = []
    try:
        for volume in assumed.volumes:
            volumes.append(await dispatcher.perform(storage_calls.PatchPersistentVolume.of(volume)))  # noqa: PERF401 - counted if one fails
        for claim in assumed.claims:
            claims.append(await dispatcher.perform(storage_calls.PatchPersistentVolumeClaim.of(claim)))  # noqa: PERF401
    finally:
        rest = AssumedVolumes(assumed.volumes[len(volumes) :], assumed.claims[len(claims) :])
        restore_pod_volumes(storage, rest, pod.uid)
    return AssumedVolumes(tuple(volumes), tuple(claims))


class _CheckError(Exception):
    """Binding failed for good."""


def _is_bound(saved: AssumedVolumes, pod: fwk.Pod, node_name: str, live: fwk.LiveCluster) -> bool:
    """True once all is bound by the API server's objects. Raises _CheckError if it failed for good."""
    node = live.node(node_name)
    if node is None:
        raise _CheckError(f"failed to get node {quoted(node_name)}: node {quoted(node_name)} not found")
    if live.pod(pod.uid) is None:
        raise _CheckError(f"pod does not exist any more: pod {quoted(pod.name)} not found")
    return all(_is_volume_bound(volume, node, live) for volume in saved.volumes) and all(
        _is_claim_bound(claim, node, live) for claim in saved.claims
    )


def _is_volume_bound(saved: PersistentVolume, node: Node, live: fwk.LiveCluster) -> bool:
    name = saved.metadata.name
    volume = live.objects.pvs.get(name)
    if volume is None:
        raise _CheckError(f"failed to check binding: {not_found(VOLUME_KIND, name)}")
    claim = _named_claim(saved, live)
    if version(saved.metadata) > version(volume.metadata):
        return False
    try:
        _check_reach(volume, node, live)
    except TranslationError as exc:
        raise _CheckError(f"failed to translate pv to csi: {exc}") from exc
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        raise _CheckError(f"ClaimRef got reset for pv {quoted(name)}")
    return is_fully_bound(claim)


def _named_claim(volume: PersistentVolume, live: fwk.LiveCluster) -> PersistentVolumeClaim:
    reference = volume.spec.claim_ref
    if reference is None:
        raise _CheckError(f"ClaimRef got reset for pv {quoted(volume.metadata.name)}")
    claim = live.objects.pvcs.get((reference.namespace, reference.name))
    if claim is None:
        key = f"{reference.namespace}/{reference.name}"
        raise _CheckError(f"failed to check binding: {not_found(CLAIM_KIND, key)}")
    return claim


def _is_claim_bound(saved: PersistentVolumeClaim, node: Node, live: fwk.LiveCluster) -> bool:
    namespace, name = saved.namespace, saved.metadata.name
    claim = live.objects.pvcs.get((namespace, name))
    if claim is None:
        raise _CheckError(f"failed to check provisioning pvc: {not_found(CLAIM_KIND, f'{namespace}/{name}')}")
    if version(saved.metadata) > version(claim.metadata):
        return False
    if not claim.metadata.annotations:
        raise _CheckError(f"selectedNode annotation reset for PVC {quoted(name)}")
    # A provisioner that fails removes the annotation.
    if claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION) != node.name:
        raise _CheckError(f"provisioning failed for PVC {quoted(name)}")
    if claim.spec.volume_name:
        volume = live.objects.pvs.get(claim.spec.volume_name)
        if volume is None:
            # The volume may not have been observed yet; if it was deleted, the claim will change.
            return False
        try:
            _check_reach(volume, node, live)
        except TranslationError as exc:
            raise _CheckError(str(exc)) from exc
    return is_fully_bound(claim)


def _check_reach(volume: PersistentVolume, node: Node, live: fwk.LiveCluster) -> None:
    why = why_unreached(volume, node, live.objects.csi_nodes.get(node.name))
    if why is not None:
        pv = quoted(volume.metadata.name)
        raise _CheckError(f"pv {pv} node affinity doesn't match node {quoted(node.name)}: {why}")

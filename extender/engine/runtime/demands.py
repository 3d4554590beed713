"""The door for waiting pods: those that demand more than `limits.DEMANDS` are not considered, so that plugins may be
plain about the others. Pods on nodes count in full.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from extender.engine import framework as fwk
from extender.values import limits
from extender.values.objects.claims import claim_name
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolumeClaim

DEMANDS: Final = "Demands"
"""The name of this check among the plugins that refused a pod."""

_ENCODE: Final = msgspec.json.Encoder().encode


def refusal_of_demands(pod: Pod, objects: ClusterObjects) -> fwk.Status | None:
    """Returns why the pod is not considered; None if it is."""
    size = demanded_bytes(pod, objects)
    if size <= limits.DEMANDS:
        return None
    why = f"the pod's scheduling demands have {size} bytes, more than the {limits.DEMANDS:d} that are considered"
    return fwk.unresolvable(why).by(DEMANDS)


def _demands_less(pod: Pod, old: object, new: object) -> fwk.QueueingHint:
    return fwk.queue_if(
        isinstance(old, Pod) and isinstance(new, Pod) and new.uid == pod.uid and _bytes_of(new) < _bytes_of(old)
    )


def _claims_it(pod: Pod, _: object, new: PersistentVolumeClaim | ResourceClaim) -> fwk.QueueingHint:
    names = _volume_claims(pod) if isinstance(new, PersistentVolumeClaim) else _resource_claims(pod)
    return fwk.queue_if(new.metadata.namespace == pod.namespace and new.metadata.name in names)


REGISTRATIONS: Final = (
    fwk.on(fwk.EventResource.UNSCHEDULABLE_POD, fwk.ActionType.UPDATE, _demands_less),
    # The spec of a claim does not change, but another one may take its name.
    fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, fwk.ActionType.ADD, _claims_it),
    fwk.on(fwk.EventResource.RESOURCE_CLAIM, fwk.ActionType.ADD, _claims_it),
)
"""The events that may undo a refusal."""


def demanded_bytes(pod: Pod, objects: ClusterObjects) -> int:
    """Returns the bytes that plugins read of a waiting pod: labels, spec, and its claims' specs, each once."""
    spec, size = pod.spec, _bytes_of(pod)
    if spec.volumes:
        for key in {(pod.namespace, name) for name in _volume_claims(pod)}:
            volume_claim = objects.pvcs.get(key)
            size += 0 if volume_claim is None else len(_ENCODE(volume_claim.spec))
    if spec.resource_claims:
        for key in {(pod.namespace, name) for name in _resource_claims(pod)}:
            resource_claim = objects.resource_claims.get(key)
            size += 0 if resource_claim is None else len(_ENCODE(resource_claim.spec))
    return size


def _bytes_of(pod: Pod) -> int:
    return len(_ENCODE((pod.metadata.labels, pod.spec)))


def _volume_claims(pod: Pod) -> Iterator[str]:
    return (name for volume in pod.spec.volumes if (name := claim_name(pod, volume)))


def _resource_claims(pod: Pod) -> Iterator[str]:
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name or generated.get(reference.name)
        if name:
            yield name

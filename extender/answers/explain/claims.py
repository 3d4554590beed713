"""What the claims of a pod wait for: their phase and their class, which the messages of schedulers do not name."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from extender.answers.types import Queue, QueuePlace
from extender.engine.cache.cluster import Cluster
from extender.values.objects.claims import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_name,
    volumes_with_claims,
)
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import DeviceRequest, ResourceClaim
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolumeClaim

_ABOUT_VOLUMES: Final = re.compile("volume", re.IGNORECASE)
_ABOUT_DEVICES: Final = re.compile("resource ?claim|all claims|device", re.IGNORECASE)


def with_claims(queue: Queue, cluster: Cluster) -> Queue:
    """Returns the queue with what the claims of its pods wait for."""

    def noted(place: QueuePlace) -> QueuePlace:
        pod = cluster.pending.get(place.pod.uid) if place.message else None
        claims = () if pod is None else tuple(claim_notes(pod, cluster.cache.objects, place.message))
        return msgspec.structs.replace(place, claims=claims) if claims else place

    return msgspec.structs.replace(queue, items=tuple(map(noted, queue.items)))


def claim_notes(pod: Pod, objects: ClusterObjects, message: str) -> Iterator[str]:
    """Yields a note on each claim of the kind that the scheduler's message is about."""
    if _ABOUT_VOLUMES.search(message):
        for volume in volumes_with_claims(pod):
            name = claim_name(pod, volume) or ""
            claim = objects.pvcs.get((pod.namespace, name))
            yet = "" if volume.ephemeral is None else f" yet: it is made for the volume {volume.name}"
            yield f"the claim {name} {f'does not exist{yet}' if claim is None else _of_volume(claim, objects)}"
    if _ABOUT_DEVICES.search(message):
        made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
        for reference in pod.spec.resource_claims:
            named = reference.resource_claim_name or made.get(reference.name)
            found = objects.resource_claims.get((pod.namespace, named or ""))
            if found is not None:
                yield f"the resource claim {named} {_of_devices(found, objects)}"
            elif named is not None:
                yield f"the resource claim {named} does not exist"
            else:
                template = reference.resource_claim_template_name
                yield f"the resource claim {reference.name} is not made yet from the template {template}"


def _of_volume(claim: PersistentVolumeClaim, objects: ClusterObjects) -> str:
    name, phase, volume = claim_class(claim), claim.status.phase or "Pending", claim.spec.volume_name
    state = f"{f'of the class {name} ' if name else ''}is {phase}"
    known = objects.storage_classes.get(name)
    if volume:
        return f"{state}: its volume {volume}{'' if volume in objects.pvs else ' does not exist'}"
    if known is None:
        return f"{state}: {'its class does not exist' if name else 'without a class its volume is made by hand'}"
    maker = "hand" if known.provisioner == NO_PROVISIONER else known.provisioner
    if known.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return f"{state}: it gets a volume, made by {maker}, before nodes are looked at (Immediate)"
    where = " in one of the topologies of its class" if known.allowed_topologies else ""
    return f"{state}: it gets a volume, made by {maker}, once a node is chosen{where} ({WAIT_FOR_FIRST_CONSUMER})"


def _of_devices(claim: ResourceClaim, objects: ClusterObjects) -> str:
    if claim.status.allocation is not None:
        number = len(claim.status.reserved_for)
        return f"is allocated, and reserved for {number} pod{'' if number == 1 else 's'}"
    return f"is pending: {', '.join(_wanted(each, objects) for each in claim.spec.devices.requests)}"


def _wanted(request: DeviceRequest, objects: ClusterObjects) -> str:
    return " or ".join(
        f"{each.count or 1 if each.allocation_mode != 'All' else 'all'} of the class {each.device_class_name}"
        + ("" if each.device_class_name in objects.device_classes else ", which does not exist")
        for each in ([request.exactly] if request.exactly is not None else request.first_available)
    )

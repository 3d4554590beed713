"""What the scheduler of a pod has done with it, as its objects and our own cycle show: the same words by every door."""

from collections.abc import Collection, Iterator
from typing import Final, Literal

from extender.answers.phrases import for_people
from extender.answers.types import Standing
from extender.engine.cache.cluster import Cluster
from extender.engine.framework.interface import listed
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.values.objects.claims import SELECTED_NODE_ANNOTATION, claim_class, claim_name, volumes_with_claims
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolumeClaim

NO_WAITING_PODS: Final = WaitingPodsMap()


def standing(
    pod: Pod, cluster: Cluster, profiles: Collection[str], waiting: WaitingPodsMap = NO_WAITING_PODS
) -> Standing:
    """Returns how far the pod has come with its scheduler, which is another one if it is none of the profiles."""
    name, condition = pod.scheduler_name, _refusal(pod)
    if pod.metadata.deletion_timestamp:
        held = pod.metadata.finalizers
        until = f", and goes once the {listed('finalizer', held)} is removed" if held else ""
        return Standing(
            state="deleted",
            waits_for="finalizer" if held else "",
            since=pod.metadata.deletion_timestamp,
            text=f"it is being deleted since {pod.metadata.deletion_timestamp}{until}",
            reason="is being deleted",
        )
    assumed = cluster.cache.pod(pod.uid)  # by our own cycle
    node = placed_on(pod, cluster.cache.objects) if assumed is None else assumed.spec.node_name
    if node or assumed is not None:
        return _placed(pod, node, cluster.cache.objects, waiting)
    if condition is not None:
        since = condition.last_transition_time or None
        at = f" at {since}" if since else ""
        said = f": {for_people(condition.message)}" if condition.message else ""
        return Standing(state="refused", since=since, text=f"{name} refused it{at}{said}")
    if pod.status.nominated_node_name:
        return Standing(
            state="nominated",
            text=f"{name} has nominated it to {pod.status.nominated_node_name}",
            node=pod.status.nominated_node_name,
        )
    if name not in profiles:
        text = f"waits for the scheduler {name}, not seen here"
        return Standing(state="elsewhere", waits_for="scheduler", text=f"it {text}", reason=text)
    return Standing(state="untried", text=f"{name} has not tried it yet: it has no condition PodScheduled")


def placed_on(pod: Pod, objects: ClusterObjects) -> str:
    """Returns the node that another scheduler has chosen for a pod which is not bound yet; empty if none is known.

    It has, if the pod's claims say so: the annotation of the chosen node lasts until the volume is there. After a
    refusal it is what is left of an attempt that failed, unless the pod is nominated to that node again.
    """
    for claim in _volume_claims(pod, objects):
        node = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION, "")
        is_left_over = _refusal(pod) is not None and pod.status.nominated_node_name != node
        if node and not claim.spec.volume_name and not is_left_over:
            return node
    reserved = any(_is_reserved(claim, pod) for claim in _device_claims(pod, objects))
    return pod.status.nominated_node_name if reserved and _refusal(pod) is None else ""


def _placed(pod: Pod, node: str, objects: ClusterObjects, waiting: WaitingPodsMap) -> Standing:
    held = waiting.get(pod.uid)
    if held is not None and held.pending_plugins:
        at = " and ".join(sorted(held.pending_plugins))
        return _waits("permit", node, f"until {at} permits it", f"waits at Permit for {at}")
    for claim in _volume_claims(pod, objects):
        if not claim.spec.volume_name and claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION):
            known = objects.storage_classes.get(claim_class(claim))
            maker = "its provisioner" if known is None else known.provisioner
            until = (
                f"for the volume of the claim {claim.name}, which {maker} has to provision for {node}; it is bound "
                "once the volume is there, or tried anew when its scheduler has waited enough (often 10 minutes)"
            )
            return _waits("volume", node, until, f"waits for a volume that {maker} has to provision")
    for reserved in _device_claims(pod, objects):
        missing = [*dict.fromkeys(_missing_conditions(reserved))] if _is_reserved(reserved, pod) else []
        if missing:
            until = f"until the driver of its resource claim {reserved.name} reports {' and '.join(missing)}"
            return _waits("device", node, until, "waits for a device to become ready")
    return Standing(state="binding", node=node, text=f"it is being bound on {node}", reason="is being bound")


def _waits(for_what: Literal["volume", "device", "permit"], node: str, until: str, reason: str) -> Standing:
    return Standing(
        state="waiting", waits_for=for_what, node=node, text=f"it is placed on {node} and waits {until}", reason=reason
    )


def _refusal(pod: Pod) -> Condition | None:
    of_scheduler = (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False")
    return next((each for each in of_scheduler if each.reason != "SchedulingGated"), None)


def _volume_claims(pod: Pod, objects: ClusterObjects) -> Iterator[PersistentVolumeClaim]:
    for volume in volumes_with_claims(pod):
        claim = objects.pvcs.get((pod.namespace, claim_name(pod, volume) or ""))
        if claim is not None:
            yield claim


def _device_claims(pod: Pod, objects: ClusterObjects) -> Iterator[ResourceClaim]:
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        claim = objects.resource_claims.get(
            (pod.namespace, reference.resource_claim_name or made.get(reference.name) or "")
        )
        if claim is not None:
            yield claim


def _is_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    return claim.status.allocation is not None and any(each.uid == pod.uid for each in claim.status.reserved_for)


def _missing_conditions(claim: ResourceClaim) -> Iterator[str]:
    met = {
        (device.driver, device.pool, device.device, each.type)
        for device in claim.status.devices
        for each in device.conditions
        if each.status == "True"
    }
    allocation = claim.status.allocation
    for result in () if allocation is None else allocation.devices.results:
        for name in result.binding_conditions:
            if (result.driver, result.pool, result.device, name) not in met:
                yield name

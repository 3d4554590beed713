"""What the scheduler of a pod has done with it, as its objects and our own cycle show: the same words by every door."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Literal

from extender.answers.phrases import for_people
from extender.answers.types import Standing
from extender.engine.cache.cluster import Cluster
from extender.engine.framework.interface import listed
from extender.engine.plugins.taints import taint_in_words
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.values.objects.claims import (
    SELECTED_NODE_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_name,
    volumes_with_claims,
)
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.meta import Condition
from extender.values.objects.node import Taint
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolumeClaim
from extender.values.objects.tolerations import find_untolerated_taint, tolerations_of

NO_WAITING_PODS: Final = WaitingPodsMap()


def standing(
    pod: Pod,
    cluster: Cluster,
    profiles: Collection[str],
    waiting: WaitingPodsMap = NO_WAITING_PODS,
    placed_at: Callable[[Pod], str | None] = lambda _: None,
) -> Standing:
    """Returns how far the pod has come with its scheduler, which is another one if it is none of the profiles.

    `placed_at` returns when our own cycle has chosen its node; None if it has not.
    """
    name, condition, nominated = pod.scheduler_name, _refusal(pod), pod.status.nominated_node_name
    if pod.metadata.deletion_timestamp:
        finalizers = pod.metadata.finalizers
        until = f", and goes once the {listed('finalizer', finalizers)} is removed" if finalizers else ""
        return Standing(
            state="deleted",
            waits_for="finalizer" if finalizers else "",
            since=pod.metadata.deletion_timestamp,
            text=f"it is being deleted since {pod.metadata.deletion_timestamp}{until}",
            reason="is being deleted",
        )
    assumed = cluster.cache.pod(pod.uid)  # by our own cycle
    node = placed_on(pod, cluster.cache.objects) if assumed is None else assumed.spec.node_name
    if node or assumed is not None:
        return _placed(pod, node, cluster.cache.objects, waiting, placed_at(pod))
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if gates:
        return Standing(state="gated", text=f"it is held back by the {listed('scheduling gate', gates)}")
    taint = find_untolerated_taint(_taints(nominated, cluster), tolerations_of(pod)) if nominated else None
    if taint is not None:
        text = (
            f"{name} has nominated it to {nominated}, and it waits until the taint {taint_in_words(taint)} there goes"
        )
        reason = f"waits until the taint {taint.key} of its node goes"
        return Standing(state="nominated", waits_for="taint", text=text, reason=reason, node=nominated)
    if condition is not None:
        since = condition.last_transition_time or None
        when = f" at {since}" if since else ""
        words = f": {for_people(condition.message)}" if condition.message else ""
        return Standing(state="refused", since=since, text=f"{name} refused it{when}{words}")
    if nominated:
        return Standing(state="nominated", text=f"{name} has nominated it to {nominated}", node=nominated)
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


def unbound_claims(pod: Pod, objects: ClusterObjects) -> Iterator[PersistentVolumeClaim]:
    """Yields the claims of the pod that have no volume yet."""
    return (claim for claim in _volume_claims(pod, objects) if not claim.spec.volume_name)


def notes_on_hand_placed(pod: Pod, cluster: Cluster) -> Iterator[str]:
    """Yields a note on each claim that is never bound, since no scheduler chooses the node of this pod."""
    node, objects = cluster.nodes.get(pod.spec.node_name), cluster.cache.objects
    host = pod.spec.node_name if node is None else node.labels.get("kubernetes.io/hostname", node.name)
    for claim in unbound_claims(pod, objects):
        storage_class = objects.storage_classes.get(claim_class(claim))
        is_waiting = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        if is_waiting and not claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION):
            yield (
                f"the claim {claim.name} gets its volume once a scheduler has placed a pod that uses it "
                f"({WAIT_FOR_FIRST_CONSUMER}); the node of this pod was set by hand (spec.nodeName), so it waits "
                f"forever; create it again without nodeName, with the node selector kubernetes.io/hostname={host}"
            )


def _placed(pod: Pod, node: str, objects: ClusterObjects, waiting: WaitingPodsMap, placed_at: str | None) -> Standing:
    permit_wait = waiting.get(pod.uid)
    if permit_wait is not None and permit_wait.pending_plugins:
        plugins = " and ".join(sorted(permit_wait.pending_plugins))
        return _waits("permit", node, f"until {plugins} permits it", f"waits at Permit for {plugins}", placed_at)
    for claim in unbound_claims(pod, objects):
        if claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION):
            storage_class, condition = objects.storage_classes.get(claim_class(claim)), _refusal(pod)
            maker = "its provisioner" if storage_class is None else storage_class.provisioner
            until = (
                f"for the volume of the claim {claim.name}, which {maker} has to provision for {node}; it is bound "
                "once the volume is there, or retried after its scheduler's timeout (often 10 minutes)"
            )
            reason = f"waits for a volume that {maker} has to provision"
            # Nobody writes down when a node was chosen; it was after all of these.
            refused = None if condition is None else condition.last_transition_time
            before = pod.metadata.creation_timestamp, claim.metadata.creation_timestamp, refused
            return _waits("volume", node, until, reason, placed_at, max(filter(None, before), default=None))
    for reserved in _device_claims(pod, objects):
        conditions = [*dict.fromkeys(_missing_conditions(reserved))] if _is_reserved(reserved, pod) else []
        if conditions:
            until = f"until the driver of its resource claim {reserved.name} reports {' and '.join(conditions)}"
            return _waits("device", node, until, "waits for a device to become ready", placed_at)
    return Standing(
        state="binding", node=node, since=placed_at, text=f"it is being bound on {node}", reason="is being bound"
    )


def _waits(
    for_what: Literal["volume", "device", "permit"],
    node: str,
    until: str,
    reason: str,
    placed_at: str | None,
    earliest: str | None = None,
) -> Standing:
    since = f", since {placed_at}," if placed_at else f", since {earliest} at the earliest," if earliest else ""
    text = f"it is placed on {node} and waits{since} {until}"
    return Standing(
        state="waiting", waits_for=for_what, node=node, since=placed_at or earliest, text=text, reason=reason
    )


def _taints(node: str, cluster: Cluster) -> Sequence[Taint]:
    node_object = cluster.nodes.get(node)
    return () if node_object is None else node_object.spec.taints


def _refusal(pod: Pod) -> Condition | None:
    of_scheduler = (
        condition
        for condition in pod.status.conditions
        if condition.type == "PodScheduled" and condition.status == "False"
    )
    return next((condition for condition in of_scheduler if condition.reason != "SchedulingGated"), None)


def _volume_claims(pod: Pod, objects: ClusterObjects) -> Iterator[PersistentVolumeClaim]:
    for volume in volumes_with_claims(pod):
        claim = objects.pvcs.get((pod.namespace, claim_name(pod, volume) or ""))
        if claim is not None:
            yield claim


def _device_claims(pod: Pod, objects: ClusterObjects) -> Iterator[ResourceClaim]:
    claim_names = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        claim = objects.resource_claims.get(
            (pod.namespace, reference.resource_claim_name or claim_names.get(reference.name) or "")
        )
        if claim is not None:
            yield claim


def _is_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    return claim.status.allocation is not None and any(
        consumer.uid == pod.uid for consumer in claim.status.reserved_for
    )


def _missing_conditions(claim: ResourceClaim) -> Iterator[str]:
    true_conditions = {
        (device.driver, device.pool, device.device, condition.type)
        for device in claim.status.devices
        for condition in device.conditions
        if condition.status == "True"
    }
    allocation = claim.status.allocation
    for result in () if allocation is None else allocation.devices.results:
        for name in result.binding_conditions:
            if (result.driver, result.pool, result.device, name) not in true_conditions:
                yield name

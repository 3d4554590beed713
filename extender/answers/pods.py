"""Pods as answers show them."""

from extender.answers.types import PodName, Victim
from extender.objects.pod import Pod
from extender.objects.quantity import QuantityError
from extender.objects.resource_amounts import assigned_requests, pod_requests


def pod_name(pod: Pod) -> PodName:
    """Returns the pod by its names."""
    return PodName(namespace=pod.metadata.namespace or "default", name=pod.metadata.name, uid=pod.uid, priority=pod.priority)


def victim(pod: Pod, violates: tuple[str, ...] = ()) -> Victim:
    """Returns a pod that has to leave.

    Arguments:
        violates: names of the PodDisruptionBudgets that its eviction violates.
    """
    owner = next((f"{owner.kind}/{owner.name}" for owner in pod.metadata.owner_references if owner.controller), "")
    held, _, _ = assigned_requests(pod)
    return Victim(pod=pod_name(pod), started=pod.status.start_time, owner=owner, violates=violates, cpu=held.milli_cpu, memory=held.memory)


def requested(pod: Pod) -> dict[str, str]:
    """Returns the quantity of each resource that the pod requests in all; nothing if a request cannot be read."""
    try:
        return {name: str(amount) for name, amount in pod_requests(pod, use_status=False).items()}
    except QuantityError:
        return {}

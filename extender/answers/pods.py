"""What answers show of a pod: its requests, what makes it, and the pod as a victim."""

from extender.answers.parts import Victim
from extender.engine.preemption.victim_policy import lost_gpu_hours
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import assigned_requests, pod_requests
from extender.values.workloads.templates import HASH_LABEL


def victim(pod: Pod, now: float, violates: tuple[str, ...] = ()) -> Victim:
    """Returns the pod as a victim, with its requests.

    Arguments:
        now: seconds since 1970.
        violates: names of the PodDisruptionBudgets that its eviction violates.
    """
    held, _, _ = assigned_requests(pod)
    return Victim.of(pod, violates, held.milli_cpu, held.memory, lost_gpu_hours(pod, now))


def requested(pod: Pod) -> dict[str, str]:
    """Returns the quantity of each resource that the pod requests in all; nothing if a request cannot be read."""
    try:
        return {name: str(amount) for name, amount in pod_requests(pod, use_status=False).items()}
    except QuantityError:
        return {}


def workload_of(pod: Pod) -> str:
    """Returns Kind/name of the pod's controller, but the Deployment of a ReplicaSet; empty if it has none."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            deployment = deployment_named_by(pod, owner.name) if owner.kind == "ReplicaSet" else None
            return f"{owner.kind}/{owner.name}" if deployment is None else f"Deployment/{deployment}"
    return ""


def deployment_named_by(pod: Pod, replica_set: str) -> str | None:
    """Returns the Deployment of the pod's ReplicaSet, which has its name before the template's hash; else None."""
    code = pod.labels.get(HASH_LABEL)
    return replica_set.removesuffix(f"-{code}") if code and replica_set.endswith(f"-{code}") else None

"""What answers show of a pod: its requests, and the pod as a victim."""

from extender.objects.pod import Pod
from extender.objects.quantity import QuantityError
from extender.objects.resource_amounts import assigned_requests, pod_requests
from extender.records.values import Victim


def victim(pod: Pod, violates: tuple[str, ...] = ()) -> Victim:
    """Returns the pod as a victim, with its requests.

    Arguments:
        violates: names of the PodDisruptionBudgets that its eviction violates.
    """
    held, _, _ = assigned_requests(pod)
    return Victim.of(pod, violates, held.milli_cpu, held.memory)


def requested(pod: Pod) -> dict[str, str]:
    """Returns the quantity of each resource that the pod requests in all; nothing if a request cannot be read."""
    try:
        return {name: str(amount) for name, amount in pod_requests(pod, use_status=False).items()}
    except QuantityError:
        return {}

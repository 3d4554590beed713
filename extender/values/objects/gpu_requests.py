"""What a pod requests, as plain numbers, and how many GPUs are among it."""

from typing import Final

from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import pod_requests

GPU: Final = "/gpu"
"""The end of the names of resources that are whole GPUs: nvidia.com/gpu, amd.com/gpu and others."""
NANOS: Final = 1e9


def requests_of(pod: Pod) -> dict[str, float]:
    """Returns the pod's effective requests, in their units. Raises QuantityError."""
    return {name: quantity.nanos() / NANOS for name, quantity in pod_requests(pod, use_status=False).items()}


def gpus_of(requests: dict[str, float]) -> float:
    """Returns the number of GPUs among the requests."""
    return sum((amount for name, amount in requests.items() if name.endswith(GPU)), 0.0)

"""What a pod asks for in all, as Kubernetes writes it."""

from extender.objects.pod import Pod
from extender.objects.quantity import QuantityError
from extender.objects.resources import pod_requests


def requested(pod: Pod) -> dict[str, str]:
    """Resource name -> quantity; nothing where that cannot be read."""
    try:
        return {name: str(amount) for name, amount in pod_requests(pod, use_status=False).items()}
    except QuantityError:
        return {}

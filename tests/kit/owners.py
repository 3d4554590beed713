"""Who watches over pods: the controller that made them, and the budget that counts them."""

from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from extender.values.objects.meta import LabelSelector, ObjectMeta, OwnerReference
from extender.values.objects.pod import Pod


def owned_by(pod: Pod, kind: str, name: str) -> Pod:
    """The pod, made by this controller."""
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=name, controller=True)
    return replaced(pod, metadata=replaced(pod.metadata, owner_references=[owner]))


def make_budget(name: str, allowed: int, **labels: str) -> PodDisruptionBudget:
    """A budget for pods with these labels, which allows so many disruptions now."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )

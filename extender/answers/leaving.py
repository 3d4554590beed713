"""Pods that leave a cluster which is played through: what they give back, and as what they come again."""

from collections.abc import Iterator, Sequence
from typing import Final

from extender.cache.cluster import Cluster
from extender.objects.decoding import replaced
from extender.objects.devices import ResourceClaim, ResourceClaimConsumerReference
from extender.objects.disruption import PodDisruptionBudget
from extender.objects.label_selectors import SelectorError, selector_of
from extender.objects.pod import Pod, PodStatus

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"


def is_made_again(pod: Pod) -> bool:
    """Whether a controller makes the pod anew, wherever there is room. Those of a node's own kubelet are not."""
    return any(owner.controller and owner.kind != "Node" for owner in pod.metadata.owner_references)


def belongs_to_node(pod: Pod) -> bool:
    """Whether a drain passes the pod by: a DaemonSet's, or one that the kubelet has from a file."""
    return MIRROR_ANNOTATION in pod.annotations or any(
        owner.controller and owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references
    )


def made_again(pod: Pod) -> Pod:
    """The pod as its controller makes it anew: the same, and without a node. It keeps its UID, so that people can follow it."""
    claims = pod.status.resource_claim_statuses
    return replaced(
        pod,
        metadata=replaced(pod.metadata, deletion_timestamp=None),
        spec=replaced(pod.spec, node_name=""),
        status=PodStatus(phase="Pending", resource_claim_statuses=claims),
    )


def take_from_budgets(cluster: Cluster, pod: Pod) -> tuple[str, ...]:
    """Each budget that protects the pod allows one disruption less from now on.

    Returns:
        The names of the budgets that allowed none.
    """
    used_up: list[str] = []
    for budget in list(_protecting(cluster, pod)):
        allowed = budget.status.disruptions_allowed
        if allowed <= 0:
            used_up.append(budget.metadata.name)
        else:
            cluster.changed("pdbs", budget, replaced(budget, status=replaced(budget.status, disruptions_allowed=allowed - 1)))
    return tuple(used_up)


def give_back_claims(cluster: Cluster, pod: Pod) -> None:
    """ResourceClaims are not reserved for the pod any more; one that is reserved for nobody gives its devices back."""
    if not pod.spec.resource_claims:
        return
    for claim in list(cluster.cache.objects.resource_claims.values()):
        kept = [consumer for consumer in claim.status.reserved_for if consumer.uid != pod.uid]
        if len(kept) < len(claim.status.reserved_for):
            cluster.changed("resource_claims", claim, _reserved_for(claim, kept))


def _reserved_for(claim: ResourceClaim, consumers: Sequence[ResourceClaimConsumerReference]) -> ResourceClaim:
    allocation = claim.status.allocation if consumers else None
    return replaced(claim, status=replaced(claim.status, reserved_for=consumers, allocation=allocation))


def _protecting(cluster: Cluster, pod: Pod) -> Iterator[PodDisruptionBudget]:
    for budget in cluster.cache.objects.pdbs.values():
        # A pod that the budget names was taken off it when its eviction was allowed.
        is_its = (budget.metadata.namespace or "default") == pod.namespace and pod.name not in budget.status.disrupted_pods
        if is_its and selects(budget, pod):
            yield budget


def selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the budget's selector selects the labels of the pod, as preemption reads it: an empty one protects nothing."""
    if budget.spec.selector is None or not pod.labels:
        return False
    try:
        selector = selector_of(budget.spec.selector)
    except SelectorError:
        return False
    return not selector.is_empty and selector.matches(pod.labels)

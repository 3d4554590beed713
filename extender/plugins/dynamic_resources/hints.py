"""Which changes may let in a pod that could not have its devices.

Upstream: framework/plugins/dynamicresources/dynamicresources.go, isSchedulableAfterClaimChange, isSchedulableAfterPodChange (v1.36.2).
"""

from collections.abc import Callable, Mapping
from typing import final

from extender import framework as fwk
from extender.objects.cluster import Key
from extender.objects.devices import ResourceClaim
from extender.plugins.dynamic_resources.pod_claims import ClaimError, claims_of, identity


@final
class ClaimHints:
    """The hints of DynamicResources."""

    def __init__(self, claims: Callable[[], Mapping[Key, ResourceClaim]]) -> None:
        """Know where to look claims up."""
        self._claims = claims

    def events(self) -> list[fwk.ClusterEventWithHint]:
        """What DynamicResources registers: claims, what they can be allocated from, and the pod learning the names of its claims."""
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        nodes = add | fwk.ActionType.UPDATE_NODE_LABEL | fwk.ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            fwk.on(fwk.EventResource.NODE, nodes),
            fwk.on(fwk.EventResource.RESOURCE_CLAIM, add | update, self.after_claim_change),
            fwk.on(fwk.EventResource.POD, fwk.ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self.after_pod_update),
            fwk.on(fwk.EventResource.DEVICE_CLASS, add | update),
            fwk.on(fwk.EventResource.RESOURCE_SLICE, add | update),
        ]

    def after_claim_change(self, pod: fwk.Pod, old: ResourceClaim | None, new: ResourceClaim) -> fwk.QueueingHint:
        """All claims of the pod are there; this one gave back its devices, or it is the pod's and its status changed."""
        try:
            claims = claims_of(pod, self._claims())
        except ClaimError:
            return fwk.QueueingHint.QUEUE_SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return fwk.QueueingHint.QUEUE
        is_ours = any(identity(claim) == identity(new) for claim in claims)
        return fwk.queue_if(is_ours and (old is None or old.status != new.status))

    def after_pod_update(self, pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod) -> fwk.QueueingHint:
        """The pod knows its claims now, and all of them are there."""
        if new.uid != pod.uid:
            return fwk.QueueingHint.QUEUE_SKIP
        try:
            claims_of(new, self._claims())
        except ClaimError:
            return fwk.QueueingHint.QUEUE_SKIP
        return fwk.QueueingHint.QUEUE

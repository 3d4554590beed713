"""ClaimHints: which events may help a pod whose claims could not be allocated.

Upstream: framework/plugins/dynamicresources/dynamicresources.go, isSchedulableAfterClaimChange,
isSchedulableAfterPodChange (v1.36.2).
"""

from collections.abc import Callable, Mapping
from typing import final

from extender.engine import framework as fwk
from extender.engine.plugins.dynamic_resources.pod_claims import ClaimError, claims_of, identity
from extender.values.objects.cluster import Key
from extender.values.objects.devices import ResourceClaim


@final
class ClaimHints:
    """The queueing hints of DynamicResources."""

    def __init__(self, claims: Callable[[], Mapping[Key, ResourceClaim]]) -> None:
        """Makes the hints.

        Arguments:
            claims: returns the latest claims of the cluster.
        """
        self._claims = claims

    def events(self) -> list[fwk.ClusterEventWithHint]:
        """Returns the events that DynamicResources registers for."""
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
        """Queues the pod if all its claims exist, and this one was deallocated or is the pod's and its status
        changed.
        """
        try:
            claims = claims_of(pod, self._claims())
        except ClaimError:
            return fwk.QueueingHint.QUEUE_SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return fwk.QueueingHint.QUEUE
        is_ours = any(identity(claim) == identity(new) for claim in claims)
        return fwk.queue_if(is_ours and (old is None or old.status != new.status))

    def after_pod_update(self, pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod) -> fwk.QueueingHint:
        """Queues the pod once its status names its claims and all of them exist."""
        if new.uid != pod.uid:
            return fwk.QueueingHint.QUEUE_SKIP
        try:
            claims_of(new, self._claims())
        except ClaimError:
            return fwk.QueueingHint.QUEUE_SKIP
        return fwk.QueueingHint.QUEUE

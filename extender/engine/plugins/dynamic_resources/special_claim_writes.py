"""Creates the special claim of a pod, names it in the pod's status, and deletes it.

Upstream: framework/plugins/dynamicresources/extendeddynamicresources.go, createExtendedResourceClaimInAPI,
patchPodExtendedResourceClaimStatus, deleteClaim, unreserveExtendedResourceClaim (v1.36.2). A claim is deallocated there
only by being deleted; here before it, because the event requeues pods that wait for devices.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from extender.engine import framework as fwk
from extender.engine.plugins.dynamic_resources.claim_binding import ClaimBindingError, errors_of
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.pod import ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus

Mappings = Sequence[ContainerExtendedResourceRequest]
"""Which container uses which request of the special claim."""


async def create_special_claim(
    special: ResourceClaim, mappings: Mappings, pod: fwk.Pod, dispatcher: fwk.Dispatcher, creations: Counter[str]
) -> ResourceClaim:
    """Returns the pod's special claim as the API server has created it.

    Arguments:
        creations: counts: success, failure.

    Raises:
        CallConflict: the API server refused.
        ClaimUncertainError: the outcome is unknown.
        ClaimBindingError: no container uses the claim, or the API server refused it.
    """
    if not mappings:
        # Upstream creates the claim before it finds this out.
        raise ClaimBindingError(
            f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
        )
    outcome = "failure"
    try:
        with errors_of(f"create claim for extended resources {pod.namespace}/"):
            created = await dispatcher.perform(fwk.CreateResourceClaim(special, f"{pod.name}-extended-resources-"))
        outcome = "success"
    finally:
        creations[outcome] += 1
    return created


async def name_special_claim(
    claim: ResourceClaim, mappings: Mappings, pod: fwk.Pod, dispatcher: fwk.Dispatcher
) -> None:
    """Writes into the pod's status which claim has the devices, and which container uses which of its requests.

    Raises:
        CallConflict: the pod has changed so that this does not apply.
        ClaimBindingError: the API server refused, or the outcome is unknown.
    """
    status = PodExtendedResourceClaimStatus(request_mappings=list(mappings), resource_claim_name=claim.metadata.name)
    patch = fwk.PatchPodStatus.of(pod, extended_resource_claim=status)
    with errors_of(f"update pod {pod.key} ExtendedResourceClaimStatus"):
        while True:
            try:
                return await dispatcher.perform(patch)
            except fwk.CallSkipped:
                # Another patch of the pod's status takes this one along. Whether it succeeds is known once this one is
                # tried again.
                continue


async def delete_special_claim(claim: ResourceClaim, dispatcher: fwk.Dispatcher) -> None:
    """Deletes the claim. One that is gone is no error.

    Raises:
        CallError: the API server refused, or the outcome is unknown.
    """
    try:
        for call in _deletion(claim):
            await dispatcher.perform(call)
    except fwk.CallNotFound:
        return


def delete_special_claim_in_background(
    claim: ResourceClaim, dispatcher: fwk.Dispatcher, done: Callable[[], None]
) -> None:
    """Deletes the claim, and calls `done` after the last write, whether it succeeded or not."""
    calls = _deletion(claim)

    def perform_next(_: "asyncio.Future[ResourceClaim | None] | None" = None) -> None:
        call = next(calls, None)
        if call is None:
            done()
        else:
            dispatcher.submit(call).add_done_callback(perform_next)

    perform_next()


def _deletion(claim: ResourceClaim) -> Iterator[fwk.ApiCall[ResourceClaim]]:
    """Yields the writes that delete a claim, which may be allocated."""
    named = claim.namespace, claim.metadata.name, claim.metadata.uid
    yield fwk.DeallocateResourceClaim(*named, "")
    yield fwk.UnprotectResourceClaim(*named)
    yield fwk.DeleteResourceClaim(*named)

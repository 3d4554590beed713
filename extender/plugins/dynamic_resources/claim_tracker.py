"""Claims as they will be, or are already, while the watch does not show it yet.

Upstream: framework/plugins/dynamicresources/dra_manager.go, claimTracker: inFlightAllocations and the assume cache (v1.36.2).
"""

from collections.abc import Mapping
from typing import final

from extender.objects.cluster import Key
from extender.objects.devices import ResourceClaim
from extender.objects.meta import version
from extender.plugins.dynamic_resources.pod_claims import identity


@final
class ClaimTracker:
    """One for all profiles: a device must not be given away by two of them.

    State: the claims that were allocated for pods on their way to a node, until the API server has it; and claims as the API server
    answered when they were written, until the watch shows as much.
    """

    def __init__(self) -> None:
        self._pending: dict[str, ResourceClaim] = {}
        self._written: dict[Key, ResourceClaim] = {}

    def is_pending(self, claim: ResourceClaim) -> bool:
        """Whether the claim is being allocated for a pod."""
        return identity(claim) in self._pending

    def expect(self, claim: ResourceClaim) -> None:
        """The claim is going to be as given. Upstream: SignalClaimPendingAllocation."""
        self._pending[identity(claim)] = claim

    def release(self, claim: ResourceClaim) -> None:
        """The claim is as the API server has it. Idempotent. Upstream: RemoveClaimPendingAllocation."""
        self._pending.pop(identity(claim), None)

    def note_written(self, claim: ResourceClaim) -> None:
        """The API server has the claim like this now. Upstream: AssumeClaimAfterAPICall."""
        key = (claim.namespace, claim.metadata.name)
        known = self._written.get(key)
        if known is None or version(known.metadata) <= version(claim.metadata):
            self._written[key] = claim

    def latest(self, table: Mapping[Key, ResourceClaim]) -> Mapping[Key, ResourceClaim]:
        """All claims, each as it was written last.

        Arguments:
            table: as the watch shows them.
        """
        for key, written in list(self._written.items()):
            shown = table.get(key)
            # A claim that is gone was shown before: what is written about was known.
            if shown is None or identity(shown) != identity(written) or version(shown.metadata) >= version(written.metadata):
                del self._written[key]
        return {**table, **self._written} if self._written else table

    def holders(self, table: Mapping[Key, ResourceClaim]) -> list[ResourceClaim]:
        """All claims that may hold devices."""
        return [*self.latest(table).values(), *self._pending.values()]

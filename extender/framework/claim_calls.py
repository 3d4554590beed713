"""Writes about resource claims.

As for volumes, only what changes is sent. Where it matters that the claim has not changed meanwhile, its version goes with it.

Upstream: framework/plugins/dynamicresources/dynamicresources.go, bindClaim, Unreserve, PostFilter (v1.36.2).
"""

from dataclasses import dataclass
from typing import Final, final

from extender.framework.api_calls import ApiCall
from extender.objects.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference

CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from being deleted."""


@dataclass(frozen=True, slots=True)
class _AboutClaim(ApiCall[ResourceClaim]):
    namespace: str
    name: str
    uid: str

    @property
    def concerns(self) -> str:
        """The claim."""
        return self.uid or f"resourceclaims/{self.namespace}/{self.name}"


@final
@dataclass(frozen=True, slots=True)
class ReadResourceClaim(_AboutClaim):
    """No write: the claim as the API server has it, after it said that it is not as we know it."""


@final
@dataclass(frozen=True, slots=True)
class ProtectResourceClaim(_AboutClaim):
    """The claim has the finalizer that allocated claims have."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class ReserveResourceClaim(_AboutClaim):
    """A pod may use the claim; what was found for it is the claim's from now on."""

    resource_version: str
    consumer: ResourceClaimConsumerReference
    allocation: AllocationResult | None = None
    """None for a claim that is allocated: that cannot be changed any more."""


@final
@dataclass(frozen=True, slots=True)
class UnreserveResourceClaim(_AboutClaim):
    """A pod does not use the claim any more, whatever else has changed."""

    pod_uid: str


@final
@dataclass(frozen=True, slots=True)
class DeallocateResourceClaim(_AboutClaim):
    """The claim has no devices and no users any more."""

    resource_version: str

"""The claims to allocate on each node: the pod's, and the special one for extended resources that the node lacks.

Upstream: framework/plugins/dynamicresources/extendeddynamicresources.go, filterExtendedResources; dynamicresources.go,
PreFilter, Filter.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.dynamic_resources.allocation import Allocator
from extender.engine.plugins.dynamic_resources.pod_claims import each_once
from extender.engine.plugins.dynamic_resources.special_claim import is_in_memory, requests_and_mappings
from extender.engine.snapshot.axes import Mask
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import DeviceClaim, DeviceClass, DeviceRequest, ResourceClaim, ResourceClaimSpec
from extender.values.objects.pod import ContainerExtendedResourceRequest


@final
class ExtendedRequests(msgspec.Struct, frozen=True):
    """The extended resources that a pod requests, some of them backed by device classes."""

    pod: fwk.Pod
    resources: tuple[str, ...]
    """All of them."""
    classes: Mapping[str, DeviceClass]
    """Extended resource -> the class that backs it."""
    claim: ResourceClaim
    """The special claim: that of an earlier attempt, or one in memory without requests."""

    @property
    def is_of_earlier_attempt(self) -> bool:
        """True if an earlier attempt wrote the claim. It is deleted then: the pod may need other devices now."""
        return not is_in_memory(self.claim)

    def not_offered(self, rows: fwk.Rows) -> Mask:
        """(R,) the rows whose nodes do not know a resource that no device class backs."""
        unbacked = frozenset(self.resources).difference(self.classes)
        if not unbacked:
            return np.zeros(len(rows), np.bool_)
        # A node may name it and offer none: that is for NodeResourcesFit to judge.
        nodes = (rows.snapshot.nodes.objects[place] for place in rows.node.tolist())
        return np.array([not unbacked <= node.status.allocatable.keys() for node in nodes], np.bool_)

    def lacking(self, rows: fwk.Rows) -> Mask:
        """(R, C) whether the row's node offers none of the resource, for each that device classes back."""
        return np.stack([rows.allocatable_of(resource) == 0 for resource in self.classes], axis=1)


@final
class ClaimsToAllocate(msgspec.Struct, frozen=True, eq=False):
    """The claims to allocate for a pod on some nodes."""

    allocator: Allocator
    """For the claims of the pod that have no devices, and the special claim."""
    special: ResourceClaim | None = None
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    """Pairs of a container and its request of the special claim."""


@final
class NodeClaims:
    """The claims to allocate on each node: one `ClaimsToAllocate` for each set of resources that nodes lack."""

    def __init__(
        self,
        unallocated: Sequence[ResourceClaim],
        extended: ExtendedRequests | None,
        classes: Mapping[str, DeviceClass],
        allocator_of: Callable[[Sequence[ResourceClaim]], Allocator],
    ) -> None:
        """Takes the unallocated claims of the pod's spec, and a factory of allocators."""
        self._unallocated = unallocated
        self._extended = extended
        self._allocator_of = allocator_of
        self._by_lack: dict[bytes, ClaimsToAllocate | None] = {}
        distinct = each_once(unallocated)
        self.inputs = (
            *distinct,
            *_classes_of(distinct, classes),
            *(extended.classes.values() if extended is not None else ()),
        )
        """The claims and device classes, on which a search depends besides the node and its devices."""

    def on(self, rows: fwk.Rows) -> list[ClaimsToAllocate | None]:
        """Returns the claims to allocate on each row; None for nothing."""
        extended = self._extended
        lacks = [b""] * len(rows) if extended is None else [lack.tobytes() for lack in extended.lacking(rows)]
        for lack in set(lacks).difference(self._by_lack):
            self._by_lack[lack] = self._made_for(lack)
        return [self._by_lack[lack] for lack in lacks]

    def _made_for(self, lack: bytes) -> ClaimsToAllocate | None:
        """Returns the claims to allocate where these resources are lacking: a byte for each, 1 or 0."""
        if self._extended is None or not any(lack):
            return ClaimsToAllocate(self._allocator_of(self._unallocated)) if self._unallocated else None
        extended = self._extended
        lacking = {
            resource: device_class.name
            for (resource, device_class), is_lacking in zip(extended.classes.items(), lack, strict=True)
            if is_lacking
        }
        requests, mappings = requests_and_mappings(extended.pod, lacking)
        special = replaced(extended.claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)))
        return ClaimsToAllocate(self._allocator_of([*self._unallocated, special]), special, tuple(mappings))


def refusal_of_requests(
    claim: ResourceClaim, classes: Mapping[str, DeviceClass], *, reads_lists: bool
) -> fwk.Status | None:
    """Returns the error of the claim's requests on every node; None without one.

    `reads_lists` is the feature gate DRAPrioritizedList: requests may list alternatives, the best first.
    """
    for request in claim.spec.devices.requests:
        if request.first_available and not reads_lists:
            why = "has subrequests, but the DRAPrioritizedList feature is disabled"
            return fwk.unresolvable(f"resource claim {claim.key}, request {request.name}: {why}")
        requested = _requested_classes(request)
        if not requested:
            return fwk.unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        for name, device_class in requested:
            if not device_class:
                return fwk.error(f"request {name}: unsupported request type")
            if device_class not in classes:
                return fwk.unresolvable(f"request {name}: device class {device_class} does not exist")
    return None


def _requested_classes(request: DeviceRequest) -> list[tuple[str, str]]:
    """Returns (request name, device class) of the request or of each subrequest."""
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    return [
        (f"{request.name}/{alternative.name}", alternative.device_class_name) for alternative in request.first_available
    ]


def _classes_of(claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Iterator[DeviceClass]:
    for claim in claims:
        for request in claim.spec.devices.requests:
            yield from (classes[name] for _, name in _requested_classes(request) if name in classes)

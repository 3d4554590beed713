"""The requests of a claim in one form, with alternatives and without.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, validateDeviceRequest.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

import msgspec

from extender.engine.plugins.dynamic_resources.allocated_state import Amounts
from extender.engine.plugins.dynamic_resources.pools import AllocationError, Offer
from extender.values.cel import CelError, CompileError
from extender.values.objects.devices import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from extender.values.objects.quantity import nanos_of

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"


@final
class DeviceRequestAlternative(msgspec.Struct, frozen=True, eq=False):
    """A request, or one subrequest of it: a number of matching devices of a class."""

    claim: ResourceClaim
    request: str
    subrequest: str
    """The name of the subrequest; empty if the request has none."""
    device_class: DeviceClass
    selectors: Sequence[DeviceSelector]
    count: int | None
    """None for all matching devices."""
    has_admin_access: bool
    """True if the request may use devices that are in use, and does not allocate them."""
    tolerations: Sequence[DeviceToleration]
    capacity: Amounts
    """The amount of each capacity that a device must have left."""

    @property
    def name(self) -> str:
        """The name in upstream's messages."""
        return self.subrequest or self.request

    @property
    def full_name(self) -> str:
        """The name in the allocation result."""
        return f"{self.request}/{self.subrequest}" if self.subrequest else self.request

    def matches(self, offer: Offer, matches: Callable[[str, Offer], bool]) -> bool:
        """True if the device, in use or not, matches the selectors of the class and of the request.

        Raises AllocationError if a selector does not compile, or fails for the device.
        """
        for owner, selectors in ((self.device_class, self.device_class.spec.selectors), (self.claim, self.selectors)):
            for place, selector in enumerate(selectors):
                try:
                    if not matches(selector.cel.expression if selector.cel is not None else "", offer):
                        return False
                except CelError as exc:
                    whose = f"class {owner.name}" if isinstance(owner, DeviceClass) else f"claim {owner.key}"
                    kind = "compile" if isinstance(exc, CompileError) else "runtime"
                    raise AllocationError(f"{whose}: selector #{place}: CEL {kind} error: {exc}") from exc
        return True

    def tolerates(self, offer: Offer) -> bool:
        """True if every NoSchedule or NoExecute taint of the device is tolerated."""
        repelling = (taint for taint in offer.device.taints if taint.effect in ("NoSchedule", "NoExecute"))
        return all(any(_tolerates(toleration, taint) for toleration in self.tolerations) for taint in repelling)


def alternatives_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> list[list[DeviceRequestAlternative]]:
    """Returns the alternatives of each request, or itself, by preference. Raises AllocationError."""
    return [_alternatives(claim, request, classes) for request in claim.spec.devices.requests]


def _alternatives(
    claim: ResourceClaim, request: DeviceRequest, classes: Mapping[str, DeviceClass]
) -> list[DeviceRequestAlternative]:
    if request.first_available:
        return [
            _alternative(claim, request.name, subrequest.name, subrequest, classes)
            for subrequest in request.first_available
        ]
    if request.exactly is None:
        raise AllocationError(f"resource claim {claim.key}, request {request.name}: unknown request type")
    return [_alternative(claim, request.name, "", request.exactly, classes)]


def _alternative(
    claim: ResourceClaim,
    request: str,
    subrequest: str,
    spec: ExactDeviceRequest | DeviceSubRequest,
    classes: Mapping[str, DeviceClass],
) -> DeviceRequestAlternative:
    where = f"claim {claim.key}, request {subrequest or request}"
    for place, selector in enumerate(spec.selectors):
        if selector.cel is None:
            raise AllocationError(f"{where}, selector #{place}: CEL expression empty (unsupported selector type?)")
    if not spec.device_class_name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = classes.get(spec.device_class_name)
    if device_class is None:
        raise AllocationError(
            f"{where}: could not retrieve device class {spec.device_class_name}: "
            f'deviceclass.resource.k8s.io "{spec.device_class_name}" not found'
        )
    # The API server defaults the mode and the count; manifests written by hand may lack them.
    mode = spec.allocation_mode or EXACT_COUNT
    if mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{where}: unsupported count mode {mode}")
    return DeviceRequestAlternative(
        claim=claim,
        request=request,
        subrequest=subrequest,
        device_class=device_class,
        selectors=spec.selectors,
        count=None if mode == ALL else spec.count or 1,
        has_admin_access=isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access),
        tolerations=spec.tolerations,
        capacity={name: nanos_of(amount) for name, amount in spec.capacity.requests.items()}
        if spec.capacity is not None
        else {},
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Upstream: dynamic-resource-allocation/resourceclaim/devicetoleration.go, ToleratesTaint."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)

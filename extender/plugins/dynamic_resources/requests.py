"""What a claim asks for, request by request, in one form.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, validateDeviceRequest (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from extender.objects.devices import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from extender.objects.quantity import nanos_of
from extender.plugins.dynamic_resources.cel import CelError, compiled, facts_of
from extender.plugins.dynamic_resources.errors import AllocationError
from extender.plugins.dynamic_resources.pools import Offer
from extender.plugins.dynamic_resources.taken import Amounts

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"


@final
@dataclass(frozen=True, slots=True, eq=False)
class DeviceRequestAlternative:
    """A request, or one alternative of a request; a number of devices of a class that match."""

    claim: ResourceClaim
    request: str
    alternative: str
    """Its name within the request; empty if the request has no alternatives."""
    device_class: DeviceClass
    selectors: Sequence[DeviceSelector]
    count: int | None
    """None asks for all devices that match."""
    has_admin_access: bool
    """Devices in use will do, and using them does not take them."""
    tolerations: Sequence[DeviceToleration]
    capacity: Amounts
    """How much of each capacity a device must have left."""

    @property
    def name(self) -> str:
        """How upstream's messages name it."""
        return self.alternative or self.request

    @property
    def full_name(self) -> str:
        """How the allocation result names it."""
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    def matches(self, offer: Offer, known: dict[str, bool]) -> bool:
        """Whether the device has what the class and the request select, whoever may be using it.

        Arguments:
            known: expression -> whether the device matches; what is found out is added.

        Raises:
            AllocationError: a selector does not compile, or fails for the device.
        """
        by_class, by_claim = self.device_class.spec.selectors, self.selectors
        return self._match(f"class {self.device_class.metadata.name}", by_class, offer, known) and self._match(
            f"claim {self.claim.key}", by_claim, offer, known
        )

    def _match(self, whose: str, selectors: Sequence[DeviceSelector], offer: Offer, known: dict[str, bool]) -> bool:
        for place, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            answer = known.get(expression)
            if answer is None:
                answer = known[expression] = _is_matched(expression, offer, f"{whose}: selector #{place}")
            if not answer:
                return False
        return True

    def tolerates(self, offer: Offer) -> bool:
        """Whether every taint that keeps others away from the device is tolerated."""
        keeping_away = (taint for taint in offer.device.taints if taint.effect in ("NoSchedule", "NoExecute"))
        return all(any(_tolerates(toleration, taint) for toleration in self.tolerations) for taint in keeping_away)


def wishes_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> list[list[DeviceRequestAlternative]]:
    """The alternatives of each request of the claim, best first; a request without alternatives is its own only one.

    Raises:
        AllocationError: a request is faulty.
    """
    return [_alternatives(claim, request, classes) for request in claim.spec.devices.requests]


def _alternatives(claim: ResourceClaim, request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> list[DeviceRequestAlternative]:
    if request.first_available:
        return [_wish(claim, request.name, alternative.name, alternative, classes) for alternative in request.first_available]
    if request.exactly is None:
        raise AllocationError(f"resource claim {claim.key}, request {request.name}: unknown request type")
    return [_wish(claim, request.name, "", request.exactly, classes)]


def _wish(
    claim: ResourceClaim,
    request: str,
    alternative: str,
    asked: ExactDeviceRequest | DeviceSubRequest,
    classes: Mapping[str, DeviceClass],
) -> DeviceRequestAlternative:
    where = f"claim {claim.key}, request {alternative or request}"
    for place, selector in enumerate(asked.selectors):
        if selector.cel is None:
            raise AllocationError(f"{where}, selector #{place}: CEL expression empty (unsupported selector type?)")
    if not asked.device_class_name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = classes.get(asked.device_class_name)
    if device_class is None:
        raise AllocationError(
            f"{where}: could not retrieve device class {asked.device_class_name}: "
            f'deviceclass.resource.k8s.io "{asked.device_class_name}" not found'
        )
    # The API server fills in the mode and the count; manifests written by hand may still lack them.
    mode = asked.allocation_mode or EXACT_COUNT
    if mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{where}: unsupported count mode {mode}")
    return DeviceRequestAlternative(
        claim=claim,
        request=request,
        alternative=alternative,
        device_class=device_class,
        selectors=asked.selectors,
        count=None if mode == ALL else asked.count or 1,
        has_admin_access=isinstance(asked, ExactDeviceRequest) and bool(asked.admin_access),
        tolerations=asked.tolerations,
        capacity={name: nanos_of(amount) for name, amount in asked.capacity.requests.items()} if asked.capacity is not None else {},
    )


def _is_matched(expression: str, offer: Offer, what: str) -> bool:
    try:
        program = compiled(expression)
    except CelError as exc:
        raise AllocationError(f"{what}: CEL compile error: {exc}") from exc
    try:
        return program.matches(facts_of(offer.id.driver, offer.device))
    except CelError as exc:
        raise AllocationError(f"{what}: CEL runtime error: {exc}") from exc


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Upstream: dynamic-resource-allocation/resourceclaim/devicetoleration.go, ToleratesTaint."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)

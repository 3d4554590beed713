"""Constraints of a claim: attributes that its devices must have in common, or must not have in common.

A constraint checks each device when it is added, and is notified when one is removed. Once it refuses, adding more
devices cannot help.

Upstream: dynamic-resource-allocation/structured/internal/incubating, allocator_incubating.go, constraint.go.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

from extender.engine.plugins.dynamic_resources.pools import AllocationError, Offer
from extender.engine.plugins.dynamic_resources.suitable_devices import Block, attribute_of
from extender.values.objects.devices import DeviceAttribute, DeviceConstraint, ResourceClaim


@dataclass(slots=True, eq=False)
class AttributeConstraint(ABC):
    """Follows one attribute over the devices allocated to a claim so far."""

    attribute: str
    requests: frozenset[str]

    def concerns(self, request: str, full_name: str) -> bool:
        """True if the constraint names the request, or the subrequest as `request/subrequest`, or none."""
        return not self.requests or request in self.requests or full_name in self.requests

    def excludes(self, block: Block) -> bool:
        """True if no device of the block can be added to those that the constraint has."""
        return False

    def add(self, offer: Offer) -> bool:
        """Adds the device if the constraint allows it; returns whether it did."""
        attribute = attribute_of(offer, self.attribute)
        return attribute is not None and self._add(attribute)

    @abstractmethod
    def _add(self, attribute: DeviceAttribute) -> bool:
        """Adds a device with this attribute if the constraint allows it; returns whether it did."""

    @abstractmethod
    def remove(self) -> None:
        """Removes the device that was added last."""


@final
@dataclass(slots=True, eq=False)
class MatchAttribute(AttributeConstraint):
    """All devices must have the same value."""

    _value: DeviceAttribute = field(default_factory=DeviceAttribute)
    _num_devices: int = 0

    def excludes(self, block: Block) -> bool:
        return bool(self._num_devices) and self._value not in block.values_of(self.attribute)

    def _add(self, attribute: DeviceAttribute) -> bool:
        if self._num_devices and (attribute != self._value or attribute == DeviceAttribute()):
            return False
        self._value = attribute
        self._num_devices += 1
        return True

    def remove(self) -> None:
        self._num_devices -= 1


@final
@dataclass(slots=True, eq=False)
class DistinctAttribute(AttributeConstraint):
    """All devices must have different values, also those of one request (kubernetes#140600)."""

    _values: list[DeviceAttribute] = field(default_factory=list)

    def _add(self, attribute: DeviceAttribute) -> bool:
        if attribute in self._values or (self._values and attribute == DeviceAttribute()):
            return False
        self._values.append(attribute)
        return True

    def remove(self) -> None:
        self._values.pop()


def constraints_of(claim: ResourceClaim) -> list[AttributeConstraint]:
    """Returns the claim's constraints, without devices yet. Raises AllocationError for an unknown kind."""
    return [_constraint(claim, place, constraint) for place, constraint in enumerate(claim.spec.devices.constraints)]


def _constraint(claim: ResourceClaim, place: int, constraint: DeviceConstraint) -> AttributeConstraint:
    requests = frozenset(constraint.requests)
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, requests)
    if constraint.distinct_attribute is not None:
        return DistinctAttribute(constraint.distinct_attribute, requests)
    raise AllocationError(f"claim {claim.key}, constraint #{place}: empty constraint (unsupported constraint type?)")

"""Capacities of devices: how much a request consumes, and whether that much is left.

A device that allows multiple allocations is shared until its capacity is used up; of other devices a request may demand
a minimum.

Upstream: dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go (v1.36.2).
"""

from collections.abc import Mapping

from extender.engine.plugins.dynamic_resources.allocated_state import NANO, Amounts
from extender.values.objects.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceCapacity
from extender.values.objects.quantity import nanos_of


def consumed_by(requested: Mapping[str, int], device: Device, *, in_fractions: bool = False) -> Amounts:
    """Returns what a request consumes of each capacity of the device: the requested amount, rounded up to what the
    device allows.

    Arguments:
        in_fractions: whether ranges with fractions are computed in thousandths: the feature gate
            DRAFractionalCapacityRange.
    """
    return {name: _consumed(requested.get(name), capacity, in_fractions) for name, capacity in device.capacity.items()}


def has_capacity(
    requested: Mapping[str, int], device: Device, taken: Mapping[str, int], *, in_fractions: bool = False
) -> bool:
    """True if the device has what the request consumes after earlier allocations, and allows these amounts.

    Arguments:
        requested, taken: name of a capacity -> nanos.
        in_fractions: as for `consumed_by`.
    """
    if not requested.keys() <= device.capacity.keys():
        return False
    for name, amount in consumed_by(requested, device, in_fractions=in_fractions).items():
        capacity = device.capacity[name]
        if capacity.request_policy is not None and not _is_allowed(amount, capacity.request_policy, in_fractions):
            return False
        if taken.get(name, 0) + amount > nanos_of(capacity.value):
            return False
    return True


def _consumed(requested: int | None, capacity: DeviceCapacity, in_fractions: bool) -> int:
    policy = capacity.request_policy
    if requested is None:
        return nanos_of(capacity.value if policy is None or policy.default is None else policy.default)
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(requested, policy.valid_range, _unit(policy.valid_range, in_fractions))
    return next((value for value in map(nanos_of, policy.valid_values) if requested <= value), requested)


def _rounded_up(requested: int, valid: CapacityRequestPolicyRange, unit: int) -> int:
    """Returns the smallest allowed amount that is enough, in multiples of the unit if there is a step."""
    least = nanos_of(valid.min or 0)
    if requested < least:
        return least
    if valid.step is None or not _multiple(nanos_of(valid.step), unit):
        return requested
    start, step = _multiple(least, unit), _multiple(nanos_of(valid.step), unit)
    return (start - (start - _multiple(requested, unit)) // step * step) * unit


def _is_allowed(amount: int, policy: CapacityRequestPolicy, in_fractions: bool) -> bool:
    if policy.default is not None and amount == nanos_of(policy.default):
        return True
    if policy.valid_range is not None:
        valid = policy.valid_range
        if valid.max is not None and amount > nanos_of(valid.max):
            return False
        unit = _unit(valid, in_fractions)
        step = _multiple(nanos_of(valid.step), unit) if valid.step is not None else 0
        return not step or (_multiple(amount, unit) - _multiple(nanos_of(valid.min or 0), unit)) % step == 0
    return not policy.valid_values or amount in map(nanos_of, policy.valid_values)


def _unit(valid: CapacityRequestPolicyRange, in_fractions: bool) -> int:
    """Returns the nanos in which the range is computed: those of a whole, or of a thousandth if an end or the step has
    a fraction.
    """
    bounds = (each for each in (valid.min, valid.max, valid.step) if each is not None)
    return NANO // 1000 if in_fractions and any(nanos_of(each) % NANO for each in bounds) else NANO


def _multiple(nanos: int, unit: int) -> int:
    """Returns how many units that is, rounded up."""
    return -(-nanos // unit)

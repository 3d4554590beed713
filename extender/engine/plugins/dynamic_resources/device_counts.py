"""Counts the devices of a class on nodes, and the allocated ones, to score by extended resources.

Upstream: framework/plugins/noderesources/resource_allocation.go, calculateDRAResourceTotals, deviceMatchesClass.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedState, DeviceId
from extender.engine.plugins.dynamic_resources.node_allocations import FIRST_SLICE, LOOP_STEPS
from extender.engine.plugins.dynamic_resources.pools import AllocationError, Offer, Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches, OutOfStepsError
from extender.engine.snapshot.axes import Int64s
from extender.values.cel import CelError
from extender.values.klog.logger import Logger
from extender.values.objects.devices import DeviceClass

_LOG: Final = Logger(__name__)


@final
class ClassDevices:
    """Caches the devices of each class on each node, for one set of slices."""

    def __init__(self, slices: Slices, matches: Matches) -> None:
        self._slices = slices
        self._matches = matches
        self._found: dict[tuple[str, str], tuple[DeviceClass, fwk.Node, tuple[DeviceId, ...]]] = {}

    def on(self, node: fwk.Node, device_class: DeviceClass, allowance: Allowance) -> tuple[DeviceId, ...]:
        """Returns matching devices; none, logged, if a selector or slice is invalid. Raises OutOfStepsError."""
        key = device_class.name, node.name
        cached = self._found.get(key)
        if cached is not None and cached[0] is device_class and cached[1] is node:
            return cached[2]
        try:
            devices = tuple(
                offer.id for offer in self._slices.offers_for(node) if self._is_of(device_class, offer, allowance)
            )
        except (AllocationError, CelError) as exc:
            fields = {"node": node.name, "deviceClass": device_class.name}
            _LOG.exception(exc, "Failed to calculate DRA resource capacity and allocated", **fields)
            devices = ()
        self._found[key] = device_class, node, devices
        return devices

    def find(self, device_class: DeviceClass, nodes: Sequence[fwk.Node], is_wanted: Callable[[], bool]) -> None:
        """Searches nodes for the time of a slice. Called in a thread."""
        allowance = Allowance(slice_seconds=FIRST_SLICE, is_wanted=is_wanted)
        try:
            for node in nodes:
                self.on(node, device_class, allowance)
        except OutOfStepsError:
            # The next cycle has the rest searched: which devices match is kept.
            return

    def _is_of(self, device_class: DeviceClass, offer: Offer, allowance: Allowance) -> bool:
        allowance.spend()
        expressions = (selector.cel.expression for selector in device_class.spec.selectors if selector.cel is not None)
        return all(self._matches.matches(expression, offer, allowance) for expression in expressions)


def totals_of(
    devices: ClassDevices, classes: Mapping[str, DeviceClass], allocated: AllocatedState, *, may_defer: bool
) -> fwk.DeviceTotals:
    """Returns the function that counts devices in one cycle.

    Takes (extended resource -> the class that backs it), and whether a thread may go on counting.
    """

    def totals(resource: str, rows: fwk.Rows) -> tuple[Int64s, Int64s]:
        existing, in_use = np.zeros((2, len(rows)), np.int64)
        device_class = classes.get(resource)
        if device_class is None:
            return existing, in_use
        nodes = [rows.snapshot.nodes.objects[place] for place in rows.node.tolist()]
        allowance = Allowance(steps=LOOP_STEPS) if may_defer else Allowance()
        try:
            for row, node in enumerate(nodes):
                of_node = devices.on(node, device_class, allowance)
                existing[row], in_use[row] = len(of_node), sum(map(allocated.is_in_use, of_node))
        except OutOfStepsError:
            raise LongWork(partial(devices.find, device_class, nodes)) from None
        return existing, in_use

    return totals

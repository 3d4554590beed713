"""How many devices nodes have, for plugins that score by extended resources.

DynamicResources knows devices, and other plugins do not know it: it writes a `DeviceTotals` into the state of cycles in
which they may ask.
"""

from abc import ABC, abstractmethod
from typing import Final

from extender.engine.framework.cycle_state import StateKey
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s


class DeviceTotals(ABC):
    """Counts the devices that back extended resources."""

    @abstractmethod
    def of(self, resource: str, rows: Rows) -> tuple[Int64s, Int64s]:
        """Returns (R,) how many devices the nodes have for the resource, and (R,) how many of them are allocated; 0 if
        no device class backs it.

        Raises:
            LongWork: counting goes on in a thread.
        """


DEVICE_TOTALS: Final = StateKey[DeviceTotals]("DeviceTotals")
"""Written by PreFilter of DynamicResources if a device class backs an extended resource that the pod requests."""

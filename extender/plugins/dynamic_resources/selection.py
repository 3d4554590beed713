"""Which devices a wish selects, and how long all of that may take."""

import time
from typing import final

from extender.objects.devices import Device
from extender.objects.node import Node
from extender.plugins.dynamic_resources.errors import TimedOutError
from extender.plugins.dynamic_resources.pools import Offer, Slices
from extender.plugins.dynamic_resources.requests import DeviceRequestAlternative


@final
class Matches:
    """Which selectors each device has matched, from cycle to cycle: a device that was not published anew need not be asked again."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # The device is kept beside its answers, so that no other one can get its address.
        self._known: dict[int, tuple[Device, dict[str, bool]]] = {}

    def of(self, device: Device) -> dict[str, bool]:
        """Expression -> answer, as far as it is known; the caller adds to it."""
        known = self._known.get(id(device))
        if known is None:
            known = self._known[id(device)] = (device, {})
        return known[1]

    def forget_the_gone(self, num_devices: int) -> None:
        """Start anew once most of what is known is of devices that are no more.

        Arguments:
            num_devices: how many there are.
        """
        if len(self._known) > 2 * num_devices:
            self._known.clear()


@final
class Selection:
    """Answers for one scheduling cycle, within its time."""

    __slots__ = ("_deadline", "_matches", "_slices", "_timeout")

    def __init__(self, slices: Slices, matches: Matches, timeout: float) -> None:
        """The time counts from the first question on.

        Arguments:
            timeout: seconds; zero: no limit.
        """
        self._slices = slices
        self._matches = matches
        self._timeout = timeout
        self._deadline: float | None = None

    def has(self, wish: DeviceRequestAlternative, offer: Offer, node: Node) -> bool:
        """Whether the device is what the wish selects, and for the node.

        Raises:
            AllocationError: a selector or slice is wrong.
            TimedOutError: the time is up.
        """
        self.check_time()
        return wish.matches(offer, self._matches.of(offer.device)) and self._slices.is_for(offer, node)

    def check_time(self) -> None:
        """Return while there is time.

        Raises:
            TimedOutError: the time is up.
        """
        if not self._timeout:
            return
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._timeout
        if now > self._deadline:
            raise TimedOutError

"""Selection: which devices a request selects, within the time limit of a cycle."""

import time
from typing import final

from extender.objects.devices import Device
from extender.objects.node import Node
from extender.plugins.dynamic_resources.errors import TimedOutError
from extender.plugins.dynamic_resources.pools import Offer, Slices
from extender.plugins.dynamic_resources.requests import DeviceRequestAlternative


@final
class Matches:
    """The selectors that each device matches, kept between cycles: an unchanged device need not be evaluated again."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # Keyed by id(device); the device is kept too, so that no other one can get its id.
        self._known: dict[int, tuple[Device, dict[str, bool]]] = {}

    def of(self, device: Device) -> dict[str, bool]:
        """Returns expression -> whether it matches, as far as known; the caller adds to it."""
        known = self._known.get(id(device))
        if known is None:
            known = self._known[id(device)] = (device, {})
        return known[1]

    def prune(self, num_devices: int) -> None:
        """Clears the results once most of them belong to devices that no longer exist.

        Arguments:
            num_devices: how many devices exist.
        """
        if len(self._known) > 2 * num_devices:
            self._known.clear()


@final
class Selection:
    """Selects devices for one scheduling cycle."""

    __slots__ = ("_deadline", "_matches", "_slices", "_timeout")

    def __init__(self, slices: Slices, matches: Matches, timeout: float) -> None:
        """Makes a selection whose time runs from the first call.

        Arguments:
            timeout: in seconds; 0 for no limit.
        """
        self._slices = slices
        self._matches = matches
        self._timeout = timeout
        self._deadline: float | None = None

    def selects(self, alternative: DeviceRequestAlternative, offer: Offer, node: Node) -> bool:
        """True if the device matches the request and is for the node.

        Raises:
            AllocationError: a selector or slice is invalid.
            TimedOutError: the time is up.
        """
        self.check_time()
        return alternative.matches(offer, self._matches.of(offer.device)) and self._slices.is_for(offer, node)

    def check_time(self) -> None:
        """Raises TimedOutError once the time is up."""
        if not self._timeout:
            return
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._timeout
        if now > self._deadline:
            raise TimedOutError

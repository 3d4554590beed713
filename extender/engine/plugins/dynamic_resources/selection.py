"""Selection: evaluates the selectors of requests on devices, within the allowance of a call."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, final

from extender.engine.plugins.dynamic_resources.device_features import DeviceFeatures
from extender.engine.plugins.dynamic_resources.pools import Offer, Slices
from extender.engine.plugins.dynamic_resources.requests import DeviceRequestAlternative
from extender.values import cel
from extender.values.cel import CelError, CompileError
from extender.values.objects.devices import Device
from extender.values.objects.node import Node

EVALUATION_STEPS: Final = 10
WORK_PER_STEP: Final = 200
"""The steps of an evaluation, and the work of the expression that counts as one more: each about 5 µs."""
FIRST_EVALUATION_STEPS: Final = 400
"""The steps that are added when the expression may have to be compiled."""

KEPT_RESULTS: Final = 500_000
KEPT_EXPRESSIONS: Final = 2_000
"""The number of results, some hundred bytes each, and of expressions, up to 10 KiB each, that are kept."""


class TimedOutError(Exception):
    """The search took too long."""


class OutOfStepsError(Exception):
    """The search would hold the event loop, or the thread that does long work, for too long. It goes on later."""


@final
@dataclass(kw_only=True, slots=True, eq=False)
class Allowance:
    """The steps or time that a call may still search: steps in the event loop, so that the result does not depend on
    how busy the machine is, or time in a thread.
    """

    steps: float = math.inf
    seconds: float = math.inf
    slice_seconds: float = math.inf
    """The time of a slice, after which the search goes on later."""
    is_wanted: Callable[[], bool] = lambda: True
    """Returns whether the result is still wanted."""
    _began: float | None = None

    @property
    def is_in_loop(self) -> bool:
        return self.steps < math.inf

    def spend(self, steps: int = 1) -> None:
        """Raises OutOfStepsError if the search has to go on elsewhere or later, TimedOutError if the time is up."""
        self.steps -= steps
        if self.steps < 0:
            raise OutOfStepsError
        now = time.monotonic()
        if self._began is None:
            self._began = now
        if now - self._began > self.seconds:
            raise TimedOutError
        if now - self._began > self.slice_seconds or not self.is_wanted():
            raise OutOfStepsError


@final
@dataclass(slots=True, eq=False)
class Matches:
    """Caches the expressions that each device matches, so that an unchanged device is not evaluated again.

    Entries are added by the event loop and by the thread that does long work. Both find the same results.
    """

    _known: dict[int, tuple[Device, dict[str, bool | CelError]]] = field(default_factory=dict)
    """Keyed by id(device); the device is kept too, so that no other one can get its id."""
    _evaluated: set[str] = field(default_factory=set)
    _num_results: int = 0

    def matches(self, expression: str, offer: Offer, allowance: Allowance) -> bool:
        """True if the device matches. Raises CelError if the expression fails, and OutOfStepsError."""
        device = offer.device
        entry = self._known.get(id(device))
        if entry is None:
            entry = self._known[id(device)] = (device, {})
        results = entry[1]
        result = results.get(expression)
        if result is None:
            if expression not in self._evaluated:
                allowance.spend(FIRST_EVALUATION_STEPS)
            if allowance.is_in_loop and not cel.is_cheap(expression):
                raise OutOfStepsError
            allowance.spend(EVALUATION_STEPS + _work_steps(expression))
            result = _evaluated(expression, offer)
            self._evaluated.add(expression)
            results[expression] = result
            self._num_results += 1
        if isinstance(result, CelError):
            raise type(result)(str(result))
        return result

    def prune(self, num_devices: int) -> None:
        """Clears the results once there are too many, or most belong to devices that no longer exist."""
        if (
            len(self._known) > 2 * num_devices
            or self._num_results > KEPT_RESULTS
            or len(self._evaluated) > KEPT_EXPRESSIONS
        ):
            self._known.clear()
            self._evaluated.clear()
            self._num_results = 0


def _work_steps(expression: str) -> int:
    work = cel.work_of_expression(expression)
    return int(work) // WORK_PER_STEP if work < math.inf else 0  # what is not cheap runs elsewhere


def _evaluated(expression: str, offer: Offer) -> bool | CelError:
    try:
        return cel.evaluate(expression, cel.facts_of(offer.id.driver, offer.device))
    except CelError as exc:
        # Without its traceback, which would keep the frames of the search.
        return (CompileError if isinstance(exc, CompileError) else CelError)(str(exc))


@final
@dataclass(slots=True, eq=False)
class Selection:
    """Selects devices for one call of the allocator."""

    slices: Slices
    matches: Matches
    allowance: Allowance
    features: DeviceFeatures

    def selects(self, alternative: DeviceRequestAlternative, offer: Offer, node: Node) -> bool:
        """True if the device matches the request and is for the node.

        Raises AllocationError if a selector or slice is invalid; OutOfStepsError, TimedOutError.
        """
        self.allowance.spend()
        if offer.device.binding_conditions and not self.features.binding_conditions:
            return False
        is_match = partial(self.matches.matches, allowance=self.allowance)
        return alternative.matches(offer, is_match) and self.slices.is_for(offer, node)

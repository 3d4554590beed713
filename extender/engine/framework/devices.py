"""The contract of DynamicResources with the engine: it may put off its search for devices (`LongWork`), and it counts
devices for plugins that score by extended resources (`DeviceTotals`).

LongWork is no part of the contract of plugins: `runtime.plugin_calls` and the scheduler catch it.
"""

from collections.abc import Callable
from typing import Final, final

from extender.engine.framework.cycle_state import StateKey
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.values.metrics import Unanswered

MAY_DEFER: Final = StateKey[bool]("MayDefer")
"""Under `Handle.shared`: True if the runner of the cycles does `LongWork`. Otherwise plugins do all work at once."""


@final
class LongWork(Unanswered):
    """Raised at PreFilter, Filter or Score if the answer takes long.

    The cycle, which has had no effect yet, is dropped, and `work` is called in a thread. Then a new cycle begins, which
    finds the results. `work` reads frozen values only, because the snapshot changes meanwhile, and does not raise: it
    keeps errors for the new cycle, too. It is given a function that returns whether its result is still wanted, and
    ends soon once that returns False. The runner keeps this object until the attempt is over, so that results can be
    referred to weakly.
    """

    def __init__(self, work: Callable[[Callable[[], bool]], None]) -> None:
        super().__init__("the answer takes longer than a cycle may")
        self.work = work


DeviceTotals = Callable[[str, Rows], tuple[Int64s, Int64s]]
"""Returns (R,) how many devices the nodes have for an extended resource, and (R,) how many are allocated; 0 if no
device class backs it. Raises LongWork if counting goes on in a thread.
"""


DEVICE_TOTALS: Final = StateKey[DeviceTotals]("DeviceTotals")
"""Written by PreFilter of DynamicResources if a device class backs an extended resource that the pod requests."""

"""The watchdog logs where the event loop stands still, and since when.

A plugin that hangs blocks the event loop, probes included, so that nothing in the loop can say why. A thread can.
"""

import sys
import threading
import time
import traceback
from typing import Final, final

from extender.values.klog.logger import Lines, Logger

PATIENCE: Final = 5.0
"""Seconds without a beat after which it logs; twice as long after each time."""
_FRAMES: Final = 20
_LOOKS: Final = 10
"""Looks in the time of its patience."""

_LOG: Final = Logger(__name__)


@final
class Watchdog:
    """Logs the stack of the watched thread when that has not called `beat` for too long."""

    def __init__(self, patience: float = PATIENCE) -> None:
        """Watches nothing before `start`.

        Arguments:
            patience: seconds.
        """
        self._patience = patience
        self._tolerated = patience
        self._last = time.monotonic()
        self._watched = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watches the thread that calls this."""
        self._watched = threading.get_ident()
        self.beat()
        self._thread.start()

    def beat(self) -> None:
        """Says that the watched thread is not blocked."""
        now = time.monotonic()
        if self._tolerated > self._patience:
            self._tolerated = self._patience
            _LOG.info(0, "The event loop goes on", seconds=round(now - self._last, 1))
        self._last = now

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._patience / _LOOKS):
            silent = time.monotonic() - self._last
            frame = sys._current_frames().get(self._watched)
            if silent < self._tolerated or frame is None:
                continue
            self._tolerated = 2 * silent
            where = "".join(traceback.format_stack(frame, limit=_FRAMES))
            _LOG.error(None, "The event loop stands still", seconds=round(silent, 1), where=Lines(where))

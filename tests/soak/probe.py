"""A plugin that reports how many tasks the event loop has, and that leaks if it is told to."""

import asyncio
import os
import threading
from functools import cache
from typing import Any, Final

from extender import framework as fwk

REPORT: Final = "SOAK_REPORT"
LEAKS: Final = "SOAK_LEAKS"
"""Environment variables: the file for the report, and what leaks with each pod: memory, descriptors, tasks."""
LEAKED_BYTES: Final = 256 * 1024

_leaked: list[Any] = []


@cache
def _report() -> int:
    """Returns a descriptor of the file for the report: one, though each question has plugins of its own."""
    return os.open(os.environ[REPORT], os.O_WRONLY)


class Probe(fwk.PreFilterPlugin):
    """Changes no decision."""

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._leaks = os.environ.get(LEAKS, "")

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        if threading.current_thread() is threading.main_thread():  # questions are answered in threads, some with a loop of their own
            os.pwrite(_report(), f"{len(asyncio.all_tasks()):6}".encode(), 0)
            if "tasks" in self._leaks:
                _leaked.append(asyncio.get_running_loop().create_task(asyncio.sleep(3600)))
        if "memory" in self._leaks:
            _leaked.append(os.urandom(LEAKED_BYTES))
        if "descriptors" in self._leaks:
            _leaked.append(os.open(os.devnull, os.O_RDONLY))
        return fwk.PreFilterResult(fwk.SKIP)

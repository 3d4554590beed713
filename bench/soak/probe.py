"""A plugin that reports how many tasks the event loop has and how many objects in cycles were found, and that leaks if
it is told to.
"""

import asyncio
import gc
import json
import os
import sys
import threading
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from extender.engine import framework as fwk

REPORT: Final = "SOAK_REPORT"
LEAKS: Final = "SOAK_LEAKS"
"""Environment variables: the file for the report, and what leaks with each pod: memory, descriptors, tasks, cycles."""
LEAKED_BYTES: Final = 256 * 1024
LEAKED_CYCLES: Final = 200

_leaked: list[Any] = []


@cache
def _report() -> int:
    """Returns a descriptor of the file for the report: one, though each question has plugins of its own."""
    return os.open(os.environ[REPORT], os.O_WRONLY)


def holdings(report: Path) -> Path:
    """Returns the file into which the probe counts what the process holds, as soon as the file is there and empty."""
    return report.with_suffix(".holdings")


def _count_what_is_held(file: Path) -> None:
    """Counts in a copy of the process, so that counting leaves nothing behind in this one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: the copy uses none
        copy = os.fork()
    if copy:
        os.waitpid(copy, 0)
        return
    gc.unfreeze()  # what is held by objects that were there at the first sync counts, too
    gc.collect()
    ids: set[int] = set()
    counts: dict[str, list[int]] = {}
    for container in gc.get_objects():
        for obj in (container, *gc.get_referents(container)):
            if id(obj) not in ids:
                ids.add(id(obj))
                entry = counts.setdefault(f"{type(obj).__module__}.{type(obj).__qualname__}", [0, 0])
                entry[0] += 1
                entry[1] += 0 if isinstance(obj, msgspec.Raw) else sys.getsizeof(obj)  # a Raw says any size
    file.with_suffix(".new").write_text(json.dumps(counts))
    file.with_suffix(".new").rename(file)
    os._exit(0)


class Probe(fwk.PreFilterPlugin):
    """Changes no decision."""

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._leaks = os.environ.get(LEAKS, "")

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        if (
            threading.current_thread() is threading.main_thread()
        ):  # questions are answered in threads, some with a loop of their own
            in_cycles = sum(generation["collected"] for generation in gc.get_stats())
            os.pwrite(_report(), f"{len(asyncio.all_tasks()):6} {in_cycles:12}".encode(), 0)
            holdings_file = holdings(Path(os.environ[REPORT]))
            if holdings_file.exists() and not holdings_file.stat().st_size:
                _count_what_is_held(holdings_file)
            if "tasks" in self._leaks:
                _leaked.append(asyncio.get_running_loop().create_task(asyncio.sleep(3600)))
            if "cycles" in self._leaks:
                for _ in range(LEAKED_CYCLES):
                    itself: list[Any] = []
                    itself.append(itself)
        if "memory" in self._leaks:
            _leaked.append(os.urandom(LEAKED_BYTES))
        if "descriptors" in self._leaks:
            _leaked.append(os.open(os.devnull, os.O_RDONLY))
        return fwk.PreFilterResult(fwk.SKIP)

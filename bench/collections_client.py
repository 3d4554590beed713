"""A scheduler in a process of its own: `python -m bench.collections_client URL`.

For each line that it reads, it prints a line of JSON about the time since the last one. It runs on asyncio's event
loop, whose steps can be timed, and not on uvloop's.
"""

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.values.concurrency.process import rare_collections
from extender.values.config.configuration import Configuration
from extender.values.targets.target import Target

NUM_LONGEST = 3
LONG = 0.001
"""Seconds of steps that are kept: there are millions."""


class _Timed:
    """The processor time of collections, and of steps of the event loop with the collections in them."""

    def __init__(self) -> None:
        self.collections: list[float] = []
        self.steps: list[float] = []
        self._began = 0.0

    def begin(self) -> None:
        run = asyncio.Handle._run

        def timed(handle: Any) -> None:
            began = time.thread_time()
            run(handle)
            seconds = time.thread_time() - began
            if seconds > LONG:
                self.steps.append(seconds)

        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.collections.append(time.thread_time() - self._began)

    def longest(self) -> dict[str, list[float]]:
        """Returns milliseconds, and begins anew."""
        measured = {"collections": self.collections, "steps": self.steps}
        longest = {
            name: [1000 * seconds for seconds in sorted(times, reverse=True)[:NUM_LONGEST]]
            for name, times in measured.items()
        }
        self.collections.clear()
        self.steps.clear()
        return longest


async def _schedule(url: str) -> None:
    client = Client(Target(url))
    timed = _Timed()
    async with (
        live_backend(Configuration(), client, LiveOptions(decides=True)) as backend,
        rare_collections(backend.wait_for_sync),
    ):
        timed.begin()
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps({**timed.longest(), "memory": _resident() / 2**20}), flush=True)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


asyncio.run(_schedule(sys.argv[1]))

"""A scheduler in a process of its own: `python -m tests.benchmarks.collections_client URL`.

For each line that it reads, it prints a line of JSON about the collections since the last one.
"""

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from extender.apiserver.client import Client
from extender.apiserver.credentials.target import Target
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.concurrency.short_collections import short_collections
from extender.config import Configuration

NUM_LONGEST = 5


async def _schedule(url: str) -> None:
    client = Client(Target(url))
    lasted: list[float] = []
    began = 0.0

    def note(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        else:
            lasted.append(time.thread_time() - began)

    async with live_backend(Configuration(), client, LiveOptions(decides=True)), short_collections():
        gc.callbacks.append(note)
        since = time.process_time()
        while await asyncio.to_thread(sys.stdin.readline):
            now = time.process_time()
            found: dict[str, Any] = {"longest": [1000 * seconds for seconds in sorted(lasted, reverse=True)[:NUM_LONGEST]]}
            found |= {"share": sum(lasted) / (now - since), "memory": _resident() / 2**20}
            print(json.dumps(found), flush=True)
            lasted.clear()
            since = now


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


uvloop.run(_schedule(sys.argv[1]))

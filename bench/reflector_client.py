"""Whoever follows, in a process of its own: `python -m bench.reflector_client URL streamed|ordinary|engine`.

The first two are reflectors of nodes and pods alone, the last is the whole extender with its cache and columns.

Prints a line of JSON once they have synced, and another when a line was read after that; a third at the end of the
input.
"""

import asyncio
import json
import random
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import uvloop

from extender.assembly.live_backend import live_backend
from extender.client.client import Client
from extender.client.informers.informers import Informers
from extender.client.informers.store import Change
from extender.values.config.configuration import Configuration
from extender.values.objects.kinds import NODES, PODS
from extender.values.targets.target import Target
from extender.verbs import Verbs


async def main(url: str, how: str) -> None:
    """Sync, then follow."""
    num_changes = 0

    def count(changes: Sequence[Change[Any]]) -> None:
        nonlocal num_changes
        num_changes += len(changes)

    client = Client(Target(url), rng=random.Random())
    informers = Informers(client, rng=random.Random(), streams_lists=how == "streamed")
    for kind in (NODES, PODS):
        informers.add(kind, count)
    before, began = _peak(), time.perf_counter()
    running = asyncio.ensure_future(informers.run())
    await informers.wait_for_sync()
    _say(
        seconds=time.perf_counter() - began,
        cpu=time.process_time(),
        objects=num_changes,
        before=before,
        now=_now(),
        peak=_peak(),
    )
    for _ in range(2):
        await asyncio.to_thread(sys.stdin.readline)
        _say(cpu=time.process_time(), objects=num_changes)
    running.cancel()
    await asyncio.wait([running])
    await client.aclose()


async def follow(url: str) -> None:
    """Sync an engine, then follow."""
    client = Client(Target(url))
    before, began = _peak(), time.perf_counter()
    async with live_backend(Configuration(), client) as backend:
        await backend.wait_for_sync()
        assert isinstance(backend.verbs, Verbs)
        assert backend.informers is not None
        cache = backend.verbs._cluster.cache
        nodes = len(cache.update_snapshot().nodes)
        seconds = time.perf_counter() - began
        _say(
            seconds=seconds,
            cpu=time.process_time(),
            objects=nodes + cache.num_pods,
            before=before,
            now=_now(),
            peak=_peak(),
        )
        for _ in range(2):
            await asyncio.to_thread(sys.stdin.readline)
            events = sum(reflector.counters.events for reflector in backend.informers.reflectors)
            _say(cpu=time.process_time(), objects=events)
    await client.aclose()


def _say(**figures: float) -> None:
    print(json.dumps(figures), flush=True)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _now() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    uvloop.run(follow(sys.argv[1]) if sys.argv[2] == "engine" else main(sys.argv[1], sys.argv[2]))

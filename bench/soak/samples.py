"""What a process holds at some moments, and whether it grows."""

import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.soak.probe import holdings
from bench.soak.service import Service

MIB: Final = 2**20
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """One moment: `rss` in bytes; as the probe has counted them last `tasks`, and the objects `in_cycles` that were
    found so far.
    """

    time: float
    rss: int
    descriptors: int
    threads: int
    tasks: int
    in_cycles: int


MOST_IN_CYCLES: Final = 300
"""Objects in cycles that a round of requests may leave for the collector: a few of Jinja's macros. With the rows of
their pages there were 335, with each request in a cycle of its own, and its body with it, 630.
"""

GROWTH: Final = {"rss": 12 * MIB, "descriptors": 8, "threads": 8, "tasks": 8}
"""What may come and go; more than that, from the first third of the samples to the last one, is a leak."""


def sample(service: Service) -> Sample:
    """Returns what the process holds now."""
    process = Path(f"/proc/{service.pid}")
    rss = int((process / "statm").read_text().split()[1]) * _PAGE
    counts = [len(os.listdir(process / name)) for name in ("fd", "task")]
    tasks, in_cycles = map(int, service.report.read_text().split())
    return Sample(time.monotonic(), rss, counts[0], counts[1], tasks, in_cycles)


def leaks(samples: Sequence[Sample], rounds_a_sample: float = 1.0) -> list[str]:
    """Returns the names of what grows, with how much."""
    texts = []
    for name, limit in GROWTH.items():
        values = [getattr(one, name) for one in samples]
        third = len(values) // 3
        growth = statistics.median(values[-third:]) - statistics.median(values[:third])
        if growth > limit:
            texts.append(f"{name} grew by {growth:.0f}")
    a_sample = (samples[-1].in_cycles - samples[0].in_cycles) / (len(samples) - 1)
    if a_sample > MOST_IN_CYCLES * rounds_a_sample:
        texts.append(f"cycles of {a_sample:.0f} objects are left behind")
    return texts


def slopes(samples: Sequence[Sample]) -> dict[str, float]:
    """Returns how much of each there is more in an hour: the slope of the straight line through the samples."""
    times = [one.time / 3600 for one in samples]
    return {name: statistics.linear_regression(times, [getattr(one, name) for one in samples]).slope for name in GROWTH}


Holdings = dict[str, tuple[int, int]]
"""Objects and their own bytes, by type."""


async def what_is_held(service: Service, asking: Callable[[], Awaitable[None]]) -> Holdings:
    """Returns what the process counts of its objects while `asking` keeps it deciding."""
    file = holdings(service.report)
    file.touch()
    while not file.stat().st_size:
        await asking()
    counts: Holdings = {name: (number, size) for name, (number, size) in json.loads(file.read_text()).items()}
    file.unlink()
    return counts


def grown(before: Holdings, after: Holdings, lines: int = 12) -> list[str]:
    """Returns the types of which there are more bytes, those with the most first."""
    grown = {name: tuple(map(int.__sub__, after[name], before.get(name, (0, 0)))) for name in after}
    names = sorted(grown, key=lambda name: grown[name][1], reverse=True)[:lines]
    return [
        f"{name}: {grown[name][0]:+d} objects, {grown[name][1] / MIB:+.2f} MiB" for name in names if grown[name][1] > 0
    ]

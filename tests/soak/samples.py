"""What a process holds at some moments, and whether it grows."""

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.soak.service import Service

MIB: Final = 2**20
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """One moment: `rss` in bytes; `tasks` as the probe has counted them last."""

    at: float
    rss: int
    descriptors: int
    threads: int
    tasks: int


GROWTH: Final = {"rss": 12 * MIB, "descriptors": 8, "threads": 8, "tasks": 8}
"""What may come and go; more than that, from the first third of the samples to the last one, is a leak."""


def sample(service: Service) -> Sample:
    """Returns what the process holds now."""
    process = Path(f"/proc/{service.pid}")
    rss = int((process / "statm").read_text().split()[1]) * _PAGE
    counted = [len(os.listdir(process / name)) for name in ("fd", "task")]
    return Sample(time.monotonic(), rss, counted[0], counted[1], tasks=int(service.report.read_text()))


def leaks(samples: Sequence[Sample]) -> list[str]:
    """Returns the names of what grows, with how much."""
    found = []
    for name, most in GROWTH.items():
        values = [getattr(each, name) for each in samples]
        third = len(values) // 3
        growth = statistics.median(values[-third:]) - statistics.median(values[:third])
        if growth > most:
            found.append(f"{name} grew by {growth:.0f}")
    return found


def slopes(samples: Sequence[Sample]) -> dict[str, float]:
    """Returns how much of each there is more in an hour: the slope of the straight line through the samples."""
    times = [each.at / 3600 for each in samples]
    return {name: statistics.linear_regression(times, [getattr(each, name) for each in samples]).slope for name in GROWTH}

"""Ratios of figures of one run, on one machine: they say whether something has become slow, whatever the machine.

`make bench-check` measures them and fails if one has fallen by 30 % against ratios.json, which `python -m
bench.ratios record` writes. Everything is CPU time, the least of several rounds that take turns, so that
other work on the machine counts little. What is measured is compared with a yardstick: a fixed mix of Python and numpy
that has nothing to do with scheduling.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from bench.cluster import make_cache
from bench.decision import SHAPES, decide
from bench.preemption import evaluate

RECORDED = Path(__file__).with_name("ratios.json")
MAY_FALL_TO = 0.7
ROUNDS = 5
PODS = 150


def yardstick() -> float:
    """Seconds of CPU time that the fixed mix takes."""
    took = []
    amounts = np.arange(20_000, dtype=np.int64).reshape(5000, 4)
    for _ in range(20):
        began = time.process_time()
        counts: dict[int, int] = {}
        for number in range(4_000):
            counts[number % 61] = counts.get(number % 61, 0) + number
        for _ in range(20):
            free = amounts.max(axis=0) - amounts
            np.argmax(np.minimum(free, 100).sum(axis=1) * (free > 3).all(axis=1))
        took.append(time.process_time() - began)
    return statistics.median(took)


def measured() -> dict[str, float]:
    """Name -> ratio; higher is better."""
    large, small = make_cache(5000), make_cache(1000)
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        times.setdefault("yardstick", []).append(yardstick())
        for shape, make in SHAPES.items():
            pods = [make(number) for number in range(PODS)]
            times.setdefault(shape, []).append(decide(large.fork(), pods, time.process_time).p50 / 1e3)
        pods = [SHAPES["basic"](number) for number in range(PODS)]
        times.setdefault("small", []).append(decide(small.fork(), pods, time.process_time).p50 / 1e3)
        times.setdefault("preemption", []).append(evaluate(1000, 3, time.process_time)[1] / 1e3)
    cpu = {name: min(seconds) for name, seconds in times.items()}
    return {
        **{f"decisions in a yardstick, 5,000 nodes, {shape}": cpu["yardstick"] / cpu[shape] for shape in SHAPES},
        "preemptions in a yardstick, 1,000 nodes full of victims": cpu["yardstick"] / cpu["preemption"],
        **{f"{shape} against basic": cpu["basic"] / cpu[shape] for shape in SHAPES if shape != "basic"},
        "5,000 nodes against 1,000": cpu["small"] / cpu["basic"],
    }


def check(ratios: dict[str, float], recorded: dict[str, float]) -> list[str]:
    """The names of ratios that have fallen too far, or are not measured any more."""
    return [name for name, ratio in recorded.items() if ratios.get(name, 0.0) < MAY_FALL_TO * ratio]


def main(arguments: list[str]) -> int:
    """Measure, and compare or record. Returns the exit code."""
    ratios = measured()
    if arguments == ["record"]:
        text = json.dumps({name: float(f"{ratio:.3g}") for name, ratio in ratios.items()}, indent=2)
        RECORDED.write_text(text + "\n")
        return 0
    recorded = json.loads(RECORDED.read_text())
    fallen = check(ratios, recorded)
    print(f"{'ratio':58} {'recorded':>9} {'now':>9} {'change':>7}")
    for name, before in recorded.items():
        now = ratios.get(name, 0.0)
        print(f"{name:58} {before:9.3g} {now:9.3g} {now / before - 1:+7.0%}{'  FALLEN' if name in fallen else ''}")
    if fallen:
        print(f"{len(fallen)} of {len(recorded)} ratios have fallen below {MAY_FALL_TO:.0%} of what they were")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m bench.soak --minutes 30`: mixed traffic, a line each minute, and the slopes of what the process holds
after warm-up.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.soak.samples import MIB, Holdings, Sample, grown, leaks, sample, slopes, what_is_held
from bench.soak.service import Service, a_service
from bench.soak.traffic import traffic_for

WARM: Final = 1 / 3
"""The share of the time after which caches are full."""
CROWDS: Final = 60
"""Crowds of pods that come and go before the traffic, so that the histories of pods and events, and the records, are
full.
"""
SECONDS_BETWEEN_SAMPLES: Final = 2.0


async def soak(service: Service, minutes: float, pause: float, crowds: int) -> tuple[list[Sample], int]:
    """Makes traffic, and prints of which types the service holds more at the end than when it was warm.

    Returns:
        Samples of the service, and the number of rounds.
    """
    samples: list[Sample] = []
    holdings: list[Holdings] = []
    async with traffic_for(service, random.Random(1)) as traffic:
        await traffic.fill(crowds)
        began = time.monotonic()
        end, next_line, rounds = began + minutes * 60, began, 0
        while (now := time.monotonic()) < end:
            await traffic.round()
            rounds += 1
            if not samples or now - samples[-1].time > SECONDS_BETWEEN_SAMPLES:
                samples.append(sample(service))
            if now > next_line:
                next_line += 60
                print(f"{(now - began) / 60:5.1f} min: {rounds} rounds, {described(samples[-1])}", flush=True)
            if not holdings and now - began > WARM * minutes * 60:
                holdings.append(await what_is_held(service, traffic.round))
            await asyncio.sleep(pause)
        holdings.append(await what_is_held(service, traffic.round))
        answers = ", ".join(f"{status}: {number}" for status, number in sorted(traffic.statuses.items()))
        print(f"{rounds} rounds in {minutes:g} min, answers {answers}")
        print("\n".join(("more than when it was warm:", *grown(holdings[0], holdings[-1]))))
        print("\n".join(("of all that is held:", *grown({}, holdings[-1]))))
    return samples, rounds


def described(one: Sample) -> str:
    """Returns a sample in words."""
    return f"RSS {one.rss / MIB:.1f} MiB, {one.descriptors} descriptors, {one.threads} threads, {one.tasks} tasks"


def main() -> int:
    """Returns the exit code: 1 if anything has leaked."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between two rounds of requests")
    parser.add_argument("--crowds", type=int, default=CROWDS, help="of 500 pods, that come and go before the traffic")
    flags = parser.parse_args()
    os.nice(10)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, a_service(Path(folder)) as service:
        samples, rounds = asyncio.run(soak(service, flags.minutes, flags.pause, flags.crowds))
    warm = [one for one in samples if one.time - samples[0].time >= WARM * (samples[-1].time - samples[0].time)]
    print(
        f"warm: {described(warm[0])}; at the end: {described(warm[-1])}; highest RSS "
        f"{max(one.rss for one in samples) / MIB:.1f} MiB"
    )
    rates = slopes(warm)
    print(
        f"slopes after warm-up, an hour: RSS {rates.pop('rss') / MIB:+.1f} MiB, "
        + ", ".join(f"{k} {v:+.1f}" for k, v in rates.items())
    )
    in_cycles = (warm[-1].in_cycles - warm[0].in_cycles) / (len(warm) - 1) / (rounds / len(samples))
    print(f"a round left {in_cycles:.0f} objects in cycles for the collector")
    print("; ".join(wrong := leaks(warm, rounds / len(samples))) or "nothing leaks")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""The service keeps nothing of the requests it has answered; a longer look is `make soak`."""

import asyncio
import random
from pathlib import Path
from typing import Final

import pytest

from bench.soak.samples import Sample, leaks, sample
from bench.soak.service import Service, a_service
from bench.soak.traffic import traffic_for

pytestmark = pytest.mark.slow

WARM_ROUNDS: Final = 25


async def soaked(service: Service, rounds: int) -> list[Sample]:
    samples: list[Sample] = []
    async with traffic_for(service, random.Random(1)) as traffic:
        for number in range(WARM_ROUNDS + rounds):
            await traffic.round()
            if number >= WARM_ROUNDS:
                samples.append(sample(service))
    return samples


def test_memory_descriptors_and_tasks_do_not_grow(tmp_path: Path) -> None:
    with a_service(tmp_path) as service:
        samples = asyncio.run(soaked(service, 60))

    assert samples[-1].tasks > 0
    assert leaks(samples) == []


def test_leaks_of_each_kind_are_found(tmp_path: Path) -> None:
    with a_service(tmp_path, leaks="memory, descriptors, tasks, cycles") as service:
        samples = asyncio.run(soaked(service, 24))

    assert [sentence.split()[0] for sentence in leaks(samples)] == ["rss", "descriptors", "tasks", "cycles"]

"""The collector leaves alone what the first sync brought."""

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from extender.values.concurrency.process import THRESHOLDS, collector_paused, loading_modules, rare_collections

ROOT = Path(__file__).parents[4]


def looked_at(objects: list[list[int]]) -> bool:
    """Whether a full collection would walk over these."""
    ids = {id(obj) for obj in gc.get_objects()}
    return any(id(obj) in ids for obj in objects)


async def followed() -> list[object]:
    """What is seen of a service before it has synced, then, and when it has ended."""
    synced = asyncio.Event()
    before = gc.get_threshold()
    async with rare_collections(synced.wait):
        objects = [[number] for number in range(1000)]
        await asyncio.sleep(0)
        unsynced = looked_at(objects)
        synced.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        later = [[number] for number in range(1000)]
        synced_state = gc.get_threshold() == THRESHOLDS, looked_at(objects), looked_at(later)
    return [unsynced, *synced_state, gc.get_threshold() == before, looked_at(objects)]


def test_objects_of_the_first_sync_are_not_collected() -> None:
    """In a process of its own: services of other tests have the collector of this one."""
    program = f"import asyncio; from {__name__} import followed; print(*asyncio.run(followed()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "True", "False", "True", "True", "True"]


def loaded() -> list[object]:
    """What is seen of the collector while modules are loaded, and afterwards."""
    with loading_modules():
        objects = [[number] for number in range(1000)]
        resting = not gc.isenabled()
    return [resting, gc.isenabled(), looked_at(objects), looked_at([[number] for number in range(1000)])]


def test_modules_that_are_loaded_are_not_collected() -> None:
    program = f"from {__name__} import loaded; print(*loaded())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "True", "False", "True"]


def test_numpy_starts_no_threads_while_modules_are_loaded_unless_it_is_told_to() -> None:
    program = (
        "import os; from extender.values.concurrency.process import loading_modules\n"
        "with loading_modules():\n    import numpy\n"
        "print(len(os.listdir('/proc/self/task')), os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    untold, told = (
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=environment | more,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for more in ({}, {"OPENBLAS_NUM_THREADS": "2"})
    )

    assert untold == ["1", "1"]
    assert told[1] == "2"


def test_collector_works_again_even_after_a_failure() -> None:
    with pytest.raises(ZeroDivisionError), collector_paused():
        resting = not gc.isenabled()
        raise ZeroDivisionError

    assert resting
    assert gc.isenabled()


def test_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass

        assert not gc.isenabled()
    finally:
        gc.enable()

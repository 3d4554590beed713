"""Full collections run in steps of their own, and leave alone what has survived a long one."""

import asyncio
import gc
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from extender.testing import virtual_time
from extender.values.concurrency.short_collections import BUSY, DUE, OVERDUE, short_collections

MANY = 1_000

BETWEEN = 0.001

ROOT = Path(__file__).parents[4]

ALONE: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}


def alone(main: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test in a process of its own, whose time passes at once: the services of other tests have the collector of this
    one.
    """
    ALONE[main.__name__] = main

    def test() -> None:
        command = [sys.executable, "-m", __name__, main.__name__]
        child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert child.returncode == 0, child.stderr

    test.__name__, test.__doc__ = main.__name__, main.__doc__
    return test


class Node:
    """Can be in a cycle."""

    def __init__(self) -> None:
        self.itself = self


def looked_at(objects: list[list[int]]) -> bool:
    """Whether a full collection would walk over these."""
    known = {id(each) for each in gc.get_objects()}
    return any(id(each) in known for each in objects)


def make_due() -> None:
    """Lets as many collections of young objects pass as pass before a full one."""
    for _ in range(DUE):
        gc.collect(1)


async def full_collection() -> None:
    """Lets one full collection pass."""
    make_due()
    await asyncio.sleep(2 * BETWEEN)


@alone
async def test_no_full_collection_begins_in_the_middle_of_a_step() -> None:
    before = gc.get_threshold()
    full: list[int] = []

    def note(phase: str, info: Mapping[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            full.append(len(full))

    async with short_collections(between=BETWEEN):
        gc.callbacks.append(note)
        for _ in range(2 * before[2]):
            gc.collect(1)
        kept = [[number] for number in range(100 * MANY)]
        in_the_step = len(full)
        await full_collection()
        gc.callbacks.remove(note)

    assert (in_the_step, len(full)) == (0, 1)
    assert len(kept) == 100 * MANY
    assert gc.get_threshold() == before


@alone
async def test_the_last_of_several_services_puts_back_what_was_before_the_first() -> None:
    """
    They need not end in the order in which they have begun.
    """
    before, objects = gc.get_threshold(), [[number] for number in range(MANY)]
    first, second = short_collections(), short_collections()
    async with first:
        await second.__aenter__()
    during = gc.get_threshold()[2], looked_at(objects)
    await second.__aexit__(None, None, None)

    assert during == (OVERDUE, False)
    assert gc.get_threshold() == before
    assert looked_at(objects)


@alone
async def test_what_is_there_at_the_beginning_is_not_looked_at() -> None:
    objects = [[number] for number in range(MANY)]

    async with short_collections():
        during = looked_at(objects)

    assert not during
    assert looked_at(objects)


@alone
async def test_what_survives_a_long_collection_is_not_looked_at_again() -> None:
    async with short_collections(longest=-1, between=BETWEEN):
        objects = [[number] for number in range(MANY)]
        before = looked_at(objects)
        await full_collection()
        after = looked_at(objects)

    assert (before, after) == (True, False)


@alone
async def test_what_survives_a_short_one_is() -> None:
    async with short_collections(longest=float("inf"), between=BETWEEN):
        objects = [[number] for number in range(MANY)]
        await full_collection()

        assert looked_at(objects)


@alone
async def test_cycles_that_form_later_are_collected_all_the_same() -> None:
    async with short_collections(longest=-1, between=BETWEEN):
        await full_collection()
        gone = weakref.ref(Node())
        await full_collection()

        assert gone() is None


@alone
async def test_cycles_among_what_is_left_alone_are_found_only_near_the_memory_limit() -> None:
    """
    That takes long: all objects are looked at.
    """
    used = 10
    async with short_collections(longest=-1, between=BETWEEN, limit=100, memory=lambda: used):
        gone = weakref.ref(node := Node())
        await full_collection()
        del node
        used = 75
        await full_collection()
        before = gone() is None
        used = 76
        await full_collection()

        assert (before, gone()) == (False, None)


@alone
async def test_near_the_memory_limit_it_is_done_once_more_only_after_further_growth() -> None:
    used = 80
    async with short_collections(longest=-1, between=BETWEEN, limit=100, memory=lambda: used):
        await full_collection()
        gone = weakref.ref(node := Node())
        await full_collection()
        del node
        found = []
        for more in (85, 86):
            used = more
            await full_collection()
            found.append(gone() is None)

        assert found == [False, True]


@alone
async def test_younger_objects_are_collected_though_as_many_go_as_come() -> None:
    """
    Python counts those that are made less those that are gone, and so does not begin by itself.
    """
    objects = [[number] for number in range(MANY)]
    sizes: list[int] = []

    async with short_collections(longest=float("inf"), between=BETWEEN):
        await full_collection()
        for _ in range(50):
            for place in range(MANY):
                objects[place] = [place]
            busy_until = time.process_time() + 2 * BUSY
            while time.process_time() < busy_until:
                pass
            await asyncio.sleep(2 * BETWEEN)
            sizes.append(len(gc.get_objects(generation=0)))

    assert max(sizes) < MANY


@alone
async def test_what_is_left_alone_goes_when_nobody_refers_to_it() -> None:
    async with short_collections(longest=-1, between=BETWEEN):
        class_of = type("Plain", (), {})
        plain = class_of()
        gone = weakref.ref(plain)
        await full_collection()
        del plain

        assert gone() is None


if __name__ == "__main__":
    virtual_time.run(ALONE[sys.argv[1]]())

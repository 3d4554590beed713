"""Full collections leave alone what has survived a long one."""

import gc
import weakref

from extender.concurrency.short_collections import short_collections

MANY = 1_000


class Node:
    """Can be in a cycle."""

    def __init__(self) -> None:
        self.itself = self


def looked_at(objects: list[list[int]]) -> bool:
    """Whether a full collection would walk over these."""
    known = {id(each) for each in gc.get_objects()}
    return any(id(each) in known for each in objects)


def test_what_is_there_at_the_beginning_is_not_looked_at() -> None:
    objects = [[number] for number in range(MANY)]

    with short_collections():
        during = looked_at(objects)

    assert not during
    assert looked_at(objects)


def test_what_survives_a_long_collection_is_not_looked_at_again() -> None:
    with short_collections(longest=-1):
        objects = [[number] for number in range(MANY)]
        before = looked_at(objects)
        gc.collect()
        after = looked_at(objects)

    assert (before, after) == (True, False)


def test_what_survives_a_short_one_is() -> None:
    with short_collections(longest=float("inf")):
        objects = [[number] for number in range(MANY)]
        gc.collect()

        assert looked_at(objects)


def test_cycles_that_form_later_are_collected_all_the_same() -> None:
    with short_collections(longest=-1):
        gc.collect()
        gone = weakref.ref(Node())
        gc.collect()

        assert gone() is None


def test_what_is_left_alone_goes_when_nobody_refers_to_it() -> None:
    with short_collections(longest=-1):
        class_of = type("Plain", (), {})
        plain = class_of()
        gone = weakref.ref(plain)
        gc.collect()
        del plain

        assert gone() is None

"""The heap behind activeQ and backoffQ."""

import weakref
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from extender.engine.queue.pod_queues import PodHeap
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.testing import make_pod


@dataclass(order=True)
class Key:
    """A sort key that tells when it is forgotten."""

    value: float


def info(name: str, timestamp: float) -> QueuedPodInfo:
    return QueuedPodInfo(make_pod(name).obj(), timestamp)


def heap_of(*infos: QueuedPodInfo) -> PodHeap:
    heap = PodHeap(lambda info: info.timestamp)
    for entry in infos:
        heap.add_or_update(entry)
    return heap


def test_equals_come_in_the_order_in_which_they_came() -> None:
    heap = heap_of(info("b", 1), info("a", 1), info("c", 0))

    assert [heap.pop().pod.name for _ in range(3)] == ["c", "b", "a"]  # type: ignore[union-attr]


def test_a_pod_added_again_takes_the_place_of_what_was_there() -> None:
    heap = heap_of(info("a", 1), info("b", 2))

    heap.add_or_update(info("a", 3))

    assert len(heap) == 2
    assert [(entry.pod.name, entry.timestamp) for entry in heap] == [("b", 2), ("a", 3)]


def test_a_missing_pod_is_none() -> None:
    heap = heap_of()

    assert (heap.peek(), heap.pop(), heap.get("default/a"), heap.remove("default/a")) == (None, None, None, None)
    assert "default/a" not in heap


NAMES = st.sampled_from("abcdef")
STEPS = st.one_of(
    st.tuples(st.just("add"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("remove"), NAMES, st.just(0)),
    st.tuples(st.just("pop"), st.just(""), st.just(0)),
)


@given(st.lists(STEPS, max_size=300))
def test_any_steps_leave_what_a_sorted_list_would_hold(steps: list[tuple[str, str, int]]) -> None:
    """Enough steps for dead entries to be swept out."""
    heap, naive = heap_of(), dict[str, tuple[int, int]]()

    for number, (step, name, timestamp) in enumerate(steps):
        match step:
            case "add":
                heap.add_or_update(info(name, timestamp))
                naive[name] = (timestamp, naive[name][1] if name in naive else number)
            case "remove":
                removed = heap.remove(f"default/{name}")
                assert (removed is None) == (naive.pop(name, None) is None)
            case _:
                popped = heap.pop()
                first = min(naive, key=naive.__getitem__, default=None)
                assert (popped.pod.name if popped else None) == first
                naive.pop(first or "", None)

        assert [entry.pod.name for entry in heap] == sorted(naive, key=naive.__getitem__)
        assert len(heap) == len(naive)


@pytest.mark.parametrize("is_removed", [True, False], ids=["come and go", "change often"])
def test_pods_that_come_and_go_or_change_leave_nothing_behind(is_removed: bool) -> None:
    """A heap through which many pods went is not larger than what is in it, within reason."""
    keys = weakref.WeakValueDictionary[int, Key]()

    def sort_key(info: QueuedPodInfo) -> Key:
        key = Key(info.timestamp)
        keys[id(key)] = key
        return key

    heap = PodHeap(sort_key)
    heap.add_or_update(info("stays", 0))

    for number in range(1_000):
        heap.add_or_update(info("goes", number))
        if is_removed:
            heap.remove("default/goes")

    assert len(keys) < 100

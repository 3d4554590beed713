"""Searches for devices that would hold the event loop for too long: they go on in a thread, and give the same
results.
"""

from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given, settings, strategies as st

from extender.engine.framework import LiveCluster
from extender.engine.framework.devices import MAY_DEFER, LongWork
from extender.engine.plugins.dynamic_resources import plugin as dynamic_resources
from extender.engine.plugins.dynamic_resources.plugin import DynamicResources
from extender.engine.snapshot import Snapshot
from extender.testing import make_framework, make_node, make_snapshot, refusals
from extender.values.config.plugin_args import DynamicResourcesArgs
from extender.values.golang.times import Duration
from extender.values.objects.devices import ResourceClaim, ResourceSlice
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.devices import (
    allocation_of,
    exactly,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
    pod_with,
    selecting,
    slice_of,
)
from tests.kit.examples import examples
from tests.kit.tables import cases

NODES = [make_node(f"n{number}") for number in range(6)]
CLASS = make_device_class("any", 'device.driver == "gpu.example.com"')
COSTLY = 'device.attributes["gpu.example.com"].model.matches("^a[0-9]{3}$")'
BROKEN = 'device.attributes["gpu.example.com"].color.matches("^a[0-9]{3}$")'


def snapshot_of(*objects: HasMetadata) -> Snapshot:
    return make_snapshot(*NODES, objects=[CLASS, *objects])


def deferring(snapshot: Snapshot) -> DynamicResources:
    return DynamicResources(handle=make_framework(live=cast("LiveCluster", snapshot), shared={MAY_DEFER: True}))


def outcome(plugin: DynamicResources, snapshots: Sequence[Snapshot], pod: Pod) -> tuple[object, int]:
    """(node -> reason, or the error; number of times that work was deferred). Cycle k sees snapshot k, and later cycles
    the last one.
    """
    search: LongWork | None = None
    for deferred in range(200):
        try:
            return refusals(plugin, snapshots[min(deferred, len(snapshots) - 1)], pod), deferred
        except LongWork as long:
            search = long
        except Exception as exc:
            return f"{type(exc).__name__}: {exc}", deferred
        search.work(lambda: True)
    raise AssertionError("there is no end to it")


def direct(snapshot: Snapshot, pod: Pod) -> object:
    return outcome(DynamicResources(), [snapshot], pod)[0]


def slices(models: Sequence[Sequence[str]]) -> list[ResourceSlice]:
    """One slice a node, with a device of each model."""
    return [
        slice_of(f"n{number}", *(make_device(f"g{place}", {"model": model}) for place, model in enumerate(of_node)))
        for number, of_node in enumerate(models)
    ]


@cases(
    "expression, in_thread",
    ("a cheap selector is evaluated at once", 'device.attributes["gpu.example.com"].model == "a100"', False),
    ("a costly one in the thread", COSTLY, True),
    ("one that fails there", BROKEN, True),
)
def test_expensive_search_is_deferred_to_a_thread_with_the_same_result(expression: str, in_thread: bool) -> None:
    snapshot = snapshot_of(
        *slices([["a100"]] * 3 + [["b100"]] * 3), make_claim("c", exactly(1, **selecting(expression)))
    )
    pod = pod_with("c")

    result, deferred = outcome(deferring(snapshot), [snapshot], pod)

    # On a busy machine the thread may need more than one slice of time.
    assert (deferred > 0) == in_thread
    assert result == direct(snapshot, pod)


def test_results_are_kept_for_the_next_pod() -> None:
    """A device that is known to match need not be evaluated again."""
    snapshot = snapshot_of(
        *slices([["a100"]] * 6), *(make_claim(name, exactly(1, **selecting(COSTLY))) for name in ("c", "d"))
    )
    plugin = deferring(snapshot)

    _, deferred = outcome(plugin, [snapshot], pod_with("c"))

    assert deferred > 0
    assert outcome(plugin, [snapshot], pod_with("d")) == ({}, 0)


def test_a_search_without_end_times_out() -> None:
    """The time in the thread counts as time of the Filter."""
    sides = [make_device(f"d{number:02}", {"numa": number // 2, "side": number % 2}) for number in range(32)]
    endless = make_claim(
        "c",
        *(exactly(1, f"r{number}") for number in range(16)),
        exactly(1, "last", **selecting("false")),
        constraints=[{"distinctAttribute": "gpu.example.com/numa"}],
    )
    snapshot = snapshot_of(make_slice(*sides, nodeName="n0"), endless)
    arguments = DynamicResourcesArgs(filter_timeout=Duration(10**9))
    plugin = DynamicResources(arguments, make_framework(live=cast("LiveCluster", snapshot), shared={MAY_DEFER: True}))

    result, deferred = outcome(plugin, [snapshot], pod_with("c"))

    assert result == "TimeoutError: node n0: timed out trying to allocate devices"
    assert 2 <= deferred <= 5  # slices of 0.25 s, 0.5 s, then what is left of a second


MODELS = st.lists(st.sampled_from(["a100", "a200", "b100"]), max_size=3)
REQUESTS = st.lists(
    st.tuples(st.integers(1, 2), st.sampled_from([COSTLY, "true", BROKEN, 'device.driver != ""'])),
    min_size=1,
    max_size=2,
)


def claims_of(requests: Sequence[Sequence[tuple[int, str]]]) -> list[ResourceClaim]:
    return [
        make_claim(
            f"c{number}",
            *(exactly(count, f"r{place}", **selecting(text)) for place, (count, text) in enumerate(of_claim)),
        )
        for number, of_claim in enumerate(requests)
    ]


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(MODELS, min_size=6, max_size=6),
    st.lists(REQUESTS, min_size=1, max_size=2),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=4),
    st.integers(0, 40),
)
def test_a_deferred_search_finds_what_a_direct_one_finds(
    models: list[list[str]], requests: list[list[tuple[int, str]]], held_devices: list[tuple[int, int]], steps: int
) -> None:
    """
    Other claims get devices between the cycles of the attempt; the result is that for the cluster as it is in the end.
    """
    claims, pod = claims_of(requests), pod_with(*(f"c{number}" for number in range(len(requests))))
    holders = [
        make_claim(f"held{place}", exactly(1), allocation=allocation_of({"device": f"g{device}", "pool": f"n{node}"}))
        for place, (node, device) in enumerate(held_devices)
    ]
    of_nodes = slices(models)
    snapshots = [snapshot_of(*of_nodes, *claims, *holders[:count]) for count in range(len(holders) + 1)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamic_resources, "LOOP_STEPS", steps)
        result, deferred = outcome(deferring(snapshots[0]), snapshots, pod)

    assert result == direct(snapshots[min(deferred, len(snapshots) - 1)], pod)

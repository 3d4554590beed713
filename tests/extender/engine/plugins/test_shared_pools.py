"""Pools that many nodes can use: one search serves all these nodes, and passes over what cannot be had. What is found
is the same.
"""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedDevices
from extender.engine.plugins.dynamic_resources.allocation import Allocator, NodeAllocation
from extender.engine.plugins.dynamic_resources.node_allocations import KnownContents, allocation_on
from extender.engine.plugins.dynamic_resources.pools import Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches, OutOfStepsError
from extender.testing import make_node
from extender.values.objects.decoding import convert
from extender.values.objects.devices import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from extender.values.objects.node import Node
from tests.kit.devices import (
    DRIVER,
    Manifest,
    allocation_of,
    everything,
    exactly,
    first_of,
    label_selector,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
)

NODES = [make_node(f"n{number}").label(zone="ab"[number % 2]).obj() for number in range(4)]


def configured(name: str) -> DeviceClass:
    config = [{"opaque": {"driver": DRIVER, "parameters": {"mode": "loud"}}}]
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": {"config": config}})


CLASSES = {
    "any": configured("any"),
    "big": make_device_class("big", f'device.attributes["{DRIVER}"].size > 1'),
    "same": configured("same"),
}
COUNTERS = {"name": "set", "counters": {"memory": {"value": "4"}}}


def a_device(rng: random.Random, name: str) -> dict[str, Any]:
    device: dict[str, Any] = {
        "name": name,
        "attributes": {"kind": {"string": rng.choice("xy")}},
        "capacity": {"memory": {"value": "2"}},
    }
    # A selector of the class `big` fails for a device without a size.
    if rng.random() < 0.9:
        device["attributes"]["size"] = {"int": rng.randint(1, 3)}
    if rng.random() < 0.3:
        device["allowMultipleAllocations"] = True
    if rng.random() < 0.2:
        device["taints"] = [{"key": "worn", "effect": "NoSchedule"}]
    if rng.random() < 0.1:
        device["bindsToNode"] = True
    return device


def a_pool(rng: random.Random, name: str) -> list[ResourceSlice]:
    """A pool for all nodes, for those of a zone or for one, whose devices may share counters, or each say which nodes
    they are for.
    """
    everywhere: Manifest = {"allNodes": True}
    in_a_zone, on_one = {"nodeSelector": label_selector("zone", rng.choice("ab"))}, {"nodeName": f"n{rng.randrange(4)}"}
    where = rng.choice([everywhere, everywhere, in_a_zone, on_one])
    devices = [a_device(rng, f"d{number}") for number in range(rng.randint(1, 4))]
    if rng.random() < 0.4:
        for device in devices:
            device["consumesCounters"] = [
                {"counterSet": "set", "counters": {"memory": {"value": str(rng.randint(1, 3))}}}
            ]
        shared = make_slice(name=f"{name}-counters", pool=name, of=2, **where, sharedCounters=[COUNTERS])
        return [shared, make_slice(*devices, name=name, pool=name, of=2, **where)]
    if rng.random() < 0.2:
        own_devices = [device | {"allNodes": True} for device in devices]
        own_devices[0] = devices[0] | {"nodeName": f"n{rng.randrange(4)}"}
        return [make_slice(*own_devices, name=name, pool=name, perDeviceNodeSelection=True)]
    return [make_slice(*devices, name=name, pool=name, **where)]


def a_claim(rng: random.Random, name: str) -> ResourceClaim:
    """One of a few contents, so that later claims meet what earlier ones left."""
    match = {"matchAttribute": f"{DRIVER}/kind"}
    tolerant: Manifest = {"tolerations": [{"key": "worn", "operator": "Exists"}]}
    little: Manifest = {"capacity": {"requests": {"memory": "1"}}}
    contents: list[tuple[list[Manifest], list[Manifest]]] = [
        ([exactly(1)], []),
        ([exactly(2)], [match]),
        ([exactly(3, **tolerant)], [match]),
        ([exactly(1, "a", "big", **tolerant), exactly(1, "b", **little)], [{**match, "requests": ["b"]}]),
        ([first_of(exactly(4, "many"), exactly(1, "one", "same"))], []),
        ([exactly(1, "a", "any"), exactly(1, "b", "any"), exactly(1, "c", "same")], []),
        ([exactly(1, "a", "any"), exactly(1, "b", "same"), exactly(1, "c", "same")], []),
        ([everything(**tolerant)], []),
        ([exactly(1, adminAccess=True)], []),
    ]
    requests, constraints = rng.choice(contents)
    return make_claim(name, *requests, constraints=constraints)


Told = list[tuple[tuple[AllocationResult, ...], str, str]]


def allocator_of(
    claim: ResourceClaim, slices: Slices, followed: AllocatedDevices, holders: Sequence[ResourceClaim] = ()
) -> Allocator:
    return Allocator([claim], CLASSES, slices, followed.held_by(holders), Matches())


def allocations(
    slices: Slices,
    contents: KnownContents,
    followed: AllocatedDevices,
    holders: Sequence[ResourceClaim],
    claim: ResourceClaim,
    nodes: Sequence[Node] = NODES,
) -> Told:
    """What is found on each node."""
    allocator = allocator_of(claim, slices, followed, holders)
    known_here = contents.of(allocator)
    results: list[NodeAllocation] = []
    for node in nodes:
        pools = slices.pools_for(node)
        result = known_here.on(node, pools)
        if result is None:
            result = allocation_on(node, allocator, Allowance())
            known_here.remember(node, pools, result)
        results.append(result)
    return [(result.allocations, result.refusal, str(result.error)) for result in results]


@pytest.mark.parametrize("seed", range(60))
def test_remembered_results_of_earlier_searches_change_no_allocation(seed: int) -> None:
    rng = random.Random(seed)
    slices = Slices([one for number in range(6) for one in a_pool(rng, f"p{number}")])
    contents, followed, holders = KnownContents(), AllocatedDevices(), list[ResourceClaim]()
    for number in range(50):
        claim = a_claim(rng, f"c{number}")
        results = allocations(slices, contents, followed, holders, claim)

        assert results == [
            result
            for node in NODES
            for result in allocations(slices, KnownContents(), AllocatedDevices(), holders, claim, [node])
        ]

        chosen = [result[0] for result in results if result[0]]
        if chosen and rng.random() < 0.7:
            shared = [
                {
                    "device": result.device,
                    "pool": result.pool,
                    "adminAccess": result.admin_access,
                    "shareID": f"s{number}" if result.share_id is not None else None,
                    "consumedCapacity": result.consumed_capacity,
                }
                for result in rng.choice(chosen)[0].devices.results
            ]
            holders.append(make_claim(f"h{number}", allocation=allocation_of(*shared)))
        elif holders:
            holders.pop(rng.randrange(len(holders)))


def shared_pools(number: int) -> Slices:
    return Slices([make_slice("d", name=f"p{place}", pool=f"p{place}", allNodes=True) for place in range(number)])


def held_in(pool: str) -> ResourceClaim:
    return make_claim(pool, allocation=allocation_of({"device": "d", "pool": pool}))


def is_known(
    contents: KnownContents, slices: Slices, followed: AllocatedDevices, holders: Sequence[ResourceClaim], node: Node
) -> bool:
    allocator = allocator_of(make_claim("other", exactly()), slices, followed, holders)
    return contents.of(allocator).on(node, slices.pools_for(node)) is not None


def test_result_in_pools_for_all_nodes_is_remembered_for_every_node() -> None:
    slices, contents, followed = shared_pools(3), KnownContents(), AllocatedDevices()
    allocator = allocator_of(make_claim("c", exactly()), slices, followed)
    pools = slices.pools_for(NODES[0])
    contents.of(allocator).remember(NODES[0], pools, allocation_on(NODES[0], allocator, Allowance()))

    assert all(is_known(contents, slices, followed, [], node) for node in NODES)
    # The search ended in the first pool.
    assert all(is_known(contents, slices, followed, [held_in("p1")], node) for node in NODES)
    assert not any(is_known(contents, slices, followed, [held_in("p0")], node) for node in NODES)


def test_a_node_with_devices_of_its_own_is_not_refused_with_the_others() -> None:
    slices = Slices(
        [make_slice("d", name="s", pool="p", allNodes=True), make_slice("own", name="n1", pool="q", nodeName="n1")]
    )

    results = allocations(slices, KnownContents(), AllocatedDevices(), [held_in("p")], make_claim("c", exactly()))

    assert [bool(result[0]) for result in results] == [False, True, False, False]


def test_a_device_that_cannot_be_judged_is_an_error_for_the_search_that_comes_to_it() -> None:
    """
    The first search has taken that device for another request when it looks for a big one; the second one has not.
    """
    small, large = (make_device("d", {"size": size}) for size in (1, 2))
    devices: dict[str, Manifest | str] = {"p0": small, "p1": "d", "p2": large}
    slices = Slices([make_slice(device, name=pool, pool=pool, allNodes=True) for pool, device in devices.items()])
    contents, followed = KnownContents(), AllocatedDevices()
    claim = make_claim("c", exactly(1, "some"), exactly(1, "large", "big"))

    first, second = (allocations(slices, contents, followed, holders, claim) for holders in ([held_in("p0")], []))

    assert [result.pool for result in first[0][0][0].devices.results] == ["p1", "p2"]
    assert "class big: selector #0: CEL runtime error" in second[0][2]


def test_a_search_passes_over_pools_that_have_nothing_for_the_request() -> None:
    """The steps of a later search do not grow with the number of such pools."""
    devices = [make_device("d", {"size": size}) for size in [1] * 300 + [2]]
    pools = [
        make_slice(device, name=f"s{place}", pool=f"p{place:03}", allNodes=True) for place, device in enumerate(devices)
    ]
    slices = Slices(pools)
    contents, followed = KnownContents(), AllocatedDevices()

    def searched(allowance: Allowance) -> NodeAllocation:
        allocator = allocator_of(make_claim("c", exactly(1, "r", "big")), slices, followed)
        contents.of(allocator)
        return allocation_on(NODES[0], allocator, allowance)

    with pytest.raises(OutOfStepsError):
        searched(Allowance(steps=1000))
    searched(Allowance())

    assert searched(Allowance(steps=1000)).allocations[0].devices.results[0].pool == "p300"


def test_devices_of_classes_that_say_the_same_are_found_once() -> None:
    slices, contents, followed = shared_pools(1), KnownContents(), AllocatedDevices()

    def was_found_before(device_class: str) -> bool:
        allocator = allocator_of(make_claim("c", exactly(1, "r", device_class)), slices, followed)
        pools, known_here = slices.pools_for(NODES[0]), contents.of(allocator)
        was_known = known_here.on(NODES[0], pools) is not None
        known_here.remember(NODES[0], pools, allocation_on(NODES[0], allocator, Allowance()))
        return was_known

    assert [was_found_before("any"), was_found_before("same"), was_found_before("big")] == [False, True, False]

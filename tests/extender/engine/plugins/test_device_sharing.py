"""Devices that are tainted, partitioned, or shared: taints, counters, capacities."""

from typing import Any

import pytest

from extender.engine.plugins.dynamic_resources.device_features import DeviceFeatures
from extender.engine.plugins.dynamic_resources.pools import NodeAllocationError
from extender.engine.plugins.dynamic_resources.selection import Allowance
from extender.values.objects.devices import ResourceClaim
from tests.extender.engine.plugins.device_allocations import NODE, allocated, allocator, holding
from tests.kit.devices import Manifest, everything, exactly, make_claim, make_device, make_slice
from tests.kit.tables import cases

MATCH = {"matchAttribute": "gpu.example.com/numa"}


def taint(effect: str) -> Manifest:
    return {"key": "broken", "value": "fan", "effect": effect}


@cases(
    "effect, tolerations, is_allocated",
    ("tainted", "NoSchedule", [], False),
    ("tainted worse", "NoExecute", [], False),
    ("only a remark", "None", [], True),
    ("tolerated by key", "NoSchedule", [{"key": "broken", "operator": "Exists"}], True),
    ("anything is tolerated", "NoSchedule", [{"operator": "Exists"}], True),
    ("tolerated by value", "NoSchedule", [{"key": "broken", "value": "fan"}], True),
    ("another value", "NoSchedule", [{"key": "broken", "operator": "Equal", "value": "led"}], False),
    ("another key", "NoSchedule", [{"key": "dusty", "operator": "Exists"}], False),
    ("another effect", "NoSchedule", [{"key": "broken", "operator": "Exists", "effect": "NoExecute"}], False),
    ("an unknown operator", "NoSchedule", [{"key": "broken", "operator": "Near"}], False),
)
def test_tainted_devices(effect: str, tolerations: list[Manifest], is_allocated: bool) -> None:
    claim = make_claim("c", exactly(1, tolerations=tolerations))
    allocation = allocated(claim, slices=[make_slice(make_device("a", taints=[taint(effect)]))])

    assert (allocation is not None) == is_allocated


def counters(**amounts: str | int) -> Manifest:
    return {name: {"value": amount} for name, amount in amounts.items()}


def partition(name: str, memory: str, **more: Any) -> Manifest:
    return make_device(name, consumesCounters=[{"counterSet": "gpu", "counters": counters(memory=memory)}], **more)


SHARED = make_slice(
    name="counters", of=2, sharedCounters=[{"name": "gpu", "counters": counters(memory="40Gi")}], allNodes=True
)


@cases(
    "holders, count, devices",
    ("the whole", [], 1, ["r=whole"]),
    ("or two halves", [], 2, ["r=half-0", "r=half-1"]),
    ("not more than there is", [], 3, None),
    ("half of it is in use", [holding("half-0")], 1, ["r=half-1"]),
    ("all of it is in use", [holding("whole")], 1, None),
)
def test_partitions(holders: list[ResourceClaim], count: int, devices: list[str] | None) -> None:
    """Partitions of a physical device take from counters that they share."""
    partitions = make_slice(partition("whole", "40Gi"), partition("half-0", "20Gi"), partition("half-1", "20Gi"), of=2)

    expected = None if devices is None else [devices]
    assert allocated(make_claim("c", exactly(count)), slices=[SHARED, partitions], holders=holders) == expected


@cases(
    "refused", ("tainted", {"taints": [taint("NoSchedule")]}), ("by a constraint", {"attributes": {"numa": {"int": 7}}})
)
def test_a_refused_partition_takes_nothing(refused: Manifest) -> None:
    """What a device would have consumed is left when it cannot be had."""
    partitions = make_slice(
        {**partition("whole", "40Gi"), **refused}, partition("half", "20Gi", attributes={"numa": 1}), of=2
    )
    other = make_slice(make_device("first", {"numa": 1}), pool="before")
    claim = make_claim("c", exactly(1, "x"), exactly(1, "y"), constraints=[MATCH])

    assert allocated(claim, slices=[SHARED, partitions, other]) == [["x=first", "y=half"]]


@cases(
    "shared",
    ("no such set", []),
    ("no such counter", [{"name": "gpu", "counters": counters(cores=8)}]),
    ("the set twice", [{"name": "gpu", "counters": counters(memory=1)}] * 2),
)
def test_missing_counters(shared: list[Manifest]) -> None:
    """A pool whose devices consume unknown counters is invalid."""
    other_sets = [{"name": "other", "counters": counters(x=1)}]
    slices = [
        make_slice(name="counters", of=2, sharedCounters=shared or other_sets),
        make_slice(partition("a", "1Gi"), of=2),
    ]

    with pytest.raises(NodeAllocationError):
        allocated(make_claim("c", exactly(1)), slices=slices)


@pytest.mark.parametrize(("is_on", "devices"), [(True, [["r=half-0"]]), (False, [["r=plain"]])])
def test_partitions_count_only_while_their_gate_is_on(is_on: bool, devices: list[list[str]]) -> None:
    """DRAPartitionableDevices. The slice with the counters is still one of the pool, which is complete with it."""
    slices = [SHARED, make_slice(partition("half-0", "20Gi"), "plain", of=2)]

    assert allocated(make_claim("c", exactly(1)), slices=slices, features=DeviceFeatures(partitions=is_on)) == devices


@pytest.mark.parametrize(("is_on", "devices"), [(True, [["r=here"]]), (False, None)])
def test_slices_that_select_nodes_for_each_device_count_only_while_the_gate_is_on(
    is_on: bool, devices: list[list[str]] | None
) -> None:
    """DRAPartitionableDevices."""
    slices = [make_slice(make_device("here", nodeName="n"), perDeviceNodeSelection=True)]

    assert allocated(make_claim("c", exactly(1)), slices=slices, features=DeviceFeatures(partitions=is_on)) == devices


@pytest.mark.parametrize(("is_on", "devices"), [(True, [["r=slow"]]), (False, [["r=quick"]])])
def test_devices_that_take_time_count_only_while_their_gate_is_on(is_on: bool, devices: list[list[str]]) -> None:
    """DRADeviceBindingConditions."""
    slices = [make_slice(make_device("slow", bindingConditions=["ready"]), "quick")]
    features = DeviceFeatures(binding_conditions=is_on)

    assert allocated(make_claim("c", exactly(1)), slices=slices, features=features) == devices


def shared_device(name: str = "nic", **policy: Any) -> Manifest:
    capacity = {"bandwidth": {"value": "10G", **({"requestPolicy": policy} if policy else {})}}
    return make_device(name, capacity=capacity, allowMultipleAllocations=True)


def bandwidth(amount: str, name: str = "r") -> Manifest:
    return exactly(1, name, capacity={"requests": {"bandwidth": amount}})


def bandwidths(*what: Any, **options: Any) -> list[Any] | None:
    """What the claim gets of each device, if it gets them."""
    allocations = allocator(*what, **options).allocate(NODE, Allowance()).allocations
    if not allocations:
        return None
    return [result.consumed_capacity["bandwidth"] for result in allocations[0].devices.results]


def using(amount: str) -> ResourceClaim:
    return holding({"device": "nic", "shareID": "s", "consumedCapacity": {"bandwidth": amount}})


@cases(
    "holders, requests, consumed",
    ("a part", [], [bandwidth("4G")], [4]),
    ("two parts", [], [bandwidth("4G", "x"), bandwidth("6G", "y")], [4, 6]),
    ("more than there is", [], [bandwidth("4G", "x"), bandwidth("7G", "y")], None),
    ("everything, if nothing is said", [], [exactly(1)], [10]),
    ("what others leave", [using("6G")], [bandwidth("4G")], [4]),
    ("others leave too little", [using("6G")], [bandwidth("5G")], None),
    ("not everything is left", [using("6G")], [exactly(1)], None),
    ("someone has it for himself", [holding("nic")], [bandwidth("1G")], None),
    ("a capacity that it has not", [], [exactly(1, capacity={"requests": {"ports": 1}})], None),
    ("all devices, and not everything of one is left", [using("6G")], [everything()], None),
    ("enough of all", [using("6G")], [everything(capacity={"requests": {"bandwidth": "4G"}})], [4]),
)
def test_shared_devices(holders: list[ResourceClaim], requests: list[Manifest], consumed: list[int] | None) -> None:
    """A device that allows it is shared until its capacity is used up."""
    amounts = bandwidths([make_claim("c", *requests)], [make_slice(shared_device())], holders)

    assert amounts == (None if consumed is None else [str(giga * 10**9) for giga in consumed])


def test_all_devices_are_not_those_of_which_enough_is_left() -> None:
    """kubernetes#140769. One that is too small from the start is none of them."""
    devices = make_slice(
        shared_device(), shared_device("other"), make_device("small", capacity={"bandwidth": {"value": "1G"}})
    )
    claim = make_claim("c", everything(capacity={"requests": {"bandwidth": "5G"}}))

    assert allocated(claim, slices=[devices]) == [["r=nic", "r=other"]]
    assert allocated(claim, slices=[devices], holders=[using("6G")]) is None


QUALIFIED = "gpu.example.com/bandwidth"


@cases(
    "published, requested, is_found",
    ("asked for by the qualified name", "bandwidth", QUALIFIED, True),
    ("published by the qualified name", QUALIFIED, "bandwidth", True),
    ("both", QUALIFIED, QUALIFIED, True),
    ("that of another driver", "bandwidth", "other.example.com/bandwidth", False),
    ("published in another domain", "other.example.com/bandwidth", "bandwidth", False),
    ("in that domain", "other.example.com/bandwidth", "other.example.com/bandwidth", True),
)
def test_capacity_has_a_short_and_a_qualified_name(published: str, requested: str, is_found: bool) -> None:
    """kubernetes#142202. The result has the name that the driver published."""
    device = make_device("nic", capacity={published: {"value": "10G"}}, allowMultipleAllocations=True)
    claim = make_claim("c", exactly(1, capacity={"requests": {requested: "4G"}}))

    allocations = allocator([claim], [make_slice(device)]).allocate(NODE, Allowance()).allocations

    assert bool(allocations) == is_found
    for allocation in allocations:
        assert [result.consumed_capacity for result in allocation.devices.results] == [{published: "4000000000"}]


@pytest.mark.parametrize("held_as", ["bandwidth", QUALIFIED])
@pytest.mark.parametrize("published", ["bandwidth", QUALIFIED])
def test_what_others_consume_counts_by_either_name(held_as: str, published: str) -> None:
    """Also after a driver has published the other one."""
    device = make_device("nic", capacity={published: {"value": "10G"}}, allowMultipleAllocations=True)
    holder = holding({"device": "nic", "shareID": "s", "consumedCapacity": {held_as: "6G"}})

    def is_left(amount: str) -> bool:
        return allocated(make_claim("c", bandwidth(amount)), slices=[make_slice(device)], holders=[holder]) is not None

    assert (is_left("4G"), is_left("5G")) == (True, False)


@cases(
    "policy, amount, consumed",
    ("the default", {"default": "2G"}, None, "2000000000"),
    ("the next valid value", {"default": "2G", "validValues": ["2G", "5G"]}, "3G", "5000000000"),
    ("more than any valid value", {"validValues": ["2G", "5G"]}, "6G", None),
    ("at least the minimum", {"validRange": {"min": "1G"}}, "100M", "1000000000"),
    ("rounded up to a step", {"validRange": {"min": "1G", "step": "2G"}}, "3500M", "5000000000"),
    ("exactly a step", {"validRange": {"min": "1G", "step": "2G"}}, "3G", "3000000000"),
    ("beyond the maximum", {"validRange": {"min": "1G", "max": "4G"}}, "4500M", None),
    ("between two steps, without a minimum to round from", {"validRange": {"max": "4G", "step": "2G"}}, "3G", None),
)
def test_amounts_of_capacity(policy: Manifest, amount: str | None, consumed: str | None) -> None:
    """A device may give its capacity in certain amounts only; requests are rounded up to them."""
    request = exactly(1) if amount is None else bandwidth(amount)
    amounts = bandwidths([make_claim("c", request)], [make_slice(shared_device(**policy))])

    assert amounts == (None if consumed is None else [consumed])


@cases(
    "policy, amount, in_wholes, in_fractions",
    ("rounded up to a step", {"min": "500m", "step": "250m"}, "600m", "1", "750m"),
    ("at least the minimum", {"min": "500m", "step": "250m"}, "100m", "500m", "500m"),
    ("a fraction anywhere is enough", {"min": "1", "step": "500m", "max": "3"}, "1100m", "2", "1500m"),
    ("without any, wholes count", {"min": "1", "step": "2"}, "1500m", "3", "3"),
)
def test_ranges_with_fractions_count_in_thousandths_while_their_gate_is_on(
    policy: Manifest, amount: str, in_wholes: str, in_fractions: str
) -> None:
    """DRAFractionalCapacityRange."""
    consumed = []
    for is_on in (False, True):
        claims, slices = [make_claim("c", bandwidth(amount))], [make_slice(shared_device(validRange=policy))]
        consumed.append(bandwidths(claims, slices, features=DeviceFeatures(fractional_ranges=is_on)))

    assert consumed == [[in_wholes], [in_fractions]]


def test_requests_for_a_minimum_capacity() -> None:
    """A device that is not shared is given as a whole, to requests that ask for no more than it has."""
    devices = [
        make_device(name, capacity={"memory": {"value": size}}) for name, size in (("small", "10Gi"), ("large", "80Gi"))
    ]
    minimum = {"requests": {"memory": "40Gi"}}

    for request in (exactly(1, capacity=minimum), everything(capacity=minimum)):
        assert allocated(make_claim("c", request), slices=[make_slice(*devices)]) == [["r=large"]]

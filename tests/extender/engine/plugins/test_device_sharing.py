"""Devices that are tainted, partitioned, or shared: taints, counters, capacities."""

from typing import Any

import pytest

from extender.engine.plugins.dynamic_resources.device_features import DeviceFeatures
from extender.engine.plugins.dynamic_resources.pools import NodeAllocationError
from extender.engine.plugins.dynamic_resources.selection import Allowance
from extender.values.objects.devices import ResourceClaim
from tests.extender.engine.plugins.device_allocations import NODE, allocated, allocator, holding
from tests.kit.devices import Manifest, everything, exactly, make_claim, make_device, make_slice

MATCH = {"matchAttribute": "gpu.example.com/numa"}


def taint(effect: str) -> Manifest:
    return {"key": "broken", "value": "fan", "effect": effect}


@pytest.mark.parametrize(
    ("effect", "tolerations", "is_allocated"),
    [
        pytest.param("NoSchedule", [], False, id="tainted"),
        pytest.param("NoExecute", [], False, id="tainted worse"),
        pytest.param("None", [], True, id="only a remark"),
        pytest.param("NoSchedule", [{"key": "broken", "operator": "Exists"}], True, id="tolerated by key"),
        pytest.param("NoSchedule", [{"operator": "Exists"}], True, id="anything is tolerated"),
        pytest.param("NoSchedule", [{"key": "broken", "value": "fan"}], True, id="tolerated by value"),
        pytest.param("NoSchedule", [{"key": "broken", "operator": "Equal", "value": "led"}], False, id="another value"),
        pytest.param("NoSchedule", [{"key": "dusty", "operator": "Exists"}], False, id="another key"),
        pytest.param(
            "NoSchedule", [{"key": "broken", "operator": "Exists", "effect": "NoExecute"}], False, id="another effect"
        ),
        pytest.param("NoSchedule", [{"key": "broken", "operator": "Near"}], False, id="an unknown operator"),
    ],
)
def test_tainted_devices(effect: str, tolerations: list[Manifest], is_allocated: bool) -> None:
    wanted = make_claim("c", exactly(1, tolerations=tolerations))
    found = allocated(wanted, slices=[make_slice(make_device("a", taints=[taint(effect)]))])

    assert (found is not None) == is_allocated


def counters(**amounts: str | int) -> Manifest:
    return {name: {"value": amount} for name, amount in amounts.items()}


def partition(name: str, memory: str, **more: Any) -> Manifest:
    return make_device(name, consumesCounters=[{"counterSet": "gpu", "counters": counters(memory=memory)}], **more)


SHARED = make_slice(
    name="counters", of=2, sharedCounters=[{"name": "gpu", "counters": counters(memory="40Gi")}], allNodes=True
)


@pytest.mark.parametrize(
    ("held", "count", "devices"),
    [
        pytest.param([], 1, ["r=whole"], id="the whole"),
        pytest.param([], 2, ["r=half-0", "r=half-1"], id="or two halves"),
        pytest.param([], 3, None, id="not more than there is"),
        pytest.param([holding("half-0")], 1, ["r=half-1"], id="half of it is in use"),
        pytest.param([holding("whole")], 1, None, id="all of it is in use"),
    ],
)
def test_partitions(held: list[ResourceClaim], count: int, devices: list[str] | None) -> None:
    """Partitions of a physical device take from counters that they share."""
    partitions = make_slice(partition("whole", "40Gi"), partition("half-0", "20Gi"), partition("half-1", "20Gi"), of=2)

    expected = None if devices is None else [devices]
    assert allocated(make_claim("c", exactly(count)), slices=[SHARED, partitions], held=held) == expected


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param({"taints": [taint("NoSchedule")]}, id="tainted"),
        pytest.param({"attributes": {"numa": {"int": 7}}}, id="by a constraint"),
    ],
)
def test_a_refused_partition_takes_nothing(refused: Manifest) -> None:
    """What a device would have consumed is left when it cannot be had."""
    some = make_slice(
        {**partition("whole", "40Gi"), **refused}, partition("half", "20Gi", attributes={"numa": 1}), of=2
    )
    other = make_slice(make_device("first", {"numa": 1}), pool="before")
    wanted = make_claim("c", exactly(1, "x"), exactly(1, "y"), constraints=[MATCH])

    assert allocated(wanted, slices=[SHARED, some, other]) == [["x=first", "y=half"]]


@pytest.mark.parametrize(
    "shared",
    [
        pytest.param([], id="no such set"),
        pytest.param([{"name": "gpu", "counters": counters(cores=8)}], id="no such counter"),
        pytest.param([{"name": "gpu", "counters": counters(memory=1)}] * 2, id="the set twice"),
    ],
)
def test_missing_counters(shared: list[Manifest]) -> None:
    """A pool whose devices consume unknown counters is invalid."""
    others = [{"name": "other", "counters": counters(x=1)}]
    slices = [
        make_slice(name="counters", of=2, sharedCounters=shared or others),
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
    allocations = allocator(*what, **options).allocate(NODE, Allowance()).of_claims
    if allocations is None:
        return None
    return [result.consumed_capacity["bandwidth"] for result in allocations[0].devices.results]


def using(amount: str) -> ResourceClaim:
    return holding({"device": "nic", "shareID": "s", "consumedCapacity": {"bandwidth": amount}})


@pytest.mark.parametrize(
    ("held", "requests", "consumed"),
    [
        pytest.param([], [bandwidth("4G")], [4], id="a part"),
        pytest.param([], [bandwidth("4G", "x"), bandwidth("6G", "y")], [4, 6], id="two parts"),
        pytest.param([], [bandwidth("4G", "x"), bandwidth("7G", "y")], None, id="more than there is"),
        pytest.param([], [exactly(1)], [10], id="everything, if nothing is said"),
        pytest.param([using("6G")], [bandwidth("4G")], [4], id="what others leave"),
        pytest.param([using("6G")], [bandwidth("5G")], None, id="others leave too little"),
        pytest.param([using("6G")], [exactly(1)], None, id="not everything is left"),
        pytest.param([holding("nic")], [bandwidth("1G")], None, id="someone has it for himself"),
        pytest.param([], [exactly(1, capacity={"requests": {"ports": 1}})], None, id="a capacity that it has not"),
        pytest.param([using("6G")], [everything()], None, id="all devices, and not everything of one is left"),
        pytest.param([using("6G")], [everything(capacity={"requests": {"bandwidth": "4G"}})], [4], id="enough of all"),
    ],
)
def test_shared_devices(held: list[ResourceClaim], requests: list[Manifest], consumed: list[int] | None) -> None:
    """A device that allows it is shared until its capacity is used up."""
    found = bandwidths([make_claim("c", *requests)], [make_slice(shared_device())], held)

    assert found == (None if consumed is None else [str(giga * 10**9) for giga in consumed])


def test_all_devices_are_not_those_of_which_enough_is_left() -> None:
    """kubernetes#140769. One that is too small from the start is none of them."""
    some = make_slice(
        shared_device(), shared_device("other"), make_device("small", capacity={"bandwidth": {"value": "1G"}})
    )
    wanted = make_claim("c", everything(capacity={"requests": {"bandwidth": "5G"}}))

    assert allocated(wanted, slices=[some]) == [["r=nic", "r=other"]]
    assert allocated(wanted, slices=[some], held=[using("6G")]) is None


QUALIFIED = "gpu.example.com/bandwidth"


@pytest.mark.parametrize(
    ("published", "asked", "is_found"),
    [
        pytest.param("bandwidth", QUALIFIED, True, id="asked for by the qualified name"),
        pytest.param(QUALIFIED, "bandwidth", True, id="published by the qualified name"),
        pytest.param(QUALIFIED, QUALIFIED, True, id="both"),
        pytest.param("bandwidth", "other.example.com/bandwidth", False, id="that of another driver"),
        pytest.param("other.example.com/bandwidth", "bandwidth", False, id="published in another domain"),
        pytest.param("other.example.com/bandwidth", "other.example.com/bandwidth", True, id="in that domain"),
    ],
)
def test_capacity_has_a_short_and_a_qualified_name(published: str, asked: str, is_found: bool) -> None:
    """kubernetes#142202. The result has the name that the driver published."""
    device = make_device("nic", capacity={published: {"value": "10G"}}, allowMultipleAllocations=True)
    wanted = make_claim("c", exactly(1, capacity={"requests": {asked: "4G"}}))

    allocations = allocator([wanted], [make_slice(device)]).allocate(NODE, Allowance()).of_claims

    assert (allocations is not None) == is_found
    for allocation in allocations or ():
        assert [result.consumed_capacity for result in allocation.devices.results] == [{published: "4000000000"}]


@pytest.mark.parametrize("held_as", ["bandwidth", QUALIFIED])
@pytest.mark.parametrize("published", ["bandwidth", QUALIFIED])
def test_what_others_consume_counts_by_either_name(held_as: str, published: str) -> None:
    """Also after a driver has published the other one."""
    device = make_device("nic", capacity={published: {"value": "10G"}}, allowMultipleAllocations=True)
    held = holding({"device": "nic", "shareID": "s", "consumedCapacity": {held_as: "6G"}})

    def found(amount: str) -> bool:
        return allocated(make_claim("c", bandwidth(amount)), slices=[make_slice(device)], held=[held]) is not None

    assert (found("4G"), found("5G")) == (True, False)


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        pytest.param({"default": "2G"}, None, "2000000000", id="the default"),
        pytest.param({"default": "2G", "validValues": ["2G", "5G"]}, "3G", "5000000000", id="the next valid value"),
        pytest.param({"validValues": ["2G", "5G"]}, "6G", None, id="more than any valid value"),
        pytest.param({"validRange": {"min": "1G"}}, "100M", "1000000000", id="at least the minimum"),
        pytest.param({"validRange": {"min": "1G", "step": "2G"}}, "3500M", "5000000000", id="rounded up to a step"),
        pytest.param({"validRange": {"min": "1G", "step": "2G"}}, "3G", "3000000000", id="exactly a step"),
        pytest.param({"validRange": {"min": "1G", "max": "4G"}}, "4500M", None, id="beyond the maximum"),
        pytest.param(
            {"validRange": {"max": "4G", "step": "2G"}},
            "3G",
            None,
            id="between two steps, without a minimum to round from",
        ),
    ],
)
def test_amounts_of_capacity(policy: Manifest, asked: str | None, consumed: str | None) -> None:
    """A device may give its capacity in certain amounts only; requests are rounded up to them."""
    wanted = exactly(1) if asked is None else bandwidth(asked)
    found = bandwidths([make_claim("c", wanted)], [make_slice(shared_device(**policy))])

    assert found == (None if consumed is None else [consumed])


@pytest.mark.parametrize(
    ("policy", "asked", "in_wholes", "in_fractions"),
    [
        pytest.param({"min": "500m", "step": "250m"}, "600m", "1", "750m", id="rounded up to a step"),
        pytest.param({"min": "500m", "step": "250m"}, "100m", "500m", "500m", id="at least the minimum"),
        pytest.param(
            {"min": "1", "step": "500m", "max": "3"}, "1100m", "2", "1500m", id="a fraction anywhere is enough"
        ),
        pytest.param({"min": "1", "step": "2"}, "1500m", "3", "3", id="without any, wholes count"),
    ],
)
def test_ranges_with_fractions_count_in_thousandths_while_their_gate_is_on(
    policy: Manifest, asked: str, in_wholes: str, in_fractions: str
) -> None:
    """DRAFractionalCapacityRange."""
    told = []
    for is_on in (False, True):
        claims, slices = [make_claim("c", bandwidth(asked))], [make_slice(shared_device(validRange=policy))]
        told.append(bandwidths(claims, slices, features=DeviceFeatures(fractional_ranges=is_on)))

    assert told == [[in_wholes], [in_fractions]]


def test_requests_for_a_minimum_capacity() -> None:
    """A device that is not shared is given as a whole, to requests that ask for no more than it has."""
    some = [
        make_device(name, capacity={"memory": {"value": size}}) for name, size in (("small", "10Gi"), ("large", "80Gi"))
    ]
    minimum = {"requests": {"memory": "40Gi"}}

    for wanted in (exactly(1, capacity=minimum), everything(capacity=minimum)):
        assert allocated(make_claim("c", wanted), slices=[make_slice(*some)]) == [["r=large"]]

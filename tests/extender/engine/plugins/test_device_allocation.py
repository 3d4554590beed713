"""Which devices the requests of claims get on a node: classes, counts, alternatives, constraints; and invalid
claims.
"""

import pytest

from extender.engine.plugins.dynamic_resources.pools import AllocationError, NodeAllocationError
from extender.engine.plugins.dynamic_resources.selection import Allowance, TimedOutError
from extender.values.objects.devices import ResourceClaim, ResourceSlice
from tests.extender.engine.plugins.device_allocations import NODE, allocated, allocator, holding
from tests.kit.devices import (
    Manifest,
    everything,
    exactly,
    first_of,
    label_selector,
    make_claim,
    make_device,
    make_slice,
    selecting,
)
from tests.kit.tables import cases


@cases(
    "request_, devices",
    ("the first one", exactly(1), ["r=a"]),
    ("two", exactly(2), ["r=a", "r=b"]),
    ("more than there are", exactly(4), None),
    ("all of them", everything(), ["r=a", "r=b", "r=c"]),
    ("of a class", exactly(1, device_class="big"), ["r=b"]),
    ("all of a class", everything(device_class="big"), ["r=b", "r=c"]),
    ("selected", exactly(1, **selecting('device.attributes["gpu.example.com"].size == 3')), ["r=c"]),
    (
        "by class and request",
        exactly(1, device_class="big", **selecting('device.attributes["gpu.example.com"].size < 2')),
        None,
    ),
    ("all of none is not enough", everything(**selecting("false")), None),
    ("one, where the API server has filled nothing in", {"name": "r", "exactly": {"deviceClassName": "any"}}, ["r=a"]),
    ("the first that can be had", first_of(exactly(4, "x"), exactly(2, "y"), exactly(1, "z")), ["r/y=a", "r/y=b"]),
    ("none of the alternatives", first_of(exactly(4, "x"), exactly(5, "y")), None),
    (
        "all, if there are",
        first_of(everything("x", **selecting("false")), everything("y")),
        ["r/y=a", "r/y=b", "r/y=c"],
    ),
)
def test_one_request(request_: Manifest, devices: list[str] | None) -> None:
    """A request gets the first devices that its class and its selectors match, or the whole claim gets none."""
    sizes = [make_device(name, attributes={"size": size}) for name, size in (("a", 1), ("b", 2), ("c", 3))]

    assert allocated(make_claim("c", request_), slices=[make_slice(*sizes)]) == (None if devices is None else [devices])


@cases(
    "holders, request_, devices",
    ("a device in use", [holding("a")], exactly(1), ["r=b"]),
    ("all in use", [holding("a"), holding("b", "c")], exactly(1), None),
    ("all means those in use, too", [holding("a")], everything(), None),
    ("used for administration only", [holding({"device": "a", "adminAccess": True})], exactly(1), ["r=a"]),
    ("another driver's device", [holding({"device": "a", "driver": "other.example.com"})], exactly(1), ["r=a"]),
    ("another pool's device", [holding({"device": "a", "pool": "other"})], exactly(1), ["r=a"]),
    ("an administrator may share", [holding("a", "b")], exactly(2, adminAccess=True), ["r=a", "r=b"]),
)
def test_devices_in_use(holders: list[ResourceClaim], request_: Manifest, devices: list[str] | None) -> None:
    """A device belongs to one claim, except that administrators may look at it."""
    assert allocated(make_claim("c", request_), slices=[make_slice("a", "b", "c")], holders=holders) == (
        None if devices is None else [devices]
    )


def test_claims_do_not_get_the_same_device() -> None:
    """What one request of the pod gets, neither the next request nor the next claim can have."""
    one, other = make_claim("one", exactly(1, "x"), exactly(1, "y")), make_claim("other", exactly(1, "z"))

    assert allocated(one, other, slices=[make_slice("a", "b", "c")]) == [["x=a", "y=b"], ["z=c"]]
    assert allocated(one, other, slices=[make_slice("a", "b")]) is None


def test_the_search_backtracks() -> None:
    """A request gives up the device that only a later one can use."""
    picky = exactly(1, "picky", **selecting('device.attributes["gpu.example.com"].size == 1'))
    sizes = [make_device(name, attributes={"size": size}) for name, size in (("a", 1), ("b", 2))]

    assert allocated(make_claim("c1", exactly(1)), make_claim("c2", picky), slices=[make_slice(*sizes)]) == [
        ["r=b"],
        ["picky=a"],
    ]


MATCH = {"matchAttribute": "gpu.example.com/numa"}
DISTINCT = {"distinctAttribute": "gpu.example.com/numa"}


@cases(
    "requests, constraint, devices",
    ("two on one side", [exactly(2)], MATCH, ["r=b", "r=c"]),
    ("no three", [exactly(3)], MATCH, None),
    ("over requests", [exactly(1, "x"), exactly(1, "y")], MATCH, ["x=b", "y=c"]),
    ("only for those named", [exactly(1, "x"), exactly(1, "y")], {**MATCH, "requests": ["y"]}, ["x=a", "y=b"]),
    ("on different sides", [exactly(1, "x"), exactly(1, "y")], DISTINCT, ["x=a", "y=b"]),
    ("there are only two sides", [exactly(1, name) for name in "xyz"], DISTINCT, None),
    ("two devices of one request differ", [exactly(2)], DISTINCT, ["r=a", "r=b"]),
    ("three devices of one request cannot", [exactly(3)], DISTINCT, None),
    ("nor can one and two", [exactly(1, "x"), exactly(2, "y")], DISTINCT, None),
    ("only those named", [exactly(2, "x"), exactly(1, "y")], {**DISTINCT, "requests": ["x"]}, ["x=a", "x=b", "y=c"]),
    ("an attribute no device has", [exactly(4)], {"matchAttribute": "gpu.example.com/none"}, None),
    ("an attribute in another domain", [exactly(2)], {"matchAttribute": "vendor.example.com/family"}, ["r=a", "r=d"]),
    (
        "only for an alternative",
        [first_of(exactly(2, "two"), exactly(1, "one")), exactly(2, "s")],
        {**MATCH, "requests": ["r/two", "s"]},
        ["r/one=a", "s=b", "s=c"],
    ),
)
def test_constraints(requests: list[Manifest], constraint: Manifest, devices: list[str] | None) -> None:
    """Devices of a claim may have to share a value of an attribute, or to differ in it."""
    family = "vendor.example.com/family"
    offered = [
        make_device("a", {"numa": 0, family: "x"}),
        make_device("b", {"numa": 1}),
        make_device("c", {"gpu.example.com/numa": 1, family: "y"}),
        make_device("d", {family: "x"}),
    ]

    expected = None if devices is None else [devices]
    assert allocated(make_claim("c", *requests, constraints=[constraint]), slices=[make_slice(*offered)]) == expected


def test_values_match_by_type() -> None:
    """1 and "1" and true are three values."""
    offered = [make_device("a", {"numa": 1}), make_device("b", {"numa": "1"}), make_device("c", {"numa": True})]

    assert allocated(make_claim("c", exactly(2), constraints=[MATCH]), slices=[make_slice(*offered)]) is None


@cases(
    "requests, devices",
    ("as many as a claim can hold", [exactly(32)], 32),
    ("an alternative that is too many is passed over", [first_of(exactly(33, "x"), exactly(2, "y"))], 2),
    ("too many together with another request", [exactly(30), first_of(exactly(3, "x"), exactly(2, "y"), name="s")], 32),
    ("an earlier one has to give way", [first_of(exactly(30, "x"), exactly(1, "y")), exactly(10, "s")], 11),
)
def test_many_devices(requests: list[Manifest], devices: int) -> None:
    """A claim holds at most 32 devices."""
    chosen = allocated(make_claim("c", *requests), slices=[make_slice(*(f"d{number}" for number in range(60)))])

    assert chosen is not None
    assert len(chosen[0]) == devices


PARTIAL = make_slice("a", of=2)


@cases(
    "claim, slices, message",
    (
        "too many devices",
        make_claim("c", exactly(33)),
        [],
        "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
    ),
    (
        "no such class",
        make_claim("c", exactly(1, device_class="gone")),
        [],
        'claim default/c, request r: could not retrieve device class gone: deviceclass.resource.k8s.io "gone" not '
        "found",
    ),
    (
        "no class",
        make_claim("c", exactly(1, device_class="")),
        [],
        "claim default/c, request r: missing device class name (unsupported request type?)",
    ),
    (
        "unknown mode",
        make_claim("c", exactly(1, allocationMode="Some")),
        [],
        "claim default/c, request r: unsupported count mode Some",
    ),
    (
        "unknown selector",
        make_claim("c", first_of(exactly(1, "x", selectors=[{}]))),
        [],
        "claim default/c, request x, selector #0: CEL expression empty (unsupported selector type?)",
    ),
    (
        "unknown request",
        make_claim("c", {"name": "r"}),
        [],
        "resource claim default/c, request r: unknown request type",
    ),
    (
        "unknown constraint",
        make_claim("c", exactly(1), constraints=[MATCH, {}]),
        [],
        "claim default/c, constraint #1: empty constraint (unsupported constraint type?)",
    ),
    (
        "all devices, but a constraint is against one",
        make_claim("c", everything(), constraints=[MATCH]),
        [make_slice("a")],
        "claim default/c, request r: cannot add device gpu.example.com/pool/a because a claim constraint would not "
        "be satisfied",
    ),
    (
        "a class fails",
        make_claim("c", exactly(1, device_class="big")),
        [make_slice("a")],
        "class big: selector #0: CEL runtime error: no such key: size",
    ),
    (
        "a claim's selector does not compile",
        make_claim("c", exactly(1, **selecting("1"))),
        [make_slice("a")],
        "claim default/c: selector #0: CEL compile error: must evaluate to bool or the unknown type, not int",
    ),
    (
        "a slice for faulty nodes",
        make_claim("c", exactly(1)),
        [
            make_slice(
                "a", nodeSelector={"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In"}]}]}
            )
        ],
        "gather pool information: failed to perform node selection for slice slice: failed to parse node selector: "
        "nodeSelectorTerms[0].matchFields[0].values: Invalid value: null: must have one element",
    ),
    (
        "a slice for too many kinds of nodes",
        make_claim("c", exactly(1)),
        [make_slice("a", nodeSelector={"nodeSelectorTerms": label_selector("zone", "a")["nodeSelectorTerms"] * 2})],
        "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms",
    ),
)
def test_invalid_claims(claim: ResourceClaim, slices: list[ResourceSlice], message: str) -> None:
    """Faulty claims, classes and slices end the search with upstream's words, for other nodes would not help."""
    with pytest.raises(AllocationError) as raised:
        allocated(claim, slices=slices)

    assert str(raised.value) == message


@cases("slices, state", ("incomplete", [PARTIAL], "being updated"), ("invalid", [make_slice("a", "a")], "invalid"))
@cases(
    "request_", ("all devices", everything()), ("all devices, or one", first_of(everything("all"), exactly(1, "one")))
)
def test_all_devices_of_a_bad_pool_cannot_be_had_and_other_nodes_may_do(
    request_: Manifest, slices: list[ResourceSlice], state: str
) -> None:
    name = "all" if "firstAvailable" in request_ else "r"
    with pytest.raises(NodeAllocationError) as raised:
        allocated(make_claim("c", request_), slices=slices)

    bad = f"asks for all devices, but resource pool gpu.example.com/pool is currently {state}"
    assert str(raised.value) == f"claim default/c, request {name}: {bad}"


def test_an_invalid_selector_matters_only_when_it_is_evaluated() -> None:
    """Without a device to look at nobody looks at the selector."""
    assert allocated(make_claim("c", exactly(1, **selecting("1"))), slices=[]) is None


def test_the_search_has_an_end() -> None:
    """Constraints can make a search long; then it stops when its time is up."""
    sides = [make_device(f"d{number:02}", attributes={"numa": number // 2, "side": number % 2}) for number in range(32)]
    hopeless = make_claim("c", exactly(16), constraints=[DISTINCT, {"matchAttribute": "gpu.example.com/none"}])
    endless = make_claim(
        "c",
        *(exactly(1, f"r{number}") for number in range(16)),
        exactly(1, "last", **selecting("false")),
        constraints=[DISTINCT],
    )

    assert allocated(hopeless, slices=[make_slice(*sides)]) is None
    with pytest.raises(TimedOutError):
        allocator([endless], [make_slice(*sides)]).allocate(NODE, Allowance(seconds=0.05))


def test_pods_with_too_many_devices() -> None:
    """A pod may have any number of claims, but the search goes only so deep."""
    many = [make_claim(f"c{number}", exactly(32)) for number in range(40)]

    with pytest.raises(AllocationError, match="more devices together than can be allocated at once"):
        allocated(*many, slices=[make_slice(*(f"d{number}" for number in range(1300)))])

"""Pools of devices: which slices form one, for which nodes, and the nodes that can use an allocation."""

import pytest

from extender.engine.plugins.dynamic_resources.pools import NodeAllocationError, Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches, OutOfStepsError
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import ResourceSlice
from tests.extender.engine.plugins.device_allocations import NODE, allocated, allocator
from tests.kit.devices import Manifest, everything, exactly, label_selector, make_claim, make_device, make_slice
from tests.kit.tables import cases


@cases(
    "where, is_there",
    ("for this node", {"nodeName": "n"}, True),
    ("for another node", {"nodeName": "m"}, False),
    ("for all nodes", {"allNodes": True}, True),
    ("for nodes like this", {"nodeSelector": label_selector("zone", "a", "b")}, True),
    ("for other nodes", {"nodeSelector": label_selector("zone", "b")}, False),
    ("for no one", {"sharedCounters": []}, False),
)
def test_slices_are_for_nodes(where: Manifest, is_there: bool) -> None:
    """A slice is for one node, for the nodes that a selector matches, or for all nodes."""
    assert (allocated(make_claim("c", exactly(1)), slices=[make_slice("a", **where)]) is not None) == is_there


def test_devices_that_are_for_nodes_each() -> None:
    """A slice may leave to its devices for which nodes they are."""
    local, elsewhere = make_device("here", nodeName="n"), make_device("elsewhere", nodeName="m")
    mixed = make_slice(elsewhere, local, make_device("anywhere", allNodes=True), perDeviceNodeSelection=True)

    assert allocated(make_claim("c", everything()), slices=[mixed]) == [["r=here", "r=anywhere"]]


@cases(
    "slices, devices",
    ("by name of the slice", [make_slice("a", name="s2", of=2), make_slice("b", name="s1", of=2)], ["b", "a"]),
    ("by name of the pool", [make_slice("a", pool="y"), make_slice("b", pool="x")], ["b", "a"]),
    ("the newest generation only", [make_slice("a", generation=1), make_slice("b", generation=2)], ["b"]),
    ("no slice of a pool that is not complete", [make_slice("a", of=2)], None),
    ("complete with another node's slice", [make_slice("a", of=2), make_slice("b", of=2, nodeName="m")], ["a"]),
    ("one slice is all of a generation", [make_slice("a"), make_slice("b", generation=2, nodeName="m")], ["a"]),
    (
        "the newer generation is elsewhere",
        [make_slice("a", of=2), make_slice("b", of=2, generation=2, nodeName="m")],
        None,
    ),
    (
        "what takes time to get ready comes last",
        [make_slice(make_device("slow", bindingConditions=["ready"]), pool="x"), make_slice("b", pool="y")],
        ["b", "slow"],
    ),
)
def test_pools(slices: list[ResourceSlice], devices: list[str] | None) -> None:
    """A pool is the slices of its newest generation, once they are complete; pools and slices are tried by name."""
    count = 1 if devices is None else len(devices)
    expected = None if devices is None else [[f"r={name}" for name in devices]]

    assert allocated(make_claim("c", exactly(count)), slices=slices) == expected


def test_a_pool_with_two_devices_of_one_name_is_invalid() -> None:
    """Such a pool offers nothing; if others do not suffice, that is the reason."""
    invalid, valid = make_slice("a", "a"), make_slice("b", pool="valid")

    assert allocated(make_claim("c", exactly(1)), slices=[invalid, valid]) == [["r=b"]]
    with pytest.raises(NodeAllocationError, match=r"^invalid resource pools were encountered$"):
        allocated(make_claim("c", exactly(2)), slices=[invalid, valid])


IN_A, ON_N = label_selector("zone", "a"), "metadata.name In [n]"


@cases(
    "slices, selector",
    ("a device of the node", [make_slice("a")], ON_N),
    ("a device for all nodes", [make_slice("a", allNodes=True)], ""),
    ("a device for some nodes", [make_slice("a", nodeSelector=IN_A)], "zone In [a]"),
    ("bound once it is used", [make_slice(make_device("a", bindsToNode=True), allNodes=True)], ON_N),
    ("by device", [make_slice(make_device("a", nodeName="n"), perDeviceNodeSelection=True)], ON_N),
    (
        "several, each condition once",
        [
            make_slice("a", nodeSelector=IN_A),
            make_slice("b", pool="q", nodeSelector=label_selector("zone", "a", "b")),
            make_slice("c", pool="r", nodeSelector=label_selector("zone", "b", "a")),
        ],
        "zone In [a], zone In [a b]",
    ),
)
def test_allocation_selects_the_nodes_that_reach_all_its_devices(slices: list[ResourceSlice], selector: str) -> None:
    allocations = allocator([make_claim("c", exactly(len(slices)))], slices).allocate(NODE, Allowance()).allocations

    terms = allocations[0].node_selector.node_selector_terms if allocations[0].node_selector is not None else []
    conditions = [condition for term in terms for condition in (*term.match_fields, *term.match_expressions)]
    assert ", ".join(f"{one.key} {one.operator} [{' '.join(one.values)}]" for one in conditions) == selector


def test_pools_are_kept_while_slices_stay() -> None:
    """What was put together for a node is used again; slices that were published again are other slices."""
    slices = [make_slice("a"), make_slice("b", pool="shared", allNodes=True)]
    kept_slices = Slices(slices)

    assert kept_slices.pools_for(NODE) is kept_slices.pools_for(NODE)
    assert kept_slices.are_same(list(slices))
    assert not kept_slices.are_same([slices[0], make_slice("b", pool="shared", allNodes=True)])
    assert not kept_slices.are_same(slices[:1])


def test_pools_are_those_of_the_node_as_it_is() -> None:
    """A node that changes sees what its new labels select, as do others of its name."""
    slices = Slices([make_slice("s", nodeSelector=label_selector("zone", "a"))])
    elsewhere = replaced(NODE, metadata=replaced(NODE.metadata, labels={"zone": "b"}))

    assert [len(slices.pools_for(node)) for node in (NODE, elsewhere, NODE, elsewhere)] == [1, 0, 1, 0]


def test_results_for_removed_devices_are_dropped() -> None:
    """Only so much is remembered as there are devices."""
    matches, offers = Matches(), Slices([make_slice("a", "b", "c")]).pools_for(NODE)[0].offers
    for offer in offers:
        assert matches.matches("true", offer, Allowance())

    matches.prune(2)
    assert matches.matches("true", offers[0], Allowance(steps=0))

    matches.prune(1)
    with pytest.raises(OutOfStepsError):
        matches.matches("true", offers[0], Allowance(steps=0))

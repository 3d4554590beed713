"""What claims hold is followed from cycle to cycle. What was found on nodes is used again while it holds; the result is
the same.
"""

import random
from collections.abc import Sequence

import pytest

from extender.engine.plugins.dynamic_resources.allocated_state import (
    AllocatedDevices,
    AllocatedState,
    allocated_state_of,
)
from extender.engine.plugins.dynamic_resources.allocation import Allocator
from extender.engine.plugins.dynamic_resources.node_allocations import KnownContents, allocation_on
from extender.engine.plugins.dynamic_resources.pools import Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches
from extender.testing import make_node
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.node import Node
from tests.kit.devices import allocation_of, exactly, make_claim, make_device_class, make_slice

DEVICES = [f"d{number}" for number in range(4)]
POOLS = [f"pool{number}" for number in range(3)]


def a_claim(rng: random.Random) -> ResourceClaim:
    results = []
    for device in rng.sample(DEVICES, rng.randint(1, 2)):
        result: dict[str, object] = {"device": device, "pool": rng.choice(POOLS)}
        if rng.random() < 0.4:
            result |= {"shareID": f"s{rng.random()}", "consumedCapacity": {"memory": f"{rng.randint(0, 3)}Gi"}}
        if rng.random() < 0.1:
            result["adminAccess"] = True
        results.append(result)
    return make_claim(f"c{rng.random()}", allocation=allocation_of(*results))


def content(state: AllocatedState) -> tuple[object, ...]:
    capacity = {
        (device, name): amount
        for device, amounts in state.capacity.items()
        for name, amount in amounts.items()
        if amount
    }
    return state.devices, state.shared, capacity


@pytest.mark.parametrize("seed", range(20))
def test_following_the_changes_of_claims_is_looking_at_all_of_them(seed: int) -> None:
    """A version of a pool that stays the same means the same state of the pool, and states that were returned before
    stay as they were.
    """
    rng = random.Random(seed)
    followed, claims = AllocatedDevices(), [a_claim(rng) for _ in range(5)]
    states: list[tuple[AllocatedState, tuple[object, ...]]] = []
    by_version: dict[tuple[object, int], object] = {}
    for _ in range(60):
        for _ in range(rng.randint(0, 3)):
            if claims and rng.random() < 0.5:
                claims.pop(rng.randrange(len(claims)))
            else:
                claims.append(a_claim(rng))
        state = followed.held_by(claims)
        assert content(state) == content(allocated_state_of(claims))
        states.append((state, content(state)))
        for pool, used in state.by_pool().items():
            in_use = frozenset(
                (device, is_whole, tuple(pair for pair in amounts if pair[1])) for device, is_whole, amounts in used
            )
            assert by_version.setdefault((pool, state.version_of(pool)), in_use) == in_use
    assert all(content(state) == then for state, then in states)


NODES = [make_node(f"n{number}").obj() for number in range(3)]
SLICES = [make_slice(*DEVICES, name=node.name, pool=node.name, nodeName=node.name) for node in NODES]
CLASSES = {"any": make_device_class("any")}


def wanting(name: str, count: int = 1) -> ResourceClaim:
    return make_claim(name, exactly(count))


class Cluster:
    """Claims that get devices one after the other, as a plugin allocates them."""

    def __init__(self) -> None:
        self.slices = Slices(SLICES)
        self.known, self.followed, self.holders = KnownContents(), AllocatedDevices(), list[ResourceClaim]()
        self.classes = CLASSES

    def devices_on_nodes(self, claim: ResourceClaim) -> list[str]:
        """The devices on each node, by what is known where something is known, and otherwise by a search."""
        allocator = self.allocator([claim], self.followed.held_by(self.holders))
        remembered = self.known.of(allocator)
        answers = []
        for node in NODES:
            outcome = remembered.on(node, self.slices.pools_for(node))
            if outcome is None:
                outcome = allocation_on(node, allocator, Allowance())
                remembered.remember(node, self.slices.pools_for(node), outcome)
            devices = [result.device for allocation in outcome.allocations for result in allocation.devices.results]
            answers.append(outcome.refusal or ",".join(devices))
        return answers

    def searched(self, claim: ResourceClaim) -> list[str]:
        fresh = Cluster()
        fresh.holders = self.holders
        return fresh.devices_on_nodes(claim)

    def allocator(self, claims: Sequence[ResourceClaim], allocated: AllocatedState) -> Allocator:
        return Allocator(claims, self.classes, self.slices, allocated, Matches())


@pytest.mark.parametrize("seed", range(20))
def test_remembered_allocation_equals_that_of_a_search(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster()
    for number in range(40):
        claim = wanting(f"c{number}", rng.randint(1, 5))
        assert cluster.devices_on_nodes(claim) == cluster.searched(claim)
        if rng.random() < 0.6:
            device, node = rng.choice(DEVICES), rng.choice(NODES).name
            cluster.holders.append(make_claim(f"h{number}", allocation=allocation_of({"device": device, "pool": node})))
        elif cluster.holders:
            cluster.holders.pop(rng.randrange(len(cluster.holders)))


def test_only_nodes_whose_pools_have_changed_are_searched_again() -> None:
    cluster = Cluster()
    cluster.devices_on_nodes(wanting("first"))
    cluster.holders.append(make_claim("holder", allocation=allocation_of({"device": "d0", "pool": "n1"})))
    allocator = cluster.allocator([wanting("second")], cluster.followed.held_by(cluster.holders))

    remembered = cluster.known.of(allocator)

    assert [remembered.on(node, cluster.slices.pools_for(node)) is not None for node in NODES] == [True, False, True]
    assert cluster.devices_on_nodes(wanting("second")) == ["d0", "d1", "d0"]


def test_remembered_allocation_is_not_used_for_other_slices_classes_nodes_or_contents() -> None:
    cluster = Cluster()
    cluster.devices_on_nodes(wanting("first"))

    def is_known(claim: ResourceClaim, node: Node = NODES[0]) -> bool:
        remembered = cluster.known.of(cluster.allocator([claim], AllocatedState()))
        return remembered.on(node, cluster.slices.pools_for(node)) is not None

    assert is_known(wanting("other"))
    assert not is_known(wanting("other", count=2))
    assert not is_known(wanting("other"), make_node("n0").obj())
    cluster.classes = {"any": make_device_class("any")}
    assert is_known(wanting("other"))
    cluster.classes = {"any": make_device_class("any", "true")}
    assert not is_known(wanting("other"))
    cluster.devices_on_nodes(wanting("first"))
    cluster.slices = Slices(SLICES)
    assert not is_known(wanting("other"))

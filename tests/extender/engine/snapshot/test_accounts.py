"""Accounts: what nodes have less what pods take, in numbers of a plugin's own."""

import random

import numpy as np
import pytest

from extender.engine.snapshot import Account, PodChanges, Rows
from extender.testing import make_cache, make_node, make_pod
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod


def seats_of_node(node: Node) -> list[int]:
    return [int(node.metadata.labels.get("seats", 0)), 100]


def seats_of_pod(pod: Pod) -> list[int]:
    return [int(pod.annotations.get("seats", 0)), len(pod.name)]


def test_what_is_left_follows_nodes_and_pods_that_come_and_go() -> None:
    account, seat = Account(2, seats_of_node, seats_of_pod), make_pod("one").annotation(seats="1").node("a").obj()
    cache = make_cache(make_node("a").label(seats="4"), make_node("b").label(seats="2"))

    found = [Rows.of(cache.update_snapshot()).left(account).tolist()]
    cache.add_pod(seat)
    found.append(Rows.of(cache.update_snapshot()).left(account).tolist())
    cache.update_node(make_node("b").label(seats="2").obj(), make_node("b").label(seats="3").obj())
    cache.remove_pod(seat)
    found.append(Rows.of(cache.update_snapshot()).left(account).tolist())
    cache.add_node(make_node("c").obj())
    found.append(Rows.of(cache.update_snapshot()).left(account).tolist())

    assert found == [
        [[4, 100], [2, 100]],
        [[3, 97], [2, 100]],
        [[4, 100], [3, 100]],
        [[4, 100], [3, 100], [0, 100]],
    ]


def test_two_clusters_are_counted_apart() -> None:
    account = Account(2, seats_of_node, seats_of_pod)
    one, other = make_cache(make_node("a").label(seats="4")), make_cache(make_node("a").label(seats="2"))

    found = [Rows.of(cache.update_snapshot()).left(account)[0, 0] for cache in (one, other, one)]

    assert found == [4, 2, 4]


@pytest.mark.parametrize("seed", range(10))
def test_a_hypothesis_counts_as_if_its_pods_had_moved(seed: int) -> None:
    chance, account = random.Random(seed), Account(2, seats_of_node, seats_of_pod)
    cache = make_cache(*(make_node(name).label(seats="9") for name in "abc"))
    running = [
        make_pod(f"p{at}").annotation(seats=str(chance.randint(0, 3))).node(chance.choice("abc")).obj()
        for at in range(6)
    ]
    for each in running:
        cache.add_pod(each)
    new = make_pod("new").annotation(seats="2").obj()
    slot, snapshot = cache.nominate(new), cache.update_snapshot()
    gone = chance.sample(running, 3)
    places = [snapshot.nodes.index[each.spec.node_name] for each in gone]
    changes = PodChanges(
        np.array([*places, 1]),
        np.array([*(snapshot.pods.slots[each.uid] for each in gone), slot]),
        np.array([-1, -1, -1, 1]),
    )

    supposed = Rows.of(snapshot).changed(changes).take(np.array([2, 1])).left(account)

    staying = [each for each in running if each not in gone]
    for row, name in enumerate("cb"):
        taken = [seats_of_pod(each) for each in staying if each.spec.node_name == name]
        taken += [seats_of_pod(new)] if name == "b" else []
        assert supposed[row].tolist() == [9 - sum(each[0] for each in taken), 100 - sum(each[1] for each in taken)]

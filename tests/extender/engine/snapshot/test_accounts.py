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

    counts = [Rows.of(cache.update_snapshot()).left(account).tolist()]
    cache.add_pod(seat)
    counts.append(Rows.of(cache.update_snapshot()).left(account).tolist())
    cache.update_node(make_node("b").label(seats="2").obj(), make_node("b").label(seats="3").obj())
    cache.remove_pod(seat)
    counts.append(Rows.of(cache.update_snapshot()).left(account).tolist())
    cache.add_node(make_node("c").obj())
    counts.append(Rows.of(cache.update_snapshot()).left(account).tolist())

    assert counts == [
        [[4, 100], [2, 100]],
        [[3, 97], [2, 100]],
        [[4, 100], [3, 100]],
        [[4, 100], [3, 100], [0, 100]],
    ]


def test_two_clusters_are_counted_apart() -> None:
    account = Account(2, seats_of_node, seats_of_pod)
    one, other = make_cache(make_node("a").label(seats="4")), make_cache(make_node("a").label(seats="2"))

    assert [Rows.of(cache.update_snapshot()).left(account)[0, 0] for cache in (one, other, one)] == [4, 2, 4]


@pytest.mark.parametrize("seed", range(10))
def test_a_hypothesis_counts_as_if_its_pods_had_moved(seed: int) -> None:
    chance, account = random.Random(seed), Account(2, seats_of_node, seats_of_pod)
    cache = make_cache(*(make_node(name).label(seats="9") for name in "abc"))
    running = [
        make_pod(f"p{number}").annotation(seats=str(chance.randint(0, 3))).node(chance.choice("abc")).obj()
        for number in range(6)
    ]
    for pod in running:
        cache.add_pod(pod)
    new = make_pod("new").annotation(seats="2").obj()
    slot, snapshot = cache.nominate(new), cache.update_snapshot()
    leaving = chance.sample(running, 3)
    places = [snapshot.nodes.index[pod.spec.node_name] for pod in leaving]
    changes = PodChanges(
        np.array([*places, 1]),
        np.array([*(snapshot.pods.slots[pod.uid] for pod in leaving), slot]),
        np.array([-1, -1, -1, 1]),
    )

    supposed = Rows.of(snapshot).changed(changes).take(np.array([2, 1])).left(account)

    staying = [pod for pod in running if pod not in leaving]
    for row, name in enumerate("cb"):
        seats = [seats_of_pod(pod) for pod in staying if pod.spec.node_name == name]
        seats += [seats_of_pod(new)] if name == "b" else []
        assert supposed[row].tolist() == [9 - sum(use[0] for use in seats), 100 - sum(use[1] for use in seats)]

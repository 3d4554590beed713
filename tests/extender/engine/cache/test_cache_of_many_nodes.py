"""A node that comes to a large cluster costs about as much as one node, and what changes together may be applied in
portions.
"""

import time
from itertools import islice
from operator import methodcaller

import pytest

from extender.engine.cache import Cache
from extender.testing import make_node, make_pod
from extender.values.objects.node import ZONE_LABEL, Node
from tests.extender.engine.cache.seen import seen

NODES = 10_000
MOST_SECONDS = 1.0


def test_nodes_that_come_one_by_one() -> None:
    """
    Forty nodes that come to ten thousand, with a decision after each, are counted in a fraction of the time of counting
    all again.
    """
    cache = Cache()
    for number in range(NODES):
        cache.add_node(_node(number))
        cache.add_pod(make_pod(f"p{number}").req(cpu=1).node(f"n{number}").obj())
    cache.update_snapshot()
    came = [_node(number) for number in range(NODES, NODES + 40)]

    began = time.thread_time()
    for node in came:
        cache.add_node(node)
        snapshot = cache.update_snapshot()
    took = time.thread_time() - began

    assert len(snapshot.nodes) == NODES + 40
    assert snapshot.nodes.pod_count.sum() == NODES
    assert took < MOST_SECONDS


def _node(number: int) -> Node:
    return make_node(f"n{number}").capacity(cpu="4", pods=10).label({ZONE_LABEL: f"zone-{number % 3}"}).obj()


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_changes_that_are_applied_in_portions_come_to_the_same_as_if_they_were_applied_together(at_once: int) -> None:
    """
    Pods are known before their nodes, and between the portions more of both come and go.
    """
    nodes = [_node(number) for number in range(12)]
    pods = [
        make_pod(f"p{number}").node(f"n{number % 12}").req(cpu=number).label(app=f"app-{number % 5}").obj()
        for number in range(30)
    ]
    at_first = [
        *(methodcaller("add_pod", pod) for pod in pods[:20]),
        *(methodcaller("add_node", node) for node in nodes[:9]),
    ]
    between = [
        *(methodcaller("add_pod", pod) for pod in pods[20:]),
        *(methodcaller("remove_pod", pod) for pod in pods[:5]),
        *(methodcaller("add_node", node) for node in nodes[9:]),
        methodcaller("remove_node", nodes[4]),
    ]
    in_portions, together = Cache(), Cache()

    for change in at_first:
        change(in_portions), change(together)
    num_portions = 0
    for change in between:
        num_portions += sum(1 for _ in islice(in_portions.catching_up(at_once), 1))
        change(in_portions), change(together)

    assert num_portions > 1
    assert seen(in_portions.update_snapshot()) == seen(together.update_snapshot())

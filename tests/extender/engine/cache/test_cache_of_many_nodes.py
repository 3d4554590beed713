"""A node that comes to a large cluster costs about as much as one node."""

import time

from extender.engine.cache import Cache
from extender.testing import make_node, make_pod
from extender.values.objects.node import ZONE_LABEL, Node

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

"""A node that comes to a large cluster costs about as much as one node."""

from extender.engine.cache import Cache
from extender.testing import make_node, make_pod
from extender.values.objects.node import ZONE_LABEL, Node
from tests.kit.counting import num_calls


def _of_nodes(nodes: int) -> Cache:
    cache = Cache()
    for number in range(nodes):
        cache.add_node(_node(number))
        cache.add_pod(make_pod(f"p{number}").req(cpu=1).node(f"n{number}").obj())
    cache.update_snapshot()
    return cache


def test_a_node_that_comes_costs_as_much_in_a_cluster_of_twice_the_size() -> None:
    """Nodes that come one by one, with a decision after each, are not counted again with all the others."""
    few, many = _of_nodes(400), _of_nodes(800)

    def come(cache: Cache, nodes: list[Node]) -> None:
        for node in nodes:
            cache.add_node(node)
            cache.update_snapshot()

    to_few, to_many = ([_node(number) for number in range(first, first + 20)] for first in (400, 800))
    assert num_calls(lambda: come(many, to_many)) < 1.2 * num_calls(lambda: come(few, to_few))
    assert many.update_snapshot().nodes.pod_count.sum() == 800


def _node(number: int) -> Node:
    return make_node(f"n{number}").capacity(cpu="4", pods=10).label({ZONE_LABEL: f"zone-{number % 3}"}).obj()

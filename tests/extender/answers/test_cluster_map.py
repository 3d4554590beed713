"""The map of a cluster: what every node has, what was promised of it, and to whom."""

import random
from collections.abc import Iterable

import msgspec
import pytest

from extender.answers.cluster_map import ClusterMaps, natural, node_on_map
from extender.answers.overviews import ClusterMap, ResourceOnNode
from extender.answers.parts import PodName
from extender.answers.redaction import redacted
from extender.engine.cache.cluster import Cluster
from extender.testing.builders import NodeBuilder, PodBuilder, make_cache, make_node, make_pod
from extender.values import limits
from extender.values.objects.cluster import ClusterState
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

ZONE = "topology.kubernetes.io/zone"
GIB = 2**30


def make_cluster(*nodes: Node | NodeBuilder, pods: Iterable[Pod | PodBuilder] = ()) -> Cluster:
    return Cluster(make_cache(*nodes, pods=pods))


def test_nodes_come_by_zone_and_then_as_people_count() -> None:
    cluster = make_cluster(
        *(make_node(name).label({ZONE: zone}) for name, zone in [("n10", "b"), ("n9", "b"), ("n1", "c"), ("n2", "a")])
    )

    chart = ClusterMaps(cluster).now()

    assert [(node.zone, node.name) for node in chart.nodes] == [("a", "n2"), ("b", "n9"), ("b", "n10"), ("c", "n1")]


def test_a_node_says_what_it_has_and_what_its_pods_take() -> None:
    high = make_pod("high").req(cpu="1", memory="1Gi").priority(7).node("n").terminating()
    pods = [make_pod("low").req(cpu="500m", memory="1Gi").node("n"), high]
    cluster = make_cluster(make_node("n").capacity(cpu="4", memory="8Gi", pods="110").unschedulable(), pods=pods)

    node = ClusterMaps(cluster).now().nodes[0]

    assert (node.cpu, node.memory, node.max_pods, node.cordoned) == (4000, 8 * GIB, 110, True)
    assert (node.requested_cpu, node.requested_memory, node.num_pods) == (1500, 2 * GIB, 2)
    assert [(pod.pod.name, pod.pod.priority, pod.cpu, pod.terminating) for pod in node.pods] == [
        ("high", 7, 1000, True),
        ("low", 0, 500, False),
    ]


def test_priorities_are_those_of_pods_that_have_a_node() -> None:
    pods = [make_pod(f"p{value}").priority(value).node("n") for value in (5, -1, 5 * 10**8)]

    assert ClusterMaps(make_cluster(make_node("n"), pods=pods)).now().priorities == (-1, 5, 500_000_000)


def test_a_large_cluster_is_shown_without_pods_but_each_node_can_be_asked_for() -> None:
    nodes = [make_node(f"n{number}") for number in range(limits.MAP_NODES_WITH_PODS + 1)]
    cluster = make_cluster(*nodes, pods=[make_pod("p").node("n3")])

    chart, one = ClusterMaps(cluster).now(), node_on_map(cluster, "n3")

    assert not chart.has_pods
    assert (chart.num_pods, [node.pods for node in chart.nodes if node.pods]) == (1, [])
    assert one is not None
    assert [pod.pod.name for pod in one.pods] == ["p"]
    assert node_on_map(cluster, "nowhere") is None


def test_pods_of_namespaces_that_one_may_not_see_keep_their_size_and_priority_alone() -> None:
    pods = [
        make_pod("mine").namespace("a").req(cpu="1").node("n"),
        make_pod("theirs").namespace("b").req(cpu="2").priority(3).node("n"),
    ]
    node = node_on_map(make_cluster(make_node("n"), pods=pods), "n")
    assert node is not None

    theirs, mine = redacted(node, {"a"}).pods

    assert theirs.pod == PodName(namespace="", name="", priority=3, hidden=True)
    assert theirs.cpu == 2000
    assert (mine.pod.namespace, mine.pod.name) == ("a", "mine")


def test_numbers_in_names_count_as_numbers() -> None:
    assert sorted(["n10", "n9", "a", "10", "n"], key=natural) == ["10", "a", "n", "n9", "n10"]


@pytest.mark.parametrize("num_nodes", [3, limits.MAP_NODES_WITH_PODS, 5 * limits.MAP_NODES_WITH_PODS])
@pytest.mark.parametrize("seed", range(3))
def test_a_map_that_is_kept_up_to_date_is_like_a_new_one(num_nodes: int, seed: int) -> None:
    """Whatever comes and goes."""
    chance = random.Random(seed)
    nodes = [make_node(f"n{number}").label({ZONE: f"z{number % 2}"}).obj() for number in range(num_nodes)]
    cluster, pods = Cluster.of(ClusterState(nodes=nodes)), list[Pod]()
    maps, devices = ClusterMaps(cluster), dict[str, tuple[ResourceOnNode, ...]]()

    def change(number: int) -> None:
        name = f"n{chance.randrange(num_nodes + 1)}"
        match chance.choice(["pod", "pod", "gone", "node", "no node", "devices"]):
            case "pod":
                pods.append(
                    make_pod(f"p{number}").priority(number % 3).req(cpu=chance.choice(["0", "1"])).node(name).obj()
                )
                cluster.changed(None, pods[-1])
            case "gone" if pods:
                cluster.changed(pods.pop(chance.randrange(len(pods))), None)
            case "node":
                built = make_node(name).label({ZONE: chance.choice("xyz")}).capacity(cpu=number)
                cluster.changed(cluster.nodes.get(name), built.obj())
            case "no node" if name in cluster.nodes:
                cluster.changed(cluster.nodes[name], None)
            case _:
                devices[name] = (ResourceOnNode(name="gpu", allocatable=number, requested=0),)

    def now() -> tuple[ClusterMap, ClusterMap]:
        live, new = maps.now(dict(devices)), ClusterMaps(cluster).now(dict(devices))
        return live, msgspec.structs.replace(new, generation=live.generation)

    for number in range(60):
        change(number)
        if chance.random() < 0.4:
            live, new = now()
            assert live == new
            assert maps.now(dict(devices)) is live

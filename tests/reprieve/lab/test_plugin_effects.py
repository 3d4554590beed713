"""What plugins would change in a cluster."""

import asyncio

from extender.answers.types import ReasonCount
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.testing import make_node, make_pod
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from reprieve.lab.plugin_effects import Destination, PluginEffects, plugin_effects
from tests.kit.places import without_place

SLOW = "the disk is slow"


@fwk.node_filter
def no_slow_disks(pod, node):
    return fwk.unresolvable(SLOW) if node.labels.get("disk") == "slow" else None


@fwk.node_filter
def alone(pod, node):
    return fwk.unschedulable("others are there") if node.pods else None


@fwk.node_filter
def broken(pod, node):
    return node.nope


def with_plugin(name: str) -> Configuration:
    return load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {name}}}]}}}}}}]"
    )


def effects(plugin: type[fwk.Plugin], *objects, limit: int = 100) -> PluginEffects:
    """Of one plugin beside those of kube-scheduler."""
    cluster = Cluster()
    for obj in objects:
        cluster.changed(None, obj)
    registry = Registry(IN_TREE, [], also={plugin.name: plugin})
    return asyncio.run(
        plugin_effects(cluster, registry, Configuration(), with_plugin(plugin.name), {plugin.name}, limit)
    )


def node(name: str, disk: str):
    return make_node(name).label({"disk": disk}).capacity(cpu="2", pods="10").obj()


def test_a_pending_pod_that_goes_elsewhere() -> None:
    """The slow node is the emptier one."""
    answer = effects(
        no_slow_disks,
        node("fast", "fast"),
        node("slow", "slow"),
        make_pod("other").req(cpu="1").node("fast").obj(),
        make_pod("p").req(cpu="1").obj(),
    )

    [effect] = answer.pending
    assert (effect.before, effect.after) == (Destination(node="slow"), Destination(node="fast"))
    assert effect.refused == (ReasonCount(reason=SLOW, nodes=1),)
    assert (answer.nodes, answer.looked_at, answer.left_out, answer.errors) == (2, 1, 0, ())


def test_a_pending_pod_that_would_find_no_node() -> None:
    [effect] = effects(no_slow_disks, node("slow", "slow"), make_pod("p").obj()).pending

    assert (effect.before.node, effect.after.node) == ("slow", "")
    assert effect.message.startswith(f"0/1 nodes are available: 1 {SLOW}.")


def test_preemption_is_followed() -> None:
    """With the plugin the pod gets the node only after the other one has gone."""
    low, urgent = make_pod("low").priority(1).node("n").obj(), make_pod("urgent").priority(10).obj()

    [effect] = effects(alone, node("n", "fast"), low, urgent).pending

    assert (effect.before, effect.after) == (Destination(node="n"), Destination(node="n", evicts=1))


def test_a_running_pod_is_shown_its_node_without_itself() -> None:
    """Two pods share a node, and one is alone on its own: only the two would not be let in."""
    pods = [make_pod(name).node(where).obj() for name, where in (("a", "n"), ("b", "n"), ("c", "m"))]

    answer = effects(alone, node("n", "fast"), node("m", "fast"), *pods)

    assert {(effect.pod.name, effect.node, effect.reasons) for effect in answer.running} == {
        ("a", "n", ("others are there",)),
        ("b", "n", ("others are there",)),
    }


def test_no_more_pods_are_looked_at_than_asked_and_pending_ones_come_first() -> None:
    running = [make_pod(f"r{number}").node("slow").obj() for number in range(3)]
    pending = [make_pod(f"p{number}").obj() for number in range(3)]

    answer = effects(no_slow_disks, node("slow", "slow"), *running, *pending, limit=4)

    assert (len(answer.pending), answer.looked_at, len(answer.running), answer.left_out) == (3, 1, 1, 2)


def test_a_plugin_that_fails_is_reported_once_for_all_pods() -> None:
    answer = effects(broken, node("n", "fast"), *(make_pod(f"p{number}").obj() for number in range(3)))

    assert [*map(without_place, answer.errors)] == [
        "running \"broken\" filter plugin: 'NodeInfo' object has no attribute 'nope'"
    ]


def test_a_plugin_that_fails_where_others_refuse_is_reported_too() -> None:
    answer = effects(broken, node("n", "fast"), make_pod("p").req(cpu="100").obj())

    assert [*map(without_place, answer.errors)] == [
        "running \"broken\" filter plugin: 'NodeInfo' object has no attribute 'nope'"
    ]
    assert answer.pending[0].refused == ()

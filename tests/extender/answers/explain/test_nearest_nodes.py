"""The nodes that refused a pod for least, and what each lacks."""

import asyncio

from extender.answers.explain.advice import Advice, Refusals, nearest_nodes
from extender.answers.types import Lack, NearNode
from extender.engine import framework as fwk
from extender.engine.cache import Cache
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_ports import NodePorts
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.taints import TaintToleration
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Snapshot
from extender.testing import PodBuilder, make_cache, make_framework, make_node, make_pod, name_term
from extender.values.config.plugin_args import NodeResourcesFitArgs
from extender.values.objects.pod import Pod

HALF = make_pod("half").req(cpu=1).node("a")

FITTING = make_framework(TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit)


def near(
    framework: Framework, cache: Cache, pod: PodBuilder, *, limit: int = 5, nominations: Nominations = NO_NOMINATIONS
) -> tuple[NearNode, ...]:
    snapshot = cache.update_snapshot()
    refusals = Refusals.of(asyncio.run(evaluate(Cycle(framework, snapshot, pod.obj(), nominations))))
    assert refusals is not None
    return nearest_nodes(refusals, Advice(framework, snapshot, pod.obj(), nominations), limit)


def nodes_near(
    cache: Cache, pod: PodBuilder, *, limit: int = 5, nominations: Nominations = NO_NOMINATIONS
) -> tuple[NearNode, ...]:
    return near(FITTING, cache, pod, limit=limit, nominations=nominations)


def names(nodes: tuple[NearNode, ...]) -> list[str]:
    return [near.node for near in nodes]


def test_the_node_that_is_short_of_least_comes_first() -> None:
    cache = make_cache(
        *(make_node(name).capacity(cpu=cpu) for name, cpu in (("a", 1), ("b", 3), ("c", 2))),
        make_node("d").capacity(cpu=8),
    )
    busy = [make_pod(f"on-{name}").req(cpu="900m").node(name).obj() for name in "abc"] + [
        make_pod("on-d").req(cpu=7).node("d").obj()
    ]
    for pod in busy:
        cache.add_pod(pod)

    nodes = nodes_near(cache, make_pod().req(cpu=4), limit=2)

    # What a node never had is beyond preemption's help: d comes first, though b is short of less.
    assert nodes == (
        NearNode(
            node="d",
            plugins=("NodeResourcesFit",),
            reasons=("Insufficient cpu",),
            lacks=(Lack(resource="cpu", asks="4", free="1", short="3"),),
        ),
        NearNode(
            node="b",
            plugins=("NodeResourcesFit",),
            reasons=("Insufficient cpu",),
            lacks=(Lack(resource="cpu", asks="4", free="2100m", short="1900m"),),
        ),
    )


def test_lacks_of_different_things_are_compared_by_their_share_of_what_is_asked() -> None:
    """A tenth of the memory is less than half of the cpu; both at once are more than either."""
    cache = make_cache(*(make_node(name).capacity(cpu=2, memory="10Gi") for name in "abc"))
    for pod in (
        make_pod("a1").req(cpu=1, memory="1Gi").node("a"),
        make_pod("b1").req(memory="1Gi").node("b"),
        make_pod("c1").req(cpu=1).node("c"),
    ):
        cache.add_pod(pod.obj())

    nodes = nodes_near(cache, make_pod().req(cpu=2, memory="10Gi"))

    assert names(nodes) == ["b", "c", "a"]
    assert [lack.resource for lack in nodes[2].lacks] == ["cpu", "memory"]


def test_a_node_that_fewer_plugins_refuse_is_nearer() -> None:
    cache = make_cache(make_node("a").capacity(cpu=2), make_node("b").capacity(cpu=2), make_node("c").capacity(cpu=2))
    for pod in (
        make_pod("a1").req(cpu="100m").host_port(80).node("a"),
        make_pod("b1").req(cpu=2).node("b"),
        make_pod("c1").host_port(80).node("c"),
    ):
        cache.add_pod(pod.obj())

    nodes = nodes_near(cache, make_pod().req(cpu=2).host_port(80))

    assert names(nodes) == ["c", "b", "a"]
    assert nodes[2].plugins == ("NodePorts", "NodeResourcesFit")
    assert nodes[2].reasons == ("node(s) didn't have free ports for the requested pod ports", "Insufficient cpu")


def test_nodes_on_which_preemption_cannot_help_come_last() -> None:
    cache = make_cache(make_node("tainted").capacity(cpu=2).taint("gpu"), make_node("full").capacity(cpu=2))
    cache.add_pod(make_pod("p").req(cpu=2).host_port(80).node("full").obj())

    nodes = nodes_near(cache, make_pod().req(cpu=2).host_port(80))

    assert [(one.node, len(one.plugins)) for one in nodes] == [("full", 2), ("tainted", 1)]


def test_nodes_that_fit_are_not_near_but_there() -> None:
    cache = make_cache(make_node("a").capacity(cpu=2), make_node("b").capacity(cpu=1))

    assert names(nodes_near(cache, make_pod().req(cpu=2))) == ["b"]


def test_node_lacks_the_room_of_its_nominated_pods() -> None:
    """No Filter by itself counts promises, and the node is closed all the same."""
    cache = make_cache(make_node("a").capacity(cpu=2))
    first = make_pod("first").req(cpu=1).priority(5).obj()
    nominations = Nominations({"a": ((cache.nominate(first), first),)})

    nodes = nodes_near(cache, make_pod().req(cpu=2), nominations=nominations)

    lack = Lack(resource="cpu", asks="2", free="1", short="1")
    assert nodes == (NearNode(node="a", plugins=("NodeResourcesFit",), reasons=("Insufficient cpu",), lacks=(lack,)),)


class OnlyA(fwk.PreFilterPlugin):
    """Narrows the search to node a."""

    def pre_filter(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
        return fwk.PreFilterResult(fwk.SUCCESS, frozenset({"a"}))


def test_node_left_out_by_pre_filter_names_its_plugin_when_no_filter_refuses_it() -> None:
    """And comes last: no eviction brings it back into the search."""
    cache = make_cache(make_node("a").capacity(cpu=2), make_node("b").capacity(cpu=4), pods=[HALF])

    nodes = near(make_framework(OnlyA, NodeResourcesFit), cache, make_pod().req(cpu=2))

    assert [(one.node, one.plugins, one.reasons) for one in nodes] == [
        ("a", ("NodeResourcesFit",), ("Insufficient cpu",)),
        ("b", ("OnlyA",), ("node(s) didn't satisfy plugin(s) [OnlyA]",)),
    ]


def test_resources_that_the_profile_ignores_are_no_lack() -> None:
    ignoring = make_framework(
        lambda _, handle: NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=("example.com/gpu",)), handle)
    )
    cache = make_cache(make_node("a").capacity(cpu=1))

    (node,) = near(ignoring, cache, make_pod().req({"cpu": 2, "example.com/gpu": 1}))

    assert [lack.resource for lack in node.lacks] == ["cpu"]


def test_no_node_is_nearer_than_others_when_prefilter_refuses_the_pod() -> None:
    snapshot = make_cache(make_node("a").capacity(cpu=1)).update_snapshot()

    evaluation = asyncio.run(
        evaluate(Cycle(FITTING, snapshot, make_pod().node_affinity(name_term("In")).obj(), NO_NOMINATIONS))
    )

    assert Refusals.of(evaluation) is None

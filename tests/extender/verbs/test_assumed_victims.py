"""Victims that have no node here: kube-scheduler names pods that it has assumed, which wait at Permit or in PreBind.

What is not said of them is as of any victim (`test_verbs.py`). A node is never left out because of them.
"""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from extender.engine.cache.cluster import Cluster
from extender.testing import PodBuilder, make_node, make_pod, make_verbs
from extender.values.config.loading import load
from extender.values.objects.cluster import ClusterState
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs import Verbs
from tests.extender.engine.preemption.test_budgets import budget
from tests.extender.verbs.verb_calls import filtered, scored
from tests.kit.storage import make_claim, make_volume
from tests.kit.tables import cases

NODES = [make_node(name).capacity(cpu=4, pods=20).label(zone=name).obj() for name in ("a", "b")]


def urgent_pod(cpu: int = 4) -> PodBuilder:
    return make_pod("urgent").uid("urgent").req(cpu=cpu).priority(10)


URGENT = urgent_pod()
SMALL = urgent_pod(1)


def waiting(name: str, cpu: int = 4, priority: int = 0) -> PodBuilder:
    return make_pod(name).uid(name).req(cpu=cpu).priority(priority)


def cluster_of(*objects: HasMetadata, nodes: Sequence[Node] = NODES) -> Cluster:
    cluster = Cluster.of(ClusterState(nodes=list(nodes)))
    for obj in objects:
        cluster.changed(None, obj)
    return cluster


def chosen(
    verbs: Verbs,
    candidates: Mapping[str, Sequence[str]],
    *in_full: PodBuilder,
    urgent: PodBuilder = URGENT,
    violations: int = 0,
) -> dict[str, tuple[tuple[str, ...], int]]:
    """Node -> UIDs and violations, of what was named by UID, or `in_full`."""
    meta_victims = {node: MetaVictims.of(uids, violations) for node, uids in candidates.items()}
    bodies = {pod.obj().uid: pod.obj() for pod in in_full}
    answer = asyncio.run(verbs.preempt(urgent.obj(), meta_victims, victim=bodies.get))
    return {node: (victims.uids, victims.num_pdb_violations) for node, victims in answer.items()}


ONLY = make_claim("only", volume="v", access="ReadWriteOncePod"), make_volume("v", claim="only")
FORMS = [pytest.param(True, id="pending here"), pytest.param(False, id="in full and unknown here")]


@pytest.mark.parametrize("is_pending", FORMS)
def test_an_assumed_pod_is_a_victim_like_any_other(is_pending: bool) -> None:
    """It goes where it has to, and is reprieved where the pod fits beside it."""
    pods = [waiting("whole"), waiting("large", 3, priority=2), waiting("small", 1, priority=1)]
    cluster = cluster_of(*(pod.obj() for pod in pods if is_pending))
    in_full = [] if is_pending else pods

    verbs = make_verbs(cluster)

    assert chosen(verbs, {"a": ["whole"], "b": ["large", "small"]}, *in_full) == {
        "a": (("whole",), 0),
        "b": (("large", "small"), 0),
    }
    assert chosen(verbs, {"b": ["large", "small"]}, *in_full, urgent=SMALL) == {"b": (("small",), 0)}


@pytest.mark.parametrize("is_pending", FORMS)
def test_what_an_assumed_pod_has_besides_requests_counts(is_pending: bool) -> None:
    """Its ports, its affinity on its own node and on others, and its claims."""
    kinds = {
        "port": (waiting("v", 1).host_port(80), SMALL.host_port(80)),
        "anti-affinity": (waiting("v", 1).pod_anti_affinity("zone", app="urgent"), SMALL.label(app="urgent")),
        "claim": (waiting("v", 1).claim("only"), SMALL.claim("only")),
    }  # fmt: skip
    for kind, (victim, urgent) in kinds.items():
        other = waiting("other", 1, priority=-1)
        cluster = cluster_of(*ONLY, *((victim.obj(), other.obj()) if is_pending else ()))

        answer = chosen(
            make_verbs(cluster), {"a": ["v", "other"]}, *(() if is_pending else (victim, other)), urgent=urgent
        )

        assert answer == {"a": (("v",), 0)}, kind


def test_an_assumed_pod_counts_on_other_nodes_too() -> None:
    """As in the caller's snapshot: the urgent pod cannot go to the same zone, whoever goes from the other node."""
    nodes = [make_node(name).capacity(cpu=4).label(zone="one") .obj() for name in ("a", "b")]  # fmt: skip
    guard = waiting("guard", 1).pod_anti_affinity("zone", app="urgent").obj()
    verbs = make_verbs(cluster_of(guard, waiting("v").node("b").obj(), nodes=nodes))

    assert chosen(verbs, {"a": ["guard"], "b": ["v"]}, urgent=URGENT.label(app="urgent")) == {"a": (("guard",), 0)}


@pytest.mark.parametrize("is_pending", FORMS)
def test_budgets_of_assumed_pods_are_counted(is_pending: bool) -> None:
    pods = [waiting("one", 2).label(app="web"), waiting("two", 2).label(app="web")]
    cluster = cluster_of(budget(1), *(pod.obj() for pod in pods if is_pending))

    answer = chosen(make_verbs(cluster), {"a": ["one", "two"]}, *([] if is_pending else pods), violations=7)

    assert answer == {"a": (("two", "one"), 1)}  # of equal ones the one that violates it comes first


def test_assumed_pods_are_victims_of_the_general_search() -> None:
    """Where the named ones do not suffice, as a pod here is not known to the caller yet."""
    late = waiting("late", 1, priority=3).node("a").obj()
    verbs = make_verbs(cluster_of(late, waiting("v", 3).obj()))

    assert chosen(verbs, {"a": ["v"]}) == {"a": (("late", "v"), 0)}


def test_a_victim_that_nobody_knows_stays_where_the_caller_named_it() -> None:
    pods = [waiting("high", 2, priority=5).node("a").obj(), waiting("low", 2).node("a").obj()]
    verbs = make_verbs(cluster_of(*pods))

    assert chosen(verbs, {"a": ["x", "high", "y", "low", "z"], "b": ["w"]}) == {
        "a": (("x", "high", "y", "low", "z"), 0),
        "b": (("w",), 0),
    }
    half = {"a": ["x", "high", "y", "low", "z"]}
    assert chosen(verbs, half, urgent=urgent_pod(2)) == {"a": (("x", "y", "low", "z"), 0)}
    assert chosen(verbs, {"a": ["x"]}) == {"a": (("high", "low", "x"), 0)}


@cases("claimed, total", ("none besides", 0, 1), ("one of the unknown", 2, 2), ("all", 9, 3))
def test_violations_of_unknown_victims_are_those_that_the_caller_counted_besides(claimed: int, total: int) -> None:
    web_pod = waiting("web").label(app="web").node("a").obj()
    verbs = make_verbs(cluster_of(budget(0), web_pod))

    assert chosen(verbs, {"a": ["x", "web", "y"]}, violations=claimed) == {"a": (("x", "web", "y"), total)}


@cases(
    "victim",
    ("no pod", ""),
    ("a pod that is bound to another node", "elsewhere"),
    ("an assumed pod that is as important", "equal"),
    ("the preemptor", "urgent"),
)
def test_a_node_is_left_out_where_a_victim_cannot_be_one(victim: str) -> None:
    pods = [waiting("elsewhere").node("b").obj(), waiting("equal", priority=10).obj(), URGENT.obj()]
    verbs = make_verbs(cluster_of(*pods))

    assert chosen(verbs, {"a": [victim, "x"], "nowhere": ["y"], "b": ["z"]}) == {"b": (("elsewhere", "z"), 0)}


PROTECTING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {protect: {selector: {matchLabels: {app: web}}}}
"""


def test_policies_protect_assumed_pods_and_those_that_nobody_can_judge() -> None:
    pods = [waiting("web").label(app="web"), waiting("plain")]
    verbs = make_verbs(cluster_of(*(pod.obj() for pod in pods)), load(PROTECTING))

    assert chosen(verbs, {"a": ["web"], "b": ["plain"]}) == {"b": (("plain",), 0)}
    assert chosen(verbs, {"a": ["x"], "b": ["plain"]}) == {"b": (("plain",), 0)}


def test_a_call_leaves_no_trace() -> None:
    """Nor do pods that cannot be read, or that came in full twice; a port that two pods use stays in use."""
    bound, asks = waiting("bound", 1).host_port(80).node("a"), waiting("asks", 1, priority=1).host_port(80)
    cluster = cluster_of(bound.obj(), waiting("v", 1).host_port(80).nominated_node("b").obj())
    verbs = make_verbs(cluster)
    before = cluster.cache.dump()

    odd = waiting("odd").req(cpu="many")
    chosen(verbs, {"a": ["v", "odd", "w"], "b": ["x"]}, odd, waiting("w"), waiting("x"))

    assert cluster.cache.dump() == before
    assert not cluster.cache.assumed_pods
    assert [*cluster.pending] == ["v"]
    assert [pod.name for _, pod in cluster.nominees({"default-scheduler"})["b"]] == ["v"]
    assert filtered(verbs, asks.obj(), node_names=["a", "b"]).kept == [1]


@cases(
    "nominated, victims",
    ("to that node", "a", ("one", "two")),
    ("to another one", "b", ("two",)),
    ("to none", "", ("two",)),
)
def test_nobody_is_spared_for_the_room_of_a_pod_that_the_caller_may_have_assumed(
    nominated: str, victims: tuple[str, ...]
) -> None:
    """kube-scheduler nominates pods that wait: the others of a gang have not been named, as they may stay."""
    spared, one, two = (waiting(name, 1).nominated_node(nominated) for name in ("kept", "one", "two"))
    verbs = make_verbs(cluster_of(*(builder.obj() for builder in (spared, one, two))))

    assert chosen(verbs, {"a": ["one", "two"]}, urgent=urgent_pod(3)) == {"a": (victims, 0)}


def test_only_the_word_of_the_caller_makes_a_pod_an_assumed_one() -> None:
    """In filter, a pod of lower priority takes no room on the node that it is nominated to; one as important does.
    Scores do not count either.
    """
    lower, equal = waiting("lower").nominated_node("a"), waiting("equal", priority=10).nominated_node("b")
    verbs = make_verbs(cluster_of(lower.obj(), equal.obj()))

    assert scored(verbs, SMALL.obj(), node_names=["a", "b"]) == [10, 10]
    assert filtered(verbs, URGENT.obj(), node_names=["a", "b"]).kept == [0]
    assert chosen(verbs, {"a": [], "b": []}) == {"a": ((), 0)}
    assert chosen(verbs, {"a": ["lower"]}) == {"a": (("lower",), 0)}

"""A small cluster, a large one, and answers about them, as the page's tests look at them."""

from datetime import UTC, datetime, timedelta

from extender.answers.overviews import NodeOnMap, PodOnNode
from extender.answers.parts import CandidateNode, PodName, Victim
from extender.answers.stories import Preemption
from extender.answers.types import (
    Attempt,
    Eviction,
    Explanation,
    Fix,
    Lack,
    NearNode,
    NodePicture,
    NodeScore,
    Placement,
    PluginScore,
    PluginVerdict,
    PreemptionAnswer,
    Queue,
    QueuePlace,
    ReasonCount,
    WakesOn,
    WaterfallStep,
    WhatIf,
)
from extender.engine.cache.cluster import Cluster
from extender.testing.builders import make_cache, make_node, make_pod

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZONE = "topology.kubernetes.io/zone"
GIB = 2**30
HIDDEN = PodName(namespace="", name="", priority=7, hidden=True)


def seconds_ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def plugin_score(weighted: int) -> PluginScore:
    return PluginScore(raw=weighted, normalized=weighted, weight=1, weighted=weighted)


def pod_name(name: str = "web", priority: int = 0, namespace: str = "shop") -> PodName:
    return PodName(namespace=namespace, name=name, uid=f"{namespace}/{name}", priority=priority)


def standing(name: str, cpu: int, priority: int = 0, memory: int = 0) -> PodOnNode:
    return PodOnNode(pod=pod_name(name, priority), cpu=cpu, memory=memory)


def node(*pods: PodOnNode, name: str = "n1", cpu: int = 4000, zone: str = "a") -> NodeOnMap:
    promised = sum(pod.cpu for pod in pods)
    return NodeOnMap(
        name=name,
        zone=zone,
        cpu=cpu,
        memory=8 * GIB,
        requested_cpu=promised,
        max_pods=110,
        num_pods=len(pods),
        pods=pods,
    )


def small_cluster() -> Cluster:
    nodes = [
        make_node(f"n{number}").capacity(cpu="4", memory="8Gi", pods="110").label({ZONE: f"zone-{number % 2}"})
        for number in range(4)
    ]
    pods = [
        make_pod(f"p{number}").namespace("shop").req(cpu="1").priority(number * 100).node(f"n{number % 4}")
        for number in range(6)
    ]
    return Cluster(make_cache(*nodes, pods=pods))


def waiting(*names: str, message: str = "") -> Queue:
    places = tuple(
        QueuePlace(pod=pod_name(name), queue="unschedulable", attempts=2, since=seconds_ago(90), message=message)
        for name in names
    )
    return Queue(items=places)


VICTIMS = (Victim(pod=pod_name("p0"), owner="ReplicaSet/p", violates=("budget-of-p",), cpu=1000),)

PREEMPTION = PreemptionAnswer(
    eligible=True,
    node="n0",
    victims=VICTIMS,
    num_pdb_violations=1,
    candidates=(
        CandidateNode(node="n0", victims=VICTIMS, num_pdb_violations=1),
        CandidateNode(
            node="n1", victims=(Victim(pod=HIDDEN),), num_pdb_violations=2, why_not="it violates 2 budgets, not 1"
        ),
    ),
    num_candidates=5,
)

EXPLANATION = Explanation(
    pod=pod_name("pending", 1000),
    state="Pending",
    requests={"cpu": "4", "memory": "1Gi"},
    summary="No node has room for it.",
    message="0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu.",
    total_nodes=4,
    waterfall=(
        WaterfallStep(plugin="NodeName", reasons=(), refused=0, unresolvable=0, left=4),
        WaterfallStep(
            plugin="TaintToleration",
            reasons=(ReasonCount(reason="node(s) had untolerated taint(s)", nodes=1),),
            refused=1, unresolvable=1, left=3,
        ),
        WaterfallStep(
            plugin="NodeResourcesFit", reasons=(ReasonCount(reason="Insufficient cpu", nodes=3),), refused=3, unresolvable=0, left=0
        ),
    ),
    nearest=(
        NearNode(
            node="n2", plugins=("NodeResourcesFit",), reasons=("Insufficient cpu",),
            lacks=(Lack(resource="cpu", asks="4", free="3600m", short="400m"),),
        ),
    ),
    fixes=(Fix(kind="request", text="ask for 3600m cpu", opens=2, nodes=("n2", "n3")),),
    preemption=PREEMPTION,
    scores=(NodeScore(node="n2", total=300, plugins={"ImageLocality": plugin_score(100), "TaintToleration": plugin_score(200)}),),
    queue=QueuePlace(
        pod=pod_name("pending", 1000), queue="unschedulable", attempts=3, since=seconds_ago(840),
        wakes_on=(WakesOn(event="Node/Add", plugins=("NodeResourcesFit",)),),
    ),
    attempts=(
        Attempt(id=1, time=seconds_ago(5), pod=pod_name("pending", 1000), profile="p", number=3, outcome="Unschedulable", evaluated=4),
    ),
    picture=NodePicture(
        plugins=("NodeName", "NodeResourcesFit"),
        nodes=("n0", "n1", "n2", "n3"),
        verdicts=(PluginVerdict(plugin="NodeResourcesFit", code="Unschedulable", reasons=("Insufficient cpu",)),),
        cells=((-1, 0), (-1, 0), (-1, -1), (-1, 0)),
    ),
)  # fmt: skip

RECORD = Preemption(
    id=4, time=seconds_ago(30), by=pod_name("pending", 1000), node="n0", victims=VICTIMS, num_pdb_violations=1,
    candidates=PREEMPTION.candidates, num_candidates=5, outcome="told",
)  # fmt: skip

WHAT_IF = WhatIf(
    summary="It would take the place of p0, which finds another one.",
    placements=(
        Placement(pod=pod_name("new", 1000), cause="created", requests={"cpu": "2"}, node="n0", evicts=VICTIMS),
        Placement(pod=pod_name("huge"), cause="created", message="0/4 nodes are available: 4 Insufficient cpu."),
    ),
    evictions=(
        Eviction(victim=VICTIMS[0], node="n0", why="preempted", by=pod_name("new", 1000), lands_on="n3"),
        Eviction(
            victim=Victim(pod=pod_name("p3")), node="n3", why="preempted", by=pod_name("p0"), returns=False, depth=2
        ),
    ),
    unplaced=1,
)

"""What would let a pod in: every change is tried on the engine, and told with the number of nodes that it opens."""

import asyncio
import random
from collections.abc import Sequence

import numpy as np
import pytest

from extender.answers.explain.advice import Advice, Refusals, nearest_places
from extender.answers.explain.fixes import fixes
from extender.answers.types import Fix
from extender.engine import framework as fwk
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.plugins import IN_TREE
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.engine.plugins.taints import TaintToleration
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Rows, Snapshot
from extender.testing import (
    NodeBuilder,
    PodBuilder,
    label_term,
    make_cache,
    make_framework,
    make_node,
    make_pod,
    make_snapshot,
    name_term,
    random_cluster,
)
from extender.values.config.configuration import Configuration
from extender.values.config.plugin_args import PodTopologySpreadArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import MapSelectorSpec, Service
from extender.values.objects.meta import ObjectMeta
from extender.values.objects.pod import Pod, PodResourceClaim, TopologySpreadConstraint
from extender.values.objects.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus
from tests.kit.devices import make_device_class, make_slice
from tests.kit.owners import owned_by
from tests.kit.tables import cases

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SSD = label_term("disk", "In", "ssd")
TIER_AND_DISK = [*label_term("tier", "Exists").match_expressions, *SSD.match_expressions]
DROP_SSD = 'drop "disk In (ssd)" from the node affinity'
PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]


def fixes_for(
    snapshot: Snapshot, pod: Pod, *, framework: Framework = PROFILE, nominations: Nominations = NO_NOMINATIONS
) -> tuple[Fix, ...]:
    evaluation = asyncio.run(evaluate(Cycle(framework, snapshot, pod, nominations)))
    return fixes(
        evaluation, Refusals.of(evaluation), Advice(framework, snapshot, pod, nominations), framework, pod, nominations
    )


def offers(nodes: Sequence[NodeBuilder], pods: Sequence[PodBuilder], pod: PodBuilder) -> list[tuple[str, str, int]]:
    """(kind, text, how many nodes it opens)."""
    return [(fix.kind, fix.text, fix.opens) for fix in fixes_for(make_snapshot(*nodes, pods=pods), pod.obj())]


def node(name: str, cpu: int = 4) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi").label({HOST: name, ZONE: f"z{name[-1]}"})


def nodes(*names: str) -> list[NodeBuilder]:
    return [node(name) for name in names]


def on(name: str, place: str) -> PodBuilder:
    """A pod that nobody can preempt."""
    return make_pod(name).node(place).label(app="web").priority(CRITICAL)


CRITICAL = 2_000_000_000
DAEMON = PodBuilder(owned_by(on("daemon", "a").req(cpu=1).obj(), "DaemonSet", "d"))
WEB = make_pod("web-9").label(app="web")


@cases(
    "cluster, running, pod, expected",
    # Requests.
    (
        "as much as is free somewhere, and not more nodes than really have it",
        nodes("a", "b", "c"),
        [on("1", "a").req(cpu=1), on("2", "b").req(cpu=2), on("3", "c").req(cpu=1)],
        WEB.req(cpu=4),
        [("request", "ask for 3 of cpu instead of 4", 2), ("node", "add a node like a", 1)],
    ),
    (
        "less of this or less of that",
        nodes("a", "b"),
        [on("1", "a").req(cpu=1), on("2", "b").req(memory="2Gi")],
        WEB.req(cpu=4, memory="8Gi"),
        [
            ("request", "ask for 3 of cpu instead of 4", 1),
            ("request", "ask for 6Gi of memory instead of 8Gi", 1),
            ("node", "add a node like a", 1),
        ],
    ),
    (
        "less of both where both are short",
        nodes("a"),
        [on("1", "a").req(cpu="500m", memory="4Gi")],
        WEB.req(cpu=4, memory="8Gi"),
        [
            ("request", "ask for 3.5 of cpu instead of 4 and 4Gi of memory instead of 8Gi", 1),
            ("node", "add a node like a", 1),
        ],
    ),
    (
        "containers give in by the same share, and overhead stays",
        nodes("a"),
        [],
        WEB.req(cpu=3).req(cpu=3).overhead(cpu="100m"),
        [("request", "ask for 4 of cpu instead of 6.1", 1)],
    ),
    (
        "what cannot be halved is rounded down, and told so",
        [make_node("a").capacity({"cpu": 4, "example.com/gpu": 3})],
        [],
        WEB.req({"example.com/gpu": 2}).req({"example.com/gpu": 2}),
        [("request", "ask for 2 of example.com/gpu instead of 4", 1)],
    ),
    ("to ask for none is no advice", nodes("a"), [], WEB.req({"example.com/gpu": 1}), []),
    ("nor is less than nothing, where overhead takes all", nodes("a"), [], WEB.req(cpu=1).overhead(cpu=4), []),
    (
        "a smaller pod is still a pod",
        [make_node("a").capacity(cpu=4, pods=1)],
        [on("1", "a")],
        WEB,
        [("node", "add a node like a", 1)],
    ),
    # Taints and cordons.
    (
        "for each list of taints what is not tolerated of it",
        [
            node("a").taint("gpu", "yes"),
            node("b").taint("gpu", "yes"),
            node("c").taint("team", "red", "NoExecute").taint("x"),
        ],
        [],
        WEB,
        [
            ("toleration", "tolerate the taint gpu=yes:NoSchedule", 2),
            ("toleration", "tolerate the taints team=red:NoExecute and x:NoSchedule", 1),
        ],
    ),
    (
        "a node that is ill is to be cured, not tolerated",
        [node("a").taint("node.kubernetes.io/not-ready", "", "NoExecute")],
        [],
        WEB,
        [("node", "remove the taint node.kubernetes.io/not-ready:NoExecute from nodes", 1)],
    ),
    (
        "a cordoned node is to be uncordoned, whichever plugin says so",
        [node("a").taint("node.kubernetes.io/unschedulable").unschedulable()],
        [],
        WEB,
        [("node", "uncordon nodes", 1)],
    ),
    # Labels.
    (
        "entries of the node selector, one by one and together",
        [node("a").label(disk="ssd"), node("b").label(gpu="yes"), node("c").label(gpu="yes")],
        [],
        WEB.node_selector(disk="ssd", gpu="yes"),
        [
            ("affinity", "drop the node selector", 3),
            ("affinity", "drop disk=ssd from the node selector", 2),
            ("affinity", "drop gpu=yes from the node selector", 1),
        ],
    ),
    (
        "the only entry",
        [node("a").label(disk="hdd")],
        [],
        WEB.node_selector(disk="ssd"),
        [("affinity", "drop disk=ssd from the node selector", 1)],
    ),
    (
        "a term that is emptied goes, and the other still asks",
        [node("a").label(disk="ssd"), node("b")],
        [],
        WEB.node_affinity(label_term("disk", "In", "nvme", "ram"), label_term("tier", "Exists")),
        [("affinity", "drop the required node affinity", 2)],
    ),
    (
        "a requirement of two terms goes from both, and from one it leaves nothing",
        [node("a").label(tier="web"), node("b")],
        [],
        WEB.node_affinity(replaced(label_term("tier", "Exists"), match_expressions=TIER_AND_DISK), SSD),
        [("affinity", "drop the required node affinity", 2), ("affinity", DROP_SSD, 1)],
    ),
    (
        "terms that say the same leave nothing",
        [node("a"), node("b")],
        [],
        WEB.node_affinity(SSD, SSD),
        [("affinity", 'drop the required node affinity, "disk In (ssd)"', 2)],
    ),
    (
        "a term that matches stays beside one that names a node",
        [node("a").label(disk="ssd"), node("b")],
        [],
        WEB.node_affinity(SSD, name_term("In", "gone")).node_selector(zone="z"),
        [
            ("affinity", "drop the node selector and the required node affinity", 2),
            ("affinity", "drop zone=z from the node selector", 1),
        ],
    ),
    (
        "a node that is no more",
        nodes("a", "b"),
        [],
        WEB.node_affinity(name_term("In", "gone")),
        [("affinity", 'drop the required node affinity, "metadata.name In (gone)"', 2)],
    ),
    (
        "what PreFilter has refused",
        nodes("a"),
        [],
        WEB.node_affinity(name_term("In")),
        [("affinity", 'drop the required node affinity, "metadata.name In"', 1)],
    ),
    # Other pods.
    (
        "anti-affinity",
        nodes("a", "b"),
        [on("1", "a"), on("2", "b")],
        WEB.pod_anti_affinity(HOST, app="web"),
        [("affinity", f"drop the required pod anti-affinity over {HOST}", 2)],
    ),
    (
        "the term, where several are over one key",
        nodes("a", "b"),
        [on("1", "a").label(app="db")],
        WEB.pod_affinity(HOST, app="cache").pod_affinity(HOST, app="db"),
        [
            ("affinity", "drop the required pod affinity", 2),
            ("affinity", f"drop the required pod affinity over {HOST}, term 1 of 2", 1),
        ],
    ),
    (
        "terms of which each is in the way",
        nodes("a", "b"),
        [],
        WEB.pod_affinity(ZONE, app="db").pod_affinity(HOST, app="cache"),
        [("affinity", "drop the required pod affinity", 2)],
    ),
    (
        "where others do not want the pod, nothing it gives up helps",
        nodes("a", "b"),
        [on("db", "a").label(app="db").pod_anti_affinity(HOST, app="web")],
        WEB.pod_affinity(HOST, app="db"),
        [("affinity", f"drop the required pod affinity over {HOST}", 1)],
    ),
    (
        "host ports",
        nodes("a", "b"),
        [on("1", "a").host_port(80), on("2", "b").host_port(80).host_port(81)],
        WEB.host_port(80).host_port(81),
        [
            ("ports", "free or drop the host ports 80/TCP and 81/TCP", 2),
            ("ports", "free or drop the host port 80/TCP", 1),
            ("node", "add a node like a", 1),
        ],
    ),
    (
        "a greater skew",
        nodes("a", "b", "c"),
        [on("1", "a"), on("2", "a"), on("3", "b"), on("4", "b"), on("5", "b"), on("6", "c").req(cpu=4)],
        WEB.req(cpu=1).spread(1, ZONE, app="web"),
        [
            ("spread", f"only prefer to spread over {ZONE} (ScheduleAnyway)", 2),
            ("spread", f"allow a maxSkew of 2 over {ZONE} instead of 1", 1),
        ],
    ),
    (
        "a node without the label is let in by no skew",
        [make_node("a").capacity(cpu=4)],
        [],
        WEB.spread(1, ZONE, app="web"),
        [("spread", f"only prefer to spread over {ZONE} (ScheduleAnyway)", 1)],
    ),
    # Several at once.
    (
        "all that is in the way on the nearest node, if nothing less helps",
        [node("a").taint("gpu")],
        [on("1", "a").req(cpu=2)],
        WEB.req(cpu=4).node_selector(disk="ssd"),
        [("other", "tolerate the taint gpu:NoSchedule, drop the node selector, and ask for 2 of cpu instead of 4", 1)],
    ),
    (
        "but only then",
        [node("a").taint("gpu"), node("b")],
        [on("1", "a").req(cpu=2), on("2", "b").req(cpu=3)],
        WEB.req(cpu=4),
        [("request", "ask for 1 of cpu instead of 4", 1), ("node", "add a node like b", 1)],
    ),
    # Gates.
    ("a gate", nodes("a", "b"), [], WEB.gate("quota"), [("gate", "remove the scheduling gate quota", 2)]),
    (
        "several gates",
        nodes("a"),
        [],
        WEB.gate("x").gate("y").gate("z"),
        [("gate", "remove the scheduling gates x, y and z", 1)],
    ),
    (
        "a gate is not all",
        nodes("a"),
        [],
        WEB.req(cpu=5).gate("quota"),
        [("request", "ask for 4 of cpu instead of 5, and remove the scheduling gate quota", 1)],
    ),
    # Nothing to mend.
    ("a pod that fits", nodes("a"), [], WEB.req(cpu=1), []),
    ("no node at all", [], [], WEB, []),
)
def test_fixes_name_each_change_that_opens_nodes(
    cluster: list[NodeBuilder], running: list[PodBuilder], pod: PodBuilder, expected: list[tuple[str, str, int]]
) -> None:
    assert offers(cluster, running, pod) == expected


def test_letting_a_pod_preempt_is_suggested_when_it_may_not() -> None:
    running = [
        make_pod("1").node("a").req(cpu=4),
        make_pod("2").node("b").req(cpu=4).priority(9),
        make_pod("3").node("c").req(cpu=4),
    ]
    snapshot = make_snapshot(*nodes("a", "b", "c"), pods=running)

    suggestions = fixes_for(snapshot, WEB.req(cpu=4).priority(5).preemption_policy("Never").obj())
    (preempting,) = (fix for fix in suggestions if fix.kind == "preemption")

    assert (preempting.text, preempting.nodes) == ("let it preempt (preemptionPolicy PreemptLowerPriority)", ("a", "c"))
    assert preempting.objects[0]["preemptionPolicy"] == "PreemptLowerPriority"


@cases(
    "priorities, text, opens",
    ("the lowest that helps", [30, 20, 20, 40], "give it a priority above 20, so that it may preempt", 2),
    ("above its own", [7], "give it a priority above 7, so that it may preempt", 1),
    ("never above what is critical", [CRITICAL, 50], "give it a priority above 50, so that it may preempt", 1),
    ("which no user may be", [CRITICAL], "", 0),
)
def test_priority_at_which_preemption_would_help_is_suggested(priorities: list[int], text: str, opens: int) -> None:
    running = [make_pod(f"p{n}").node(f"n{n}").req(cpu=4).priority(priority) for n, priority in enumerate(priorities)]
    snapshot = make_snapshot(*nodes(*(f"n{n}" for n in range(len(priorities)))), pods=running)

    suggestions = fixes_for(snapshot, WEB.req(cpu=4).priority(7).obj())
    preemptions = [(fix.text, fix.opens) for fix in suggestions if fix.kind == "preemption"]

    assert preemptions == ([(text, opens)] if text else [])


def test_no_greater_priority_is_asked_for_where_preemption_works_already() -> None:
    snapshot = make_snapshot(node("a"), pods=[make_pod("1").node("a").req(cpu=4)])

    assert [fix.text for fix in fixes_for(snapshot, WEB.req(cpu=4).priority(1).obj())] == ["add a node like a"]


@cases(
    "cluster, running, pod, like",
    ("the nearest one", nodes("a", "b"), [on("1", "a").req(cpu=3), on("2", "b").req(cpu=2)], WEB.req(cpu=4), "b"),
    (
        "large enough",
        [node("a", cpu=4), node("b", cpu=8)],
        [on("1", "a").req(cpu=1), on("2", "b").req(cpu=8)],
        WEB.req(cpu=6),
        "b",
    ),
    (
        "labels",
        [node("a").label(disk="ssd"), node("b")],
        [on("1", "a").req(cpu=4)],
        WEB.req(cpu=4).node_selector(disk="ssd"),
        "a",
    ),
    ("its taints", [node("a").taint("gpu")], [on("1", "a").req(cpu=1)], WEB.req(cpu=4), ""),
    ("cordoned nodes are no example", [node("a").unschedulable()], [], WEB, ""),
    ("a DaemonSet would be there, too", nodes("a"), [DAEMON], WEB.req(cpu=4), ""),
    ("which may leave enough", nodes("a"), [DAEMON, on("1", "a").req(cpu=1)], WEB.req(cpu=3), "a"),
    ("a name is not had twice", nodes("a"), [on("1", "a").req(cpu=4)], WEB.req(cpu=4).node_selector({HOST: "a"}), ""),
    (
        "whatever is said of names",
        nodes("a"),
        [on("1", "a").req(cpu=4)],
        WEB.req(cpu=4).node_affinity(name_term("NotIn", "b")),
        "",
    ),
    (
        "spread constraint on the zone",
        nodes("a"),
        [on("1", "a").req(cpu=4)],
        WEB.req(cpu=4).spread(1, ZONE, app="web"),
        "",
    ),
)
def test_one_more_node_of_a_kind_that_would_take_the_pod(
    cluster: list[NodeBuilder], running: list[PodBuilder], pod: PodBuilder, like: str
) -> None:
    added = [text for kind, text, _ in offers(cluster, running, pod) if text.startswith("add")]

    assert added == ([f"add a node like {like}"] if like else [])


def test_volumes_are_named_with_their_claims() -> None:
    lost = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data", namespace="default"), status=PersistentVolumeClaimStatus(phase="Lost")
    )
    snapshot = make_snapshot(*nodes("a", "b"), objects=[lost])

    assert [(fix.kind, fix.text, fix.opens) for fix in fixes_for(snapshot, WEB.claim("data").obj())] == [
        ("volume", "drop the volume v0 (claim data)", 2)
    ]


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        (["data"], "create the PersistentVolumeClaim data, or drop the volume v0 (claim data)"),
        (
            ["data", "logs"],
            "create the PersistentVolumeClaims data and logs, or drop the volumes v0 (claim data) and v1 (claim logs)",
        ),
    ],
)
def test_creating_missing_volume_claims_is_suggested(claims: list[str], text: str) -> None:
    pod = WEB
    for claim in claims:
        pod = pod.claim(claim)

    assert [(fix.kind, fix.text, fix.opens) for fix in fixes_for(make_snapshot(*nodes("a", "b")), pod.obj())] == [
        ("volume", text, 2)
    ]


def with_resource_claims(*claims: PodResourceClaim) -> Pod:
    pod = WEB.obj()
    return replaced(pod, spec=replaced(pod.spec, resource_claims=list(claims)))


def test_resource_claims() -> None:
    pod = with_resource_claims(PodResourceClaim(name="gpu", resource_claim_template_name="not-made-yet"))

    assert [(fix.kind, fix.text, fix.opens) for fix in fixes_for(make_snapshot(node("a")), pod)] == [
        ("other", "drop the resource claim gpu", 1)
    ]


def test_creating_missing_resource_claims_is_suggested() -> None:
    pod = with_resource_claims(
        *(PodResourceClaim(name=name, resource_claim_name=f"the-{name}") for name in ("gpu", "nic"))
    )

    assert [(fix.kind, fix.text, fix.opens) for fix in fixes_for(make_snapshot(node("a")), pod)] == [
        ("other", "create the ResourceClaims the-gpu and the-nic, or drop the resource claims gpu and nic", 1)
    ]


def test_extended_resources_that_a_device_class_backs() -> None:
    """As many as a node has devices free would do."""
    snapshot = make_snapshot(
        node("a"),
        node("b"),
        objects=[make_device_class("gpu", backs="example.com/gpu"), make_slice("gpu-1", nodeName="a")],
    )
    pod = WEB.req({"example.com/gpu": 2}).obj()

    evaluation = asyncio.run(evaluate(Cycle(PROFILE, snapshot, pod, NO_NOMINATIONS)))

    assert evaluation.message.startswith(
        "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: "
    )
    assert [(fix.kind, fix.text, fix.opens) for fix in fixes_for(snapshot, pod)] == [
        ("other", "drop the extended resource example.com/gpu", 2),
        ("request", "ask for 1 of example.com/gpu instead of 2", 1),
    ]


def test_constraints_of_the_profile_are_not_the_pods_to_change() -> None:
    constraint = TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    args = PodTopologySpreadArgs(default_constraints=(constraint,), defaulting_type="List")
    framework = make_framework(NodeResourcesFit, lambda _, handle: PodTopologySpread(args, handle))
    service = Service(
        metadata=ObjectMeta(name="web", namespace="default"), spec=MapSelectorSpec(selector={"app": "web"})
    )
    snapshot = make_snapshot(
        *nodes("a", "b"), pods=[on("1", "a"), on("2", "b").req(cpu=4), on("3", "a")], objects=[service]
    )

    evaluation = asyncio.run(evaluate(Cycle(framework, snapshot, WEB.req(cpu=1).obj(), NO_NOMINATIONS)))

    assert "didn't match pod topology spread constraints" in evaluation.message
    assert fixes_for(snapshot, WEB.req(cpu=1).obj(), framework=framework) == ()


def test_room_of_nominated_pods_is_not_offered() -> None:
    cache = make_cache(node("a"))
    first = make_pod("first").req(cpu=3).priority(5).obj()
    nominations = Nominations({"a": ((cache.nominate(first), first),)})

    suggestions = fixes_for(cache.update_snapshot(), WEB.req(cpu=2).obj(), nominations=nominations)

    assert [fix.text for fix in suggestions] == ["ask for 1 of cpu instead of 2", "add a node like a"]


class Suspicious(fwk.FilterPlugin):
    """Cannot judge pods that tolerate anything."""

    def filter(self, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Verdicts:
        if pod.spec.tolerations:
            raise ValueError("tolerant pods are odd")
        return fwk.accept(len(rows))


def test_a_change_that_a_plugin_cannot_judge_is_no_advice() -> None:
    tainted = make_snapshot(node("a").taint("gpu"))

    assert fixes_for(tainted, WEB.obj(), framework=make_framework(TaintToleration, Suspicious)) == ()
    assert len(fixes_for(tainted, WEB.obj(), framework=make_framework(TaintToleration))) == 1


def test_some_of_the_nodes_are_named() -> None:
    names = [f"n{number}" for number in range(9)]

    (fix,) = fixes_for(make_snapshot(*nodes(*names)), WEB.node_selector(disk="ssd").obj())

    assert (fix.opens, fix.nodes) == (9, ("n0", "n1", "n2", "n3", "n4"))


@pytest.mark.parametrize("seed", range(60))
def test_each_fix_opens_exactly_the_nodes_that_the_scheduler_finds(seed: int) -> None:
    """Whatever the cluster: the pod, changed as the fix says, fits on as many nodes, and on these."""
    cluster = random_cluster(random.Random(seed))
    snapshot, pod = cluster.snapshot(), cluster.pod
    evaluation = asyncio.run(evaluate(Cycle(PROFILE, snapshot, pod, NO_NOMINATIONS)))
    refusals = Refusals.of(evaluation)
    advice = Advice(PROFILE, snapshot, pod, NO_NOMINATIONS)
    fixed = {fix.text: fix for fix in fixes(evaluation, refusals, advice, PROFILE, pod, NO_NOMINATIONS)}
    nearest = np.zeros(0, np.intp) if refusals is None else nearest_places(refusals, advice)
    plugins = [name for name, _ in PROFILE.plugins.filter]
    together = () if refusals is None else advice.for_all_plugins(refusals, nearest)

    suggestions = [one for one in (*advice.for_one_plugin(plugins, refusals, nearest), *together) if one.text in fixed]

    assert not (evaluation.feasible and fixed)
    for suggestion in suggestions:
        feasible = asyncio.run(evaluate(Cycle(PROFILE, snapshot, suggestion.pod, NO_NOMINATIONS))).feasible
        fix = fixed[suggestion.text]
        assert (fix.opens, fix.nodes) == (len(feasible), feasible[:5])

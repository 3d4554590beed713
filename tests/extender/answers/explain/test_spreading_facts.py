"""What is said of the domains of a spread constraint to a pod that none takes, and which remedies fit that."""

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any

from extender.answers.explain.explanation import explain
from extender.answers.types import Explanation
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.registry import Registry
from extender.testing import NodeBuilder, PodBuilder, make_node, make_pod, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.grouping import Service
from extender.values.objects.meta import HasMetadata, LabelSelector
from extender.values.objects.pod import Pod, TopologySpreadConstraint
from tests.kit.tables import cases

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]
ZONE = "zone"


def node(name: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=4).label({ZONE: name[0].upper()})


def on(place: str, name: str = "", **labels: str) -> PodBuilder:
    return make_pod(name or f"on-{place}").node(place).label(labels or {"app": "a"})


def spreading(*, labels: dict[str, str] | None = None, cpu: int = 0, **changes: Any) -> Pod:
    pod = make_pod("new").label(labels or {"app": "a"}).req(cpu=cpu).obj()
    selector = LabelSelector(match_labels={"app": "a"})
    over = TopologySpreadConstraint(
        max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=selector
    )
    return replaced(pod, spec=replaced(pod.spec, topology_spread_constraints=[replaced(over, **changes)]))


def explained(
    nodes: Sequence[NodeBuilder],
    pods: Sequence[PodBuilder],
    pod: Pod | None = None,
    *objects: HasMetadata,
    profile: Framework = PROFILE,
) -> Explanation:
    snapshot = make_snapshot(*nodes, pods=pods, objects=objects)
    return asyncio.run(explain(profile, snapshot, pod or spreading(), NO_NOMINATIONS))


OVER = "maxSkew 1 over zone: "


@cases(
    "nodes, pods, pod, text",
    (
        "cordoned",
        [node("a1"), node("b1").unschedulable()],
        [on("a1")],
        spreading(),
        f"{OVER}B has 0, A has 1; B takes none: its node is cordoned",
    ),
    (
        "tainted",
        [node("a1"), node("b1").taint("gpu")],
        [on("a1")],
        spreading(),
        f"{OVER}B has 0, A has 1; B takes none: its node is tainted",
    ),
    (
        "full",
        [node("a1"), node("b1"), node("b2").unschedulable()],
        [on("a1"), on("b1", app="b").req(cpu=4)],
        spreading(cpu=1),
        f"{OVER}B has 0, A has 1; B takes none: its 2 nodes are 1 full and 1 cordoned",
    ),
    (
        "terminating",
        [node("a1"), node("b1").unschedulable()],
        [on("a1"), on("b1").terminating()],
        spreading(),
        f"{OVER}B has 0, A has 1; B takes none: its node is cordoned; 1 terminating pod of B does not count",
    ),
    (
        "too few domains",
        [node("a1"), node("b1")],
        [on("a1"), on("b1")],
        spreading(min_domains=3),
        f"{OVER}A has 1, B has 1; there are 2 domains and minDomains is 3, so the smallest counts as 0",
    ),
    (
        "many",
        [node(f"{letter}1") for letter in "abcdefghijkl"] + [node("x1").unschedulable()],
        [on(f"{letter}1") for letter in "abcdefghijkl"],
        spreading(),
        f"{OVER}X has 0, {', '.join(f'{letter} has 1' for letter in 'ABCDEFGHI')}, 3 more have 1; X takes none: "
        "its node is cordoned",
    ),
)
def test_domains_are_counted_and_the_smallest_is_explained(
    nodes: list[NodeBuilder], pods: list[PodBuilder], pod: Pod, text: str
) -> None:
    facts = explained(nodes, pods, pod).facts

    assert [fact.text for fact in facts if fact.plugin == "PodTopologySpread"] == [text]


def test_nodes_without_the_label_are_counted() -> None:
    facts = explained([make_node("n").capacity(cpu=4)], []).facts

    assert [fact.text for fact in facts] == ["1 node without the label zone, over which it spreads"]


@cases(
    "nodes, pods, pod, text",
    (
        "a tainted node",
        [node("a1"), node("b1").taint("gpu")],
        [on("a1")],
        spreading(),
        "leave nodes with taints out of the spreading over zone (nodeTaintsPolicy: Honor)",
    ),
    (
        "a cordoned node",
        [node("a1"), node("b1").unschedulable().taint("node.kubernetes.io/unschedulable")],
        [on("a1")],
        spreading(),
        "leave nodes with taints out of the spreading over zone (nodeTaintsPolicy: Honor)",
    ),
    (
        "a domain is missing",
        [node("a1"), node("b1")],
        [on("a1"), on("b1")],
        spreading(min_domains=3),
        "ask for minDomains 2 over zone instead of 3",
    ),
    (
        "a domain is tainted",
        [node("a1"), node("b1").taint("gpu")],
        [on("a1")],
        spreading(node_taints_policy="Honor", min_domains=2),
        "ask for minDomains 1 over zone instead of 2",
    ),
    (
        "a full node",
        [node("a1"), node("b1")],
        [on("a1"), on("b1", app="b").req(cpu=4)],
        spreading(cpu=1),
        "allow a maxSkew of 2 over zone instead of 1",
    ),
)
def test_first_remedy_of_spreading_fits_what_is_wrong(
    nodes: list[NodeBuilder], pods: list[PodBuilder], pod: Pod, text: str
) -> None:
    fixes = explained(nodes, pods, pod).fixes

    assert next(fix.text for fix in fixes if fix.kind == "spread") == text


@cases(
    "running, is_offered",
    ("a pod with the same labels", [on("a1")], False),
    ("another pod that is counted", [on("a1", app="a", tier="web")], True),
    ("another pod that is in nobody's way", [on("a1"), on("a1", "other", app="b")], False),
    ("both would have to go", [on("a1").priority(5), on("a1", "other", app="a", of="another")], False),
)
def test_priority_is_not_offered_where_the_own_workload_would_pay_for_it(
    running: list[PodBuilder], is_offered: bool
) -> None:
    fixes = explained([node("a1"), node("b1").unschedulable()], running).fixes

    assert any(fix.kind == "preemption" for fix in fixes) is is_offered


def test_default_constraints_of_the_profile_are_explained_for_the_pods_of_a_service() -> None:
    over = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [over]}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}],
    }
    profile = Registry(IN_TREE, []).make_frameworks(load(json.dumps(configuration).encode()), random.Random(0))
    service = convert(Service, {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "a"}}})
    nodes, pods = [node("a1"), node("b1").unschedulable()], [on("a1")]

    pod = make_pod("new").label(app="a").obj()
    explanation = explained(nodes, pods, pod, service, profile=profile["default-scheduler"])

    assert [fact.text for fact in explanation.facts] == [
        "maxSkew 1 over zone, by default of the profile: B has 0, A has 1; B takes none: its node is cordoned"
    ]

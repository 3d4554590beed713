"""What is said of labels, ports, resources and other pods to a pod that no node meets, and what is nearest."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from extender.answers.explain.explanation import explain
from extender.answers.redaction import HIDDEN_POD, redacted
from extender.answers.types import Explanation
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS
from extender.engine.runtime.registry import Registry
from extender.testing import NodeBuilder, PodBuilder, label_term, make_node, make_pod, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import convert
from extender.values.objects.grouping import Namespace
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod
from tests.kit.tables import cases

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]
POD = make_pod("p")


def node(name: str, **labels: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=4).label({"host": name, **labels})


def explained(nodes: Sequence[NodeBuilder], pod: Pod, *pods: Pod, objects: Sequence[Namespace] = ()) -> Explanation:
    snapshot = make_snapshot(*nodes, pods=pods, objects=objects)
    return asyncio.run(explain(PROFILE, snapshot, pod, NO_NOMINATIONS))


def fact_texts(nodes: Sequence[NodeBuilder], pod: Pod, *pods: Pod, objects: Sequence[Namespace] = ()) -> list[str]:
    return [fact.text for fact in explained(nodes, pod, *pods, objects=objects).facts]


SSD = [node(f"s{number}", disk="ssd") for number in range(4)]


@cases(
    "nodes, pod, texts",
    ("another key", SSD, POD.node_selector(disktype="sdd"), ["no node has disktype=sdd; disk=ssd on 4"]),
    (
        "another value",
        [*SSD, node("h", disk="hdd")],
        POD.node_selector(disk="sdd"),
        ["no node has disk=sdd; disk=ssd on 4, disk=hdd on 1"],
    ),
    ("nothing is like it", SSD, POD.node_selector(rack="r"), ["no node has rack=r"]),
    (
        "an affinity",
        SSD,
        POD.node_affinity(label_term("disk", "In", "hdd", "tape")),
        ["no node has disk In (hdd, tape); disk=ssd on 4"],
    ),
    (
        "no node has both",
        [node("a", disk="ssd"), node("b", zone="z"), node("c", zone="z")],
        POD.node_selector(disk="ssd", zone="z"),
        ["of 3 nodes: disk=ssd on 1, zone=z on 2"],
    ),
)
def test_label_that_no_node_has_is_named_with_the_nearest(
    nodes: list[NodeBuilder], pod: PodBuilder, texts: list[str]
) -> None:
    assert fact_texts(nodes, pod.obj()) == texts


def test_taints_are_named_for_the_nodes_that_have_them() -> None:
    facts = explained(
        [node("a").taint("gpu", "yes"), node("b").taint("gpu", "yes"), node("c").taint("x")], POD.obj()
    ).facts

    assert [(fact.text, fact.nodes) for fact in facts] == [
        ("tainted gpu=yes:NoSchedule", ("a", "b")),
        ("tainted x:NoSchedule", ("c",)),
    ]


def test_cordon_is_not_said_twice() -> None:
    assert fact_texts([node("a").unschedulable().taint("node.kubernetes.io/unschedulable")], POD.obj()) == []


def with_port(name: str, where: str = "", namespace: str = "default") -> Pod:
    ports = [{"containerPort": 80, "hostPort": 80}]
    spec = {"containers": [{"name": "c", "ports": ports}], "nodeName": where}
    return convert(Pod, {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": spec})


def test_pod_that_has_a_host_port_is_named_to_those_who_may_see_it() -> None:
    explanation = explained([node("a")], with_port("p"), with_port("web", "a", "other"))

    assert [fact.text for fact in explanation.facts] == ["the host port 80/TCP is taken by other/web"]
    assert [fact.text for fact in redacted(explanation, {"default"}).facts] == [
        f"the host port 80/TCP is taken by {HIDDEN_POD}"
    ]


@pytest.mark.parametrize(
    ("resource", "texts"),
    [
        ("nvidia.com/gpumem", ["no node offers nvidia.com/gpumem: is its device plugin running?"]),
        ("example.com/fpga", ["no node offers example.com/fpga: is its device plugin running?"]),
        ("hugepages-2Mi", ["no node offers hugepages-2Mi"]),
        ("cpu", []),
    ],
)
def test_resource_that_no_node_offers_is_named(resource: str, texts: list[str]) -> None:
    assert fact_texts([node("a"), node("b")], POD.req({resource: 8}).obj()) == texts


@pytest.mark.parametrize(
    ("reason", "status", "texts"),
    [
        ("Deferred", "True", ["the resize of default/r is deferred, and what it asks for counts"]),
        ("Infeasible", "True", ["the resize of default/r is infeasible"]),
        ("Deferred", "False", []),
    ],
)
def test_resize_that_is_not_done_is_named(reason: str, status: str, texts: list[str]) -> None:
    resized = make_pod("r").node("a").req(cpu=1).obj()
    resized.status.conditions.append(Condition(type="PodResizePending", status=status, reason=reason))

    assert fact_texts([node("a")], POD.req(cpu=4).obj(), resized) == texts


@pytest.mark.parametrize(
    ("kind", "running", "text"),
    [
        ("podAffinity", [], "affinity to app=db: 0 such pods, in 0 of 2 values of host"),
        ("podAffinity", ["b"], "affinity to app=db: 1 such pod, in 1 of 2 values of host"),
        ("podAntiAffinity", ["a", "b"], "anti-affinity to app=db: 2 such pods, in 2 of 2 values of host"),
    ],
)
def test_pods_of_a_required_term_are_counted(kind: str, running: list[str], text: str) -> None:
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "db"}}}
    stanza = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    wanting = {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": {"affinity": stanza}}
    pods = [make_pod(f"db-{place}").label(app="db").node(place).obj() for place in running]

    assert text in fact_texts([node("a"), node("b").unschedulable()], convert(Pod, wanting), *pods)


def demanding(name: str, kind: str, **term: Any) -> PodBuilder:
    """A pod that demands something of pods with app=db over hosts, with these further members of its term."""
    full = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "db"}}, **term}
    spec = {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [full]}}}
    return PodBuilder(convert(Pod, {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}))


NAMESPACES = [
    convert(Namespace, {"metadata": {"name": name, "labels": {"team": team}}})
    for name, team in (("default", "a"), ("shop", "a"), ("bank", "b"))
]


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ({"namespaces": ["shop"]}, "app=db in the namespace shop: 1 such pod, in 1 of 2 values of host"),
        ({"namespaces": ["shop", "bank"]}, "app=db in the namespaces shop and bank: 3 such pods, in 2 of 2 values"),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, "app=db in namespaces with team=a: 1 such pod, in 1"),
        (
            {"namespaces": ["bank"], "namespaceSelector": {"matchLabels": {"team": "a"}}},
            "app=db in the namespace bank and namespaces with team=a: 3 such pods, in 2 of 2 values of host",
        ),
        ({"namespaceSelector": {}}, "app=db in every namespace: 3 such pods, in 2 of 2 values of host"),
    ],
)
def test_pods_of_a_term_are_counted_in_the_namespaces_that_it_selects(term: dict[str, Any], text: str) -> None:
    pods = [
        make_pod(name).namespace(namespace).label(app="db").node(place).obj()
        for name, namespace, place in (("one", "shop", "a"), ("two", "bank", "a"), ("three", "bank", "b"))
    ]

    nodes = [node("a").unschedulable(), node("b").unschedulable()]

    facts = fact_texts(nodes, demanding("p", "podAntiAffinity", **term).obj(), *pods, objects=NAMESPACES)

    assert any(fact.startswith(f"anti-affinity to {text}") for fact in facts)


@cases(
    "existing, texts",
    (
        "of a host",
        [demanding("alone", "podAntiAffinity").node("a")],
        ["the anti-affinity of default/alone to app=db keeps it out of host=a"],
    ),
    (
        "of several pods in a zone",
        [demanding(name, "podAntiAffinity", topologyKey="zone").node("a") for name in ("one", "two", "three")],
        ["the anti-affinity of default/one to app=db, and of 2 others, keeps it out of zone=z"],
    ),
    (
        "of another namespace, whose term is not shown",
        [demanding("alone", "podAntiAffinity", namespaces=["default"]).namespace("bank").node("b")],
        ["the anti-affinity of bank/alone keeps it out of host=b"],
    ),
    ("against others", [demanding("alone", "podAntiAffinity", namespaces=["shop"]).node("b")], []),
)
def test_existing_pod_whose_anti_affinity_keeps_a_pod_away_is_named(
    existing: list[PodBuilder], texts: list[str]
) -> None:
    nodes = [node("a", zone="z").unschedulable(), node("b", zone="z").unschedulable()]
    pod = make_pod("p").label(app="db").obj()

    assert fact_texts(nodes, pod, *(one.obj() for one in existing), objects=NAMESPACES) == texts


def test_existing_pod_that_may_not_be_seen_is_not_named() -> None:
    existing = demanding("alone", "podAntiAffinity", namespaces=["default"]).namespace("bank").node("a").obj()
    answer = explained([node("a")], make_pod("p").label(app="db").obj(), existing, objects=NAMESPACES)

    (fact,) = redacted(answer, {"default"}).facts

    assert "alone" not in fact.text and fact.text.endswith("keeps it out of host=a")


def test_feature_of_kubelets_that_a_pod_needs_is_named() -> None:
    nodes = [node("a"), node("b").declared_features("UserNamespacesHostNetworkSupport").unschedulable()]

    facts = fact_texts(nodes, POD.host_network(host_users=False).obj())

    assert facts == ["1 of 2 nodes with the feature UserNamespacesHostNetworkSupport"]

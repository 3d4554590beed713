"""Anything is found by parts of its name, and the pods of a workload, a group or a namespace are listed."""

from collections.abc import Container
from typing import Any

import pytest

from extender.answers.overviews import NamespacePods, PodList
from extender.answers.search import Population, find, namespaces_with_pods, pods_of, visible_names
from extender.engine.cache.cluster import Cluster
from extender.testing import make_node, make_pod
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import OwnerReference
from extender.values.objects.pod import Pod, PodSchedulingGroup
from tests.kit.tables import cases


def a_pod(namespace: str, name: str, *, owner: str = "", node: str = "", group: str = "") -> Pod:
    pod = (
        make_pod(name)
        .namespace(namespace)
        .uid(f"{namespace}/{name}")
        .label({"pod-template-hash": "5d9"})
        .node(node)
        .obj()
    )
    kind, _, owned_by = owner.partition("/")
    owners = [OwnerReference(kind=kind, name=owned_by, controller=True)] if owner else []
    scheduling_group = PodSchedulingGroup(pod_group_name=group) if group else None
    return replaced(
        pod,
        metadata=replaced(pod.metadata, owner_references=owners),
        spec=replaced(pod.spec, scheduling_group=scheduling_group),
    )


def people() -> Population:
    return Population.of(cluster_of_people())


def cluster_of_people() -> Cluster:
    cluster = Cluster()
    for node in ("web-node-1", "node-2"):
        cluster.changed(None, make_node(node).obj())
    for pod in (
        a_pod("shop", "web-5d9-a", owner="ReplicaSet/web-5d9", node="node-2"),
        a_pod("shop", "web-5d9-b", owner="ReplicaSet/web-5d9"),
        a_pod("web", "db-0", owner="StatefulSet/db", node="node-2"),
        a_pod("ml", "train-0", owner="Job/train", group="webbing"),
    ):
        cluster.changed(None, pod)
    return cluster


EVERYWHERE = {"shop", "web", "ml"}


def names(query: str, may_see: set[str] = EVERYWHERE, limit: int = 20) -> list[tuple[str, str]]:
    items = visible_names(find(people(), query), may_see, limit).items
    return [(item.kind, f"{item.namespace}/{item.name}") for item in items]


def test_everything_with_the_name_is_found_and_the_exact_name_is_the_first() -> None:
    assert names("web") == [
        ("workload", "shop/Deployment/web"),
        ("namespace", "web/web"),
        ("node", "/web-node-1"),
        ("group", "ml/webbing"),
        ("pod", "shop/web-5d9-a"),
        ("pod", "shop/web-5d9-b"),
        ("workload", "web/StatefulSet/db"),
        ("pod", "web/db-0"),
    ]


@cases(
    "query, expected_names",
    ("all words, in any order", "9-b shop", [("pod", "shop/web-5d9-b")]),
    ("in any case", "NODE-2", [("node", "/node-2")]),
    ("a kind", "deployment", [("workload", "shop/Deployment/web")]),
    ("a kind and a name, as kubectl writes them", "job/tr", [("workload", "ml/Job/train")]),
    ("a pod", "web-5d9-a", [("pod", "shop/web-5d9-a")]),
    ("nothing", "nobody", []),
    ("a slip of the pen", "shop/wbe-5d9-a", [("pod", "shop/web-5d9-a")]),
    ("almost the name of a node", "node-3", [("node", "/node-2")]),
    ("no words", "  ", []),
)
def test_objects_are_found_by_parts_of_names_and_kinds(query: str, expected_names: list[tuple[str, str]]) -> None:
    assert names(query) == expected_names


def test_objects_of_other_namespaces_are_not_found() -> None:
    assert names("web", {"ml"}) == [("node", "/web-node-1"), ("group", "ml/webbing")]
    assert names("train", {"shop"}) == []


def test_many_pods_of_one_namespace_do_not_hide_those_of_another() -> None:
    many = [a_pod("crowd", f"web-{number:03}") for number in range(3 * limits.NAMES_FOUND)]
    crowded = Population([], [*many, a_pod("shop", "web-9")])

    matches = find(crowded, "web")

    assert [item.name for item in visible_names(matches, {"shop"}, 20).items] == ["web-9"]
    assert matches.more
    assert len(matches.items) == limits.NAMES_FOUND + 1


def test_no_more_than_the_limit_are_shown() -> None:
    page = visible_names(find(people(), "web"), EVERYWHERE, 3)

    assert (len(page.items), page.more) == (3, True)


def listed(namespaces: Container[str] = EVERYWHERE, limit: int = 10, **filters: Any) -> PodList:
    return pods_of(people(), namespaces, limit=limit, **filters)


def pod_names(namespaces: Container[str] = EVERYWHERE, **filters: Any) -> list[str]:
    return [pod.pod.name for pod in listed(namespaces, **filters).items]


def test_pods_of_a_namespace_a_workload_and_a_group() -> None:
    shop = listed(namespaces={"shop"})

    assert [(pod.pod.name, pod.node, pod.workload) for pod in shop.items] == [
        ("web-5d9-b", "", "Deployment/web"),
        ("web-5d9-a", "node-2", "Deployment/web"),
    ]
    assert listed(namespaces={"shop"}, workload="Deployment/web").total == 2
    assert listed(namespaces={"shop"}, workload="ReplicaSet/web-5d9").total == 2
    assert listed(namespaces={"shop"}, workload="Deployment/db").total == 0
    assert pod_names(namespaces={"ml"}, group="webbing") == ["train-0"]
    assert listed(namespaces={"ml"}, group="others").items == ()


def test_pods_beyond_the_limit_are_counted() -> None:
    few = listed(limit=1)

    assert (len(few.items), few.total) == (1, 4)


def test_pods_of_namespaces_that_may_not_be_seen_are_neither_listed_nor_counted() -> None:
    assert listed(namespaces={"web", "ml"}).total == 2


@cases(
    "filters, expected",
    ("pending ones first, then by name", {}, ["train-0", "web-5d9-b", "web-5d9-a", "db-0"]),
    ("by namespace and name", {"sort": "name"}, ["train-0", "web-5d9-a", "web-5d9-b", "db-0"]),
    ("the other way round", {"sort": "-name"}, ["db-0", "web-5d9-b", "web-5d9-a", "train-0"]),
    ("by node", {"sort": "-node"}, ["web-5d9-a", "db-0", "train-0", "web-5d9-b"]),
    ("words in the node and the workload", {"query": "NODE-2 statefulset"}, ["db-0"]),
    ("words in the name with its namespace", {"query": "shop/web -b"}, ["web-5d9-b"]),
    ("those that wait", {"state": "pending"}, ["train-0", "web-5d9-b"]),
    ("those that are held back", {"state": "gated"}, []),
)
def test_pods_are_filtered_and_sorted(filters: dict[str, str], expected: list[str]) -> None:
    assert pod_names(**filters) == expected


def test_the_youngest_pod_comes_first_by_age_and_the_oldest_the_other_way_round() -> None:
    pods = [
        replaced(pod, metadata=replaced(pod.metadata, creation_timestamp=f"2026-01-0{day}T00:00:00Z"))
        for day, pod in enumerate((a_pod("shop", "old"), a_pod("shop", "young")), 1)
    ]
    by_age = [pods_of(Population([], pods), {"shop"}, sort=sort, limit=9).items for sort in ("age", "-age")]

    assert [[pod.pod.name for pod in items] for items in by_age] == [["young", "old"], ["old", "young"]]


def test_namespaces_with_their_pods_and_what_those_on_nodes_request() -> None:
    cluster = cluster_of_people()
    for name in ("db-1", "db-2"):
        cluster.changed(
            None, make_pod(name).namespace("web").uid(name).node("node-2").req({"cpu": "250m", "memory": "1Gi"}).obj()
        )

    assert namespaces_with_pods(Population.of(cluster), cluster.cache.update_snapshot()) == (
        NamespacePods(namespace="ml", pods=1, pending=1),
        NamespacePods(namespace="shop", pods=2, pending=1),
        NamespacePods(namespace="web", pods=3, pending=0, requested_cpu=500, requested_memory=2 * 2**30),
    )


@pytest.mark.parametrize(
    ("query", "may_see", "gone_names"),
    [
        ("till", EVERYWHERE | {"bank"}, ["bank/till-0"]),
        ("web old", EVERYWHERE, ["web/old-0"]),
        ("web", {"shop"}, []),
        ("db-0", EVERYWHERE, []),
    ],
    ids=["by its name", "by its namespace", "not where one may not look", "it is still there"],
)
def test_pods_that_are_gone_are_found_as_long_as_they_are_remembered(
    query: str, may_see: set[str], gone_names: list[str]
) -> None:
    population = people()
    remembered = Population(population.nodes, population.pods, {"bank/till-0", "web/old-0", "web/db-0"})

    items = visible_names(find(remembered, query), may_see, 20).items

    assert [f"{item.namespace}/{item.name}" for item in items if item.is_gone] == gone_names

"""Which pods are nominated to which node."""

import pytest

from extender.engine.queue.nominator import Nominator
from extender.testing import PodBuilder, make_pod
from extender.values.objects.pod import Pod
from tests.kit.tables import cases


def nominator_of(*builders: PodBuilder) -> Nominator:
    store: dict[str, Pod] = {pod.key: pod for pod in (builder.obj() for builder in builders)}
    return Nominator(store.get)


def names(nominator: Nominator) -> dict[str, list[str]]:
    return {node: [pod.name for pod in pods] for node, pods in nominator.by_node().items()}


def test_pods_are_listed_in_the_order_of_nomination() -> None:
    nominator = nominator_of(make_pod("a"), make_pod("b"))

    for name in ("b", "a"):
        nominator.add(make_pod(name).obj(), "n1")

    assert names(nominator) == {"n1": ["b", "a"]}
    assert [pod.name for pod in nominator.by_node()["n1"]] == ["b", "a"]


def test_a_second_nomination_replaces_the_first() -> None:
    nominator = nominator_of(make_pod("a"), make_pod("b"))
    for name, node in (("a", "n1"), ("b", "n1"), ("a", "n1")):
        nominator.add(make_pod(name).obj(), node)
    assert names(nominator) == {"n1": ["b", "a"]}

    nominator.add(make_pod("a").obj(), "n2")

    assert names(nominator) == {"n1": ["b"], "n2": ["a"]}


@pytest.mark.parametrize("builders", [[], [make_pod("a").node("n2")]], ids=["gone", "bound"])
def test_a_pod_that_was_deleted_or_has_a_node_loses_its_nomination(builders: list[PodBuilder]) -> None:
    store = {"default/a": make_pod("a").obj()}
    nominator = Nominator(store.get)
    nominator.add(make_pod("a").obj(), "n1")
    store.clear()
    store |= {builder.obj().key: builder.obj() for builder in builders}

    nominator.add(make_pod("a").obj(), "n1")

    assert names(nominator) == {}


@cases(
    "before, after, promised",
    ("the API server has not heard yet: the promise stays", "", "", "ours"),
    ("nominated elsewhere", "", "n2", "n2"),
    ("another node", "n1", "n2", "n2"),
    ("taken back", "n1", "", None),
)
def test_a_nomination_in_the_status_counts_and_its_absence_does_not(
    before: str, after: str, promised: str | None
) -> None:
    nominator = nominator_of(make_pod("a"))
    nominator.add(make_pod("a").obj(), "ours")

    nominator.update(make_pod("a").nominated_node(before).obj(), make_pod("a").nominated_node(after).obj())

    assert names(nominator) == ({promised: ["a"]} if promised else {})


def test_a_recreated_pod_keeps_the_nomination_under_its_new_uid() -> None:
    """The deletion was missed; what the API server does not know of, it cannot have taken back."""
    nominator = nominator_of(make_pod("a").uid("new"))
    nominator.add(make_pod("a").uid("old").obj(), "n1")

    nominator.update(make_pod("a").uid("old").obj(), make_pod("a").uid("new").obj())

    assert {node: [pod.uid for pod in pods] for node, pods in nominator.by_node().items()} == {"n1": ["new"]}


def test_a_nomination_is_withdrawn_once() -> None:
    nominator = nominator_of(make_pod("a"))
    nominator.add(make_pod("a").obj(), "n1")

    nominator.delete("default/a")
    nominator.delete("default/a")

    assert names(nominator) == {}

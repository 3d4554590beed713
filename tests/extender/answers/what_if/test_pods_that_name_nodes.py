"""Pods that name their node in their manifest: nobody schedules them."""

from typing import Any

from extender.answers.types import WhatIf
from tests.extender.answers.what_if.test_what_if import ask, node, running
from tests.kit.cluster import cluster_of
from tests.kit.objects import pod
from tests.kit.tables import cases


def fixed(name: str, cpu: int, on: str, **status: Any) -> dict[str, Any]:
    return {**pod(name, cpu, nodeName=on), "status": status}


def ask_about(*create: dict[str, Any]) -> WhatIf:
    return ask(cluster_of(node("n1"), pods=(running("there", "n1", 2),)), *create)


def test_pod_that_names_its_node_is_not_scheduled_and_takes_its_room() -> None:
    answer = ask_about(fixed("fixed", 1, "n1"), pod("other", 2))

    assert [(placement.pod.name, placement.node) for placement in answer.placements] == [("other", "")]
    assert answer.summary.endswith(
        " default/fixed is not scheduled, because it names node n1 itself, which accepts it."
    )


def test_the_kubelet_refuses_it_where_it_does_not_fit() -> None:
    answer = ask_about(fixed("fixed", 3, "n1"), pod("other", 2))

    assert [(placement.pod.name, placement.node) for placement in answer.placements] == [("other", "n1")]
    assert answer.summary == (
        "default/other would go to n1. "
        "default/fixed is not scheduled, because it names node n1 itself, whose kubelet would refuse such a pod: OutOfcpu."
    )


def test_running_pod_that_names_its_node_takes_its_room() -> None:
    answer = ask_about(fixed("fixed", 3, "n1", phase="Running"), pod("other", 1))

    assert [(placement.pod.name, placement.node) for placement in answer.placements] == [("other", "")]


def test_a_node_that_is_not_there_takes_nothing() -> None:
    answer = ask_about(fixed("fixed", 1, "nowhere"))

    assert answer.placements == ()
    assert answer.summary == (
        "default/fixed is not scheduled, because it names node nowhere itself; "
        "there is no such node, so it would not run and would be deleted."
    )


@cases(
    "num_pods, ends",
    ("twenty", 20, "names node n1 itself, which accepts it."),
    ("more", 25, "5 more pods name their nodes themselves."),
)
def test_only_twenty_of_many_pods_are_named(num_pods: int, ends: str) -> None:
    answer = ask_about(*(fixed(f"fixed-{number}", 0, "n1") for number in range(num_pods)))

    assert answer.summary.count("names node n1 itself") == 20
    assert answer.summary.endswith(ends)

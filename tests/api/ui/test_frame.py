"""Around every page: how full the cluster is, and who waits for what."""

import pytest

from api.ui.frame import frame, pod_href, short_reason
from extender.answers.cluster_map import ClusterMaps
from extender.answers.types import Queue, QueuePlace
from extender.values import limits
from tests.api.ui.samples import HIDDEN, NOW, pod_name, small_cluster, waiting

SHOWN = ClusterMaps(small_cluster()).now()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "0/12 nodes are available: 1 node(s) were unschedulable, 11 Insufficient cpu.",
            "11 Insufficient cpu, and 1 other reason",
        ),
        (
            "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No victims found.",
            "3 Insufficient cpu",
        ),
        (
            "0/9 nodes are available: 4 node(s) had untolerated taint(s) {a, 3 b}, 5 Insufficient memory.",
            "5 Insufficient memory, and 2 other reasons",
        ),
        ("running PreFilter plugin: broken", "running PreFilter plugin: broken"),
        ("0/0 nodes are available: .", "0/0 nodes are available: ."),
    ],
)
def test_reason_on_most_nodes_is_chosen_from_a_message(message: str, words: str) -> None:
    assert short_reason(message) == words


def test_header_counts_nodes_pods_and_requests() -> None:
    header = frame(SHOWN, waiting("a", "b"), NOW)

    assert [(figure.words, figure.value) for figure in header.figures] == [
        ("nodes", "4"), ("pods", "6"), ("pending", "2"), ("cpu", "37 %"), ("memory", "0 %"),
    ]  # fmt: skip


def test_row_of_a_pending_pod_has_its_reason_and_age() -> None:
    (row,) = frame(SHOWN, waiting("a", message="0/4 nodes are available: 4 Insufficient cpu."), NOW).pending

    assert (row.name, row.namespace, row.reason, row.since, row.href) == (
        "a",
        "shop",
        "4 Insufficient cpu",
        "1m 30s",
        "/ui/pods/shop/a",
    )


def test_pending_pod_of_another_scheduler_has_no_node_yet() -> None:
    (row,) = frame(SHOWN, Queue(items=waiting("a").items, deciding=False), NOW).pending

    assert row.reason == "no node yet"


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (QueuePlace(pod=pod_name(), queue="gated", gated_by="SchedulingGates"), "gated by SchedulingGates"),
        (QueuePlace(pod=pod_name(), queue="unschedulable", refused_by=("A", "B")), "refused by A, B"),
        (QueuePlace(pod=pod_name(), queue="active", position=1), "in the active queue"),
    ],
)
def test_every_place_has_a_reason(place: QueuePlace, reason: str) -> None:
    (row,) = frame(SHOWN, Queue(items=(place,)), NOW).pending

    assert row.reason == reason


def test_a_hidden_pod_leads_nowhere() -> None:
    assert pod_href(HIDDEN) == ""
    (row,) = frame(SHOWN, Queue(items=(QueuePlace(pod=HIDDEN, queue="active"),)), NOW).pending
    assert (row.name, row.href) == ("another namespace's pod", "")


def test_first_of_many_pending_pods_are_listed_and_the_rest_counted() -> None:
    header = frame(SHOWN, waiting(*(f"p{number}" for number in range(limits.PAGE_PENDING + 30))), NOW)

    assert (len(header.pending), header.problems.pods) == (limits.PAGE_PENDING, limits.PAGE_PENDING + 30)


def test_odd_names_make_a_path_all_the_same() -> None:
    assert pod_href(pod_name("a b/c?d")) == "/ui/pods/shop/a%20b%2Fc%3Fd"

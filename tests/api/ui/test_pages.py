"""Whole pages: everything of an answer is on them, nothing in them is styled or scripted inline, and no name is
markup.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from api.ui import pages
from api.ui.frame import Frame, frame
from api.ui.node_table import NodeSelection
from api.ui.what_if_view import changed_nodes
from extender.answers.catalogue import HistoryQuestion
from extender.answers.cluster_map import ClusterMaps, node_on_map
from extender.answers.overviews import AttemptsAlike, ClusterMap, Count, NodeOnMap, Past
from extender.answers.parts import PodName
from extender.answers.stories import Preemption
from extender.answers.types import Attempt, Capacity, NodeRoom, PreemptionAnswer, ReasonCount
from tests.api.ui.samples import (
    EXPLANATION,
    HIDDEN,
    NOW,
    RECORD,
    WHAT_IF,
    node,
    pod_name,
    seconds_ago,
    small_cluster,
    standing,
    waiting,
)

HOSTILE = '"><script>alert(1)</script>'
CLUSTER = small_cluster()
SHOWN = ClusterMaps(CLUSTER).now()
AROUND = frame(SHOWN, waiting("pending", "other"), NOW)
ATTEMPTS = (
    Attempt(
        id=2,
        time=seconds_ago(4),
        pod=pod_name("placed"),
        profile="p",
        number=1,
        outcome="Scheduled",
        node="n1",
        feasible=2,
    ),
    Attempt(
        id=1,
        time=seconds_ago(9),
        pod=HIDDEN,
        profile="p",
        number=1,
        outcome="Unschedulable",
        message="0/4 nodes are available: 4 x.",
    ),
)


AFTERWARDS = node(standing("stays", 500), standing("pending", 1500, 1000), name="n0")


def node_named(name: str) -> NodeOnMap:
    mapped_node = node_on_map(CLUSTER, name)
    assert mapped_node is not None
    return mapped_node


def around(cluster: ClusterMap) -> Frame:
    return frame(cluster, waiting("pending", "other"), NOW)


def what_if_part(cluster: ClusterMap = SHOWN) -> str:
    changed = changed_nodes(WHAT_IF)
    return pages.what_if_part(around(cluster), WHAT_IF, {name: node_named(name) for name in changed}, changed, "cpu")


def grid() -> str:
    many = tuple(node(name=f"m{number}", zone=f"z{number // 100}") for number in range(300))
    return pages.cluster_page(around(ClusterMap(generation=1, nodes=many, has_pods=False)), NodeSelection(), (), ())


def past_of(attempts: Sequence[Attempt], preemptions: Sequence[Preemption] = ()) -> Past:
    groups = tuple(AttemptsAlike(attempt=attempt, count=2, first=attempt.time) for attempt in attempts)
    counts = (Count(placed=len(attempts)), *[Count()] * 99)
    end = NOW.timestamp()
    return Past(
        alike=groups, preemptions=tuple(preemptions), counts=counts, begin=end - 1000, end=end, total=len(attempts)
    )


PAGES: Mapping[str, str] = {
    "cluster": pages.cluster_page(AROUND, NodeSelection(), ATTEMPTS, (RECORD,)),
    "grid": grid(),
    "nodes": pages.nodes_page(AROUND, "", ""),
    "node": pages.node_page(AROUND, node_named("n0")),
    "pod": pages.pod_page(AROUND, EXPLANATION, node_named("n0")),
    "history": pages.history_page(AROUND, past_of(ATTEMPTS, (RECORD,)), HistoryQuestion(), {"n0": AFTERWARDS}),
    "what if": pages.what_if_page(AROUND),
    "what if, answered": what_if_part(),
    "how many fit": pages.capacity_part(
        Capacity(fits=3, by_node=(NodeRoom(node="n0", pods=3),), stopped_by="0/1 nodes are available"), "kind: Pod"
    ),
    "help": pages.help_page(AROUND),
    "nothing there": pages.problem_page("Not found", "There is no such page.", AROUND),
    "problem": pages.problem_page("Sign in", "send a token", asks_for_token=True),
}


@pytest.mark.parametrize("name", PAGES)
def test_no_page_needs_more_than_the_policy_allows(name: str) -> None:
    """No inline style, script or handler; nothing from elsewhere."""
    page = PAGES[name]

    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert all(content == "" for content in re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL))
    assert all(url.startswith(("/", "#", "?")) for url in re.findall(r'(?:href|src|action)="([^"]+)"', page))


@pytest.mark.parametrize("name", PAGES)
def test_every_id_is_there_once(name: str) -> None:
    ids = re.findall(r'\sid="([^"]+)"', PAGES[name])

    assert len(ids) == len(set(ids))


def test_the_map_has_a_link_for_every_node_and_a_place_for_every_pod() -> None:
    page = PAGES["cluster"]

    assert [f'href="/ui/nodes/n{number}"' in page for number in range(4)] == [True] * 4
    assert {name for name in ("p0", "p1", "p2", "p3", "p4", "p5") if f"shop/{name}\n" in page} == {
        "p0",
        "p1",
        "p2",
        "p3",
        "p4",
        "p5",
    }


def test_the_map_of_many_nodes_says_where_each_zone_begins() -> None:
    assert re.findall(r'data-first="(\d+)" data-count="(\d+)"', PAGES["grid"]) == [
        ("0", "100"),
        ("100", "100"),
        ("200", "100"),
    ]


def test_a_pods_page_has_the_whole_explanation() -> None:
    page = PAGES["pod"]

    for words in (
        EXPLANATION.summary, EXPLANATION.message, "TaintToleration", "node(s) had untolerated taint(s)", "<b>0.4</b> cpu short",
        "requests 4, 3.6 free", "ask for 3600m cpu", "it violates 2 budgets, not 1", "violates budget budget-of-p",
        "and 3 more nodes", "Node/Add", "14m",
    ):  # fmt: skip
        assert words in page, words
    assert "★ pending" in page


def test_map_of_a_large_cluster_counts_the_refusals_of_each_plugin() -> None:
    many = tuple(node(name=f"n{number}") for number in range(100))
    explanation = msgspec.structs.replace(EXPLANATION, preemption=None)

    page = pages.pod_page(around(ClusterMap(generation=1, nodes=many, has_pods=False)), explanation, None)

    assert "NodeResourcesFit 3</li>" in page
    assert "97 feasible" in page
    assert 'id="where"' not in PAGES["pod"]


def test_page_of_a_pod_that_may_not_preempt_gives_the_reason() -> None:
    words = "not eligible due to preemptionPolicy=Never."
    nowhere = PreemptionAnswer(eligible=False, message=words)

    page = pages.pod_page(AROUND, msgspec.structs.replace(EXPLANATION, preemption=nowhere), None)

    assert f"<p>It may not preempt: {words}</p>" in page


def test_message_about_preemption_is_shown_once() -> None:
    words = "0/4 nodes are available: 4 No preemption victims found for incoming pod."
    reasons = (ReasonCount(reason="No preemption victims found for incoming pod", nodes=4),)
    nowhere = PreemptionAnswer(eligible=True, message=words, not_helpful=reasons)
    explanation = msgspec.structs.replace(
        EXPLANATION, message=f"{EXPLANATION.message} preemption: {words}", preemption=nowhere
    )

    page = pages.pod_page(AROUND, explanation, None)

    assert page.count(words) == 1
    assert "<p>No pod of lower priority is on a node where evictions could help.</p>" in page
    assert "<li><b>4</b> No preemption victims found for incoming pod</li>" in page


def test_a_pod_of_which_little_is_known_has_a_page_too() -> None:
    bare = type(EXPLANATION)(pod=pod_name("bare"), state="NotOurs", summary="Another scheduler takes care of it.")

    assert "Another scheduler takes care of it." in pages.pod_page(AROUND, bare, None)


def test_history_shows_preemptor_victims_and_violated_budgets() -> None:
    page = PAGES["history"]

    assert 'id="preemption-4"' in page
    assert "shop/pending" in page
    assert "shop/p0" in page
    assert "1 budget violated" in page
    assert "✕ p0" in page
    assert "★ pending" in page
    assert "another namespace&#39;s pod" in page


def test_a_what_if_shows_nodes_placements_and_where_the_evicted_go() -> None:
    page = PAGES["what if, answered"]

    for words in (
        "★ new",
        "✕ p0",
        "★ p0",
        "→ n3",
        "not recreated (no owner)",
        "4 Insufficient cpu",
        "p0 moves from n0 to n3",
    ):
        assert words in page, words
    assert 'class="d2"' in page
    assert 'data-from="0" data-to="3"' in page


def test_a_hidden_pod_is_named_nowhere_and_linked_nowhere() -> None:
    page = PAGES["history"]

    assert "/ui/pods//" not in page
    assert PAGES["pod"].count("another namespace&#39;s pod") == 1


def test_names_are_text_and_never_markup() -> None:
    name = PodName(namespace=HOSTILE, name=HOSTILE, uid="x")
    hostile_node = msgspec.structs.replace(node_named("n0"), name=HOSTILE, zone=HOSTILE, taints=(HOSTILE,))
    hostile_map = msgspec.structs.replace(SHOWN, nodes=(hostile_node,))
    around = frame(hostile_map, waiting(HOSTILE, message=HOSTILE), NOW)
    explanation = msgspec.structs.replace(
        EXPLANATION, pod=name, message=HOSTILE, summary=HOSTILE, node=HOSTILE, requests={HOSTILE: HOSTILE}
    )

    for page in (
        pages.cluster_page(around, NodeSelection(words=HOSTILE), (), ()),
        pages.nodes_page(around, HOSTILE, ""),
        pages.node_page(around, hostile_node),
        pages.pod_page(around, explanation, hostile_node),
        pages.history_page(
            around,
            past_of((msgspec.structs.replace(ATTEMPTS[0], pod=name, node=HOSTILE),)),
            HistoryQuestion(name=HOSTILE, node=HOSTILE, plugin=HOSTILE, namespace=HOSTILE, since=HOSTILE),
            {},
        ),
        pages.problem_page(HOSTILE, HOSTILE),
    ):
        assert "<script>alert" not in page
        assert '"><script' not in page


def test_pod_that_is_gone_has_no_priority() -> None:
    finished = type(EXPLANATION)(pod=PodName(namespace="shop", name="was"), state="Finished", summary="It is gone.")

    assert "<dt>priority</dt>" not in pages.pod_page(AROUND, finished, None)
    assert "<dt>priority</dt>" in PAGES["pod"]

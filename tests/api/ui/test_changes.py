"""Before and after: who goes and who comes, node by node."""

import msgspec

from api.ui.changes import NodeChange, before_and_after, change_by_answer, change_by_record, preemption_view
from api.ui.resources import Priorities
from api.ui.what_if_view import changed_nodes, moves, node_changes
from extender.answers.overviews import PodOnNode
from extender.answers.parts import Victim
from extender.answers.types import Eviction, PreemptionAnswer, WhatIf
from tests.api.ui.samples import HIDDEN, PREEMPTION, RECORD, VICTIMS, WHAT_IF, node, pod_name, standing


def test_a_pod_that_leaves_is_struck_out_before_and_gone_after() -> None:
    node_before = node(standing("stays", 1000), standing("p0", 2000))

    drawn = before_and_after(
        NodeChange(node_before, frozenset({"shop/p0"}), (standing("new", 2500, 9),)), "cpu", Priorities.of([0, 9])
    )

    assert "✕ p0" in drawn.before
    assert "shop/p0" not in drawn.after
    assert "★ new" in drawn.after
    assert (drawn.num_leaves, drawn.num_arrives) == (1, 1)


def test_a_preemption_lists_the_chosen_node_and_then_its_runners_up() -> None:
    for answer in (PREEMPTION, RECORD):
        view = preemption_view(answer)

        assert view.chosen == "n0"
        assert [(candidate.node, candidate.why_not) for candidate in view.candidates] == [
            ("n0", ""),
            ("n1", "it violates 2 budgets, not 1"),
        ]
        assert view.num_unlisted == 3


def test_preemption_that_helps_on_no_node_has_no_candidates() -> None:
    assert preemption_view(PreemptionAnswer(eligible=False, message="not eligible")).candidates == ()


def test_no_candidate_is_marked_before_a_node_is_chosen() -> None:
    undecided = preemption_view(msgspec.structs.replace(RECORD, node=""))

    assert undecided.chosen == ""
    assert [candidate.node for candidate in undecided.candidates] == [candidate.node for candidate in RECORD.candidates]


def test_the_victims_leave_the_chosen_node_and_the_pod_comes() -> None:
    change = change_by_answer(node(standing("p0", 1000)), PREEMPTION, pod_name("new", 9), 3000, 5)

    assert change.leaves == {"shop/p0"}
    assert [(pod.pod.name, pod.cpu, pod.memory) for pod in change.arrives] == [("new", 3000, 5)]


def test_past_preemption_is_drawn_from_the_present_node() -> None:
    """
    Before: without the preemptor, with those who went. Those who are still on their way out are not counted twice.
    """
    now = node(standing("stays", 500), standing("p0", 1000), standing("pending", 1500, 1000))

    change = change_by_record(now, RECORD)

    assert change is not None
    assert [(pod.pod.name, pod.cpu) for pod in change.node.pods] == [("p0", 1000), ("stays", 500)]
    assert change.leaves == {change.node.pods[0].pod.uid}
    assert [(pod.pod.name, pod.cpu) for pod in change.arrives] == [("pending", 1500)]


def test_a_preemption_whose_preemptor_is_gone_is_not_drawn() -> None:
    assert change_by_record(node(standing("stays", 500)), RECORD) is None


def test_hidden_victims_leave_and_hidden_bystanders_stay() -> None:
    hidden = PodOnNode(pod=HIDDEN, cpu=300)
    record = msgspec.structs.replace(RECORD, victims=(Victim(pod=HIDDEN, cpu=700), Victim(pod=HIDDEN, cpu=700)))

    change = change_by_record(node(hidden, standing("pending", 1500, 1000)), record)

    assert change is not None
    assert sorted(pod.cpu for pod in change.node.pods if pod.pod.uid in change.leaves) == [700, 700]
    assert [pod.cpu for pod in change.node.pods if pod.pod.uid not in change.leaves] == [300]


def test_a_what_if_changes_the_nodes_that_lose_or_get_pods() -> None:
    assert changed_nodes(WHAT_IF) == ["n0", "n3"]


def test_evicted_pods_land_with_the_size_that_they_had() -> None:
    before = {"n0": node(standing("p0", 700), name="n0"), "n3": node(standing("p3", 500), name="n3")}

    first, second = node_changes(WHAT_IF, before)

    assert first.leaves == {"shop/p0"}
    assert [(pod.pod.name, pod.cpu) for pod in first.arrives] == [("new", 2000)]
    assert second.leaves == {"shop/p3"}
    assert [(pod.pod.name, pod.cpu) for pod in second.arrives] == [("p0", 700)]


def test_a_pod_that_stays_on_its_node_after_all_both_leaves_and_comes() -> None:
    answer = WhatIf(
        summary="", placements=(), evictions=(Eviction(victim=VICTIMS[0], node="n0", why="drained", lands_on="n0"),)
    )

    (change,) = node_changes(answer, {"n0": node(standing("p0", 700), name="n0")})

    drawn = before_and_after(change, "cpu", Priorities.of([0]))
    assert "★ p0" in drawn.after
    assert "✕ p0" in drawn.before


def test_moves_name_their_start_and_end() -> None:
    assert [(move.start, move.end) for move in moves(WHAT_IF.evictions)] == [("n0", "n3")]
    stays = Eviction(victim=Victim(pod=pod_name()), node="n0", why="drained", lands_on="n0")
    assert moves([stays]) == []

"""Why a node lost: the first criterion that tells it and the chosen one apart, in words."""

import numpy as np

from extender.answers.explain.preemption import why_not
from extender.engine.framework import Candidate, Candidates
from extender.engine.preemption import V1_36
from extender.engine.preemption.costs import Costs, costs_of, pick_one_node_for_preemption, ranked
from extender.testing import PodBuilder, make_node, make_pod, make_snapshot
from extender.values.objects.pod import STARTED_NOW
from tests.kit.tables import cases

EIGHT, NINE = 1767254400, 1767258000  # of the morning of 2026-01-01
CHOSEN = Costs(num_pdb_violations=0, first_priority=10, sum_of_priorities=2**31 + 10, num_victims=1, start_time=NINE)


@cases(
    "lost, chosen, text",
    (
        "1: violations come before all else",
        CHOSEN._replace(num_pdb_violations=2, first_priority=-5),
        CHOSEN,
        "2 PodDisruptionBudget violations, none on node-3",
    ),
    (
        "1: one of them, and some on the chosen node",
        CHOSEN._replace(num_pdb_violations=1),
        CHOSEN._replace(num_pdb_violations=3),
        "1 PodDisruptionBudget violation, 3 on node-3",
    ),
    (
        "2: the most important victim",
        CHOSEN._replace(first_priority=100, num_victims=9),
        CHOSEN,
        "its most important victim has priority 100, on node-3 it is 10",
    ),
    (
        "3: as many victims, of higher priority",
        CHOSEN._replace(sum_of_priorities=CHOSEN.sum_of_priorities + 7),
        CHOSEN,
        "the priorities of its victims add up to 7 more than on node-3",
    ),
    (
        "3: more victims",
        CHOSEN._replace(sum_of_priorities=2**32, num_victims=2),
        CHOSEN,
        "evicting its 2 pods costs more priority in all than evicting the 1 pod on node-3",
    ),
    ("4: one more that counts nothing", CHOSEN._replace(num_victims=2), CHOSEN, "2 pods would have to go, on node-3 1"),
    (
        "5: more work would be lost",
        CHOSEN._replace(start_time=EIGHT),
        CHOSEN,
        "its most important victims have run since 2026-01-01T08:00:00Z, those on node-3 have run since "
        "2026-01-01T09:00:00Z",
    ),
    (
        "5: no work would be lost on the chosen node",
        CHOSEN,
        CHOSEN._replace(start_time=STARTED_NOW),
        "its most important victims have run since 2026-01-01T09:00:00Z, those on node-3 have not started yet",
    ),
    ("nothing tells them apart", CHOSEN, CHOSEN, "ties with node-3 on every criterion"),
)
def test_first_differing_criterion_is_the_reason(lost: Costs, chosen: Costs, text: str) -> None:
    assert why_not(lost, chosen, "node-3") == text


def v(priority: int, started: str = "2026-01-01T09:00:00Z") -> PodBuilder:
    return make_pod().priority(priority).start_time(started)


def candidates(*victims: list[PodBuilder], violations: tuple[int, ...]) -> Candidates:
    """Node n0, n1, ... with these victims."""
    nodes = [f"n{number}" for number in range(len(victims))]
    placed = [
        [pod.name(f"{node}-{number}").node(node).obj() for number, pod in enumerate(pods)]
        for node, pods in zip(nodes, victims, strict=True)
    ]
    snapshot = make_snapshot(*map(make_node, nodes), pods=[pod for pods in placed for pod in pods])
    rows = zip(nodes, placed, violations, strict=True)
    return Candidates.of(snapshot, [Candidate(node, tuple(pods), count) for node, pods, count in rows], V1_36)


def test_costs_are_what_the_criteria_look_at() -> None:
    choices = candidates([v(10)], [v(5, "2026-01-01T08:00:00Z"), v(5), v(-1)], violations=(0, 2))

    assert costs_of(choices) == [CHOSEN, Costs(2, 5, 3 * 2**31 + 9, 3, EIGHT)]


def test_the_best_come_first_and_ties_stay_in_order() -> None:
    """By criterion after criterion, as the choice is made."""
    choices = candidates([v(5)], [v(1)], [v(4)], [v(4)], [v(9)], violations=(0, 1, 0, 0, 0))

    assert ranked(choices).tolist() == [2, 3, 0, 4, 1]
    assert np.array_equal(pick_one_node_for_preemption(choices), ranked(choices)[:2])

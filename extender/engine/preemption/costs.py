"""The costs of preemption candidates, as numbers that outlive the snapshot, and the criteria that choose one candidate.

Upstream: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption.
"""

from typing import Final, NamedTuple

import numpy as np

from extender.engine.framework import Candidates, ScoreFunction
from extender.engine.snapshot.axes import Index, Int64s


def fewest_pdb_violations(candidates: Candidates) -> Int64s:
    """Returns criterion 1: the number of evictions that a PodDisruptionBudget forbids."""
    return -candidates.num_pdb_violations


def lowest_first_priority(candidates: Candidates) -> Int64s:
    """Returns criterion 2: the priority of the first victim, by importance the most important one."""
    return -candidates.snapshot.pods.priority[candidates.slots[candidates.first[:-1]]]


def lowest_sum_of_priorities(candidates: Candidates) -> Int64s:
    """Returns criterion 3. Priorities are shifted above zero, so that more victims are never cheaper."""
    shifted = candidates.snapshot.pods.priority[candidates.slots] + 2**31
    return -np.add.reduceat(shifted, candidates.first[:-1])


def fewest_victims(candidates: Candidates) -> Int64s:
    """Returns criterion 4: the number of victims."""
    return -np.diff(candidates.first).astype(np.int64)


def latest_start_time(candidates: Candidates) -> Int64s:
    """Returns criterion 5: the later the earliest of the highest-priority victims started, the less work is lost."""
    pods, first = candidates.snapshot.pods, candidates.first[:-1]
    priority, started = pods.priority[candidates.slots], pods.start_time[candidates.slots]
    highest = np.repeat(np.maximum.reduceat(priority, first), np.diff(candidates.first))
    return np.minimum.reduceat(np.where(priority == highest, started, np.iinfo(np.int64).max), first)


ORDERED_SCORE_FUNCTIONS: Final[tuple[ScoreFunction, ...]] = (
    fewest_pdb_violations,
    lowest_first_priority,
    lowest_sum_of_priorities,
    fewest_victims,
    latest_start_time,
)
"""The first four are as old as preemption; the last one came with v1.15."""


def pick_one_node_for_preemption(candidates: Candidates) -> Index:
    """Returns (B,) places of the candidates that are best by the criteria of their rules, each deciding between those
    that tied so far.

    Names break remaining ties, so that every process and every answer agrees. Upstream takes whichever its map yields
    first.
    """
    best = np.arange(len(candidates))
    for score_function in candidates.rules.criteria:
        if len(best) <= 1:
            break
        scores = score_function(candidates)[best]
        best = best[scores == scores.max()]
    nodes, node_of = candidates.snapshot.nodes.objects, candidates.node
    return np.array(sorted(best.tolist(), key=lambda place: nodes[node_of[place]].metadata.name), np.intp)


def better_on_each_node(candidates: Candidates) -> Candidates:
    """Returns one candidate for each node: the best by the rules' criteria, the first of equal ones."""
    if not len(candidates):
        return candidates
    scores = [score_function(candidates) for score_function in candidates.rules.criteria]
    order = np.lexsort((*(-score for score in reversed(scores)), candidates.node))
    _, best = np.unique(candidates.node[order], return_index=True)
    # The nodes keep the order in which they were tried.
    _, first_tried = np.unique(candidates.node, return_index=True)
    return candidates.take(order[best][np.argsort(first_tried)])


class Costs(NamedTuple):
    """The costs of choosing a candidate, one per criterion, in their order. Less is better, except for the start time.

    A further cost needs a default, because files of records hold costs without it.
    """

    num_pdb_violations: int
    first_priority: int
    sum_of_priorities: int
    """The sum over all victims, with priorities counted from the lowest possible one, so that it is never negative."""
    num_victims: int
    start_time: int
    """The start of the earliest of the highest-priority victims, in seconds since 1970; 0 if no criterion."""


def costs_of(candidates: Candidates) -> list[Costs]:
    """Returns the costs by the rules' criteria, or by all of upstream's where a plugin has its own."""
    rule_criteria = candidates.rules.criteria
    criteria = rule_criteria if rule_criteria == ORDERED_SCORE_FUNCTIONS[:-1] else ORDERED_SCORE_FUNCTIONS
    scores = np.array([score_function(candidates) for score_function in criteria]).T.tolist()
    return [Costs(-one, -two, -three, -four, *(five or (0,))) for one, two, three, four, *five in scores]


def ranked(candidates: Candidates) -> Index:
    """Returns (M,) places in `candidates`, best first. Candidates that tie in all criteria keep their order."""
    criteria = candidates.rules.criteria
    if not criteria:
        return np.arange(len(candidates))
    return np.lexsort([-score_function(candidates) for score_function in reversed(criteria)])

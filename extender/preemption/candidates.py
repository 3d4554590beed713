"""The criteria by which one of several preemption candidates is chosen.

Upstream: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption (v1.36.2).
"""

from collections.abc import Callable, Sequence

import numpy as np

from extender.framework import Candidates
from extender.snapshot.axes import Index, Int64s

ScoreFunction = Callable[[Candidates], Int64s]
"""(M,) a number per candidate, the higher the better."""


def fewest_pdb_violations(candidates: Candidates) -> Int64s:
    """Criterion 1."""
    return -candidates.num_pdb_violations


def lowest_first_priority(candidates: Candidates) -> Int64s:
    """Criterion 2: the priority of the most important victim."""
    return -candidates.snapshot.pods.priority[candidates.slots[candidates.first[:-1]]]


def lowest_sum_of_priorities(candidates: Candidates) -> Int64s:
    """Criterion 3: priorities are shifted above zero, so that more victims of negative priority are not cheaper than fewer."""
    shifted = candidates.snapshot.pods.priority[candidates.slots] + 2**31
    return -np.add.reduceat(shifted, candidates.first[:-1])


def fewest_victims(candidates: Candidates) -> Int64s:
    """Criterion 4."""
    return -np.diff(candidates.first).astype(np.int64)


def latest_start_time(candidates: Candidates) -> Int64s:
    """Criterion 5: when the first of the highest-priority victims started; the later, the less work is lost."""
    pods, first = candidates.snapshot.pods, candidates.first[:-1]
    priority, started = pods.priority[candidates.slots], pods.start_time[candidates.slots]
    highest = np.repeat(np.maximum.reduceat(priority, first), np.diff(candidates.first))
    return np.minimum.reduceat(np.where(priority == highest, started, np.iinfo(np.int64).max), first)


ORDERED_SCORE_FUNCTIONS: tuple[ScoreFunction, ...] = (
    fewest_pdb_violations,
    lowest_first_priority,
    lowest_sum_of_priorities,
    fewest_victims,
    latest_start_time,
)


def pick_one_node_for_preemption(candidates: Candidates, score_functions: Sequence[ScoreFunction] = ORDERED_SCORE_FUNCTIONS) -> Index:
    """The candidates that are best by the criteria, each deciding only between those that tied so far.

    Returns:
        (B,) places in `candidates`; more than one where the criteria leave a tie (upstream then takes whichever its map gives first).
    """
    best = np.arange(len(candidates))
    for score_function in score_functions:
        if len(best) <= 1:
            break
        scores = score_function(candidates)[best]
        best = best[scores == scores.max()]
    return best

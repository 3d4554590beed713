"""What each candidate would cost, in numbers that outlive the snapshot; and whose budgets would be broken."""

from typing import NamedTuple

import numpy as np

from extender.objects.pod import Pod
from extender.preemption.budgets import violated
from extender.preemption.candidates import ORDERED_SCORE_FUNCTIONS, Candidates
from extender.preemption.dry_run import lower_priority_pods
from extender.snapshot.axes import Index, Int64s


class Costs(NamedTuple):
    """What choosing a node would cost, criterion by criterion, in their order. Less is better, but for the start time."""

    num_pdb_violations: int
    first_priority: int
    """Of the most important victim."""
    sum_of_priorities: int
    """Of all victims, each counted from the lowest priority that there is, so that it is never negative."""
    num_victims: int
    start_time: int
    """When the first of the most important victims started, in seconds since 1970; the later, the better."""


def costs_of(candidates: Candidates) -> list[Costs]:
    """The costs of each candidate."""
    violations, first_priority, sums, victims, started = (scores(candidates) for scores in ORDERED_SCORE_FUNCTIONS)
    return [Costs(*costs) for costs in np.stack([-violations, -first_priority, -sums, -victims, started], axis=1).tolist()]


def ranked(candidates: Candidates) -> Index:
    """(M,) places in `candidates`, best first; those that no criterion tells apart in their order."""
    by_criterion: list[Int64s] = [-scores(candidates) for scores in ORDERED_SCORE_FUNCTIONS]
    return np.lexsort(by_criterion[::-1])


def best(candidates: Candidates, limit: int) -> Index:
    """The first of `ranked`, at least as many as the limit if there are: whoever cannot be among them is not sorted."""
    places = np.arange(len(candidates))
    for scores in ORDERED_SCORE_FUNCTIONS:
        if len(places) <= limit:
            break
        left = scores(candidates if len(places) == len(candidates) else candidates.take(places))
        # Whoever is worse than the last that is wanted stays behind; of those that are better, nobody does.
        worst = np.partition(left, len(left) - limit)[len(left) - limit]
        places = places[left >= worst]
        if (left > worst).any():
            break  # from here on a later criterion may decide only between those that tie in this one
    return places[ranked(candidates.take(places))]


def broken_budgets(candidates: Candidates, pod: Pod) -> dict[str, tuple[str, ...]]:
    """UID -> the names of the budgets that the pod's going breaks; pods that break none are left out.

    Budgets are counted over all possible victims of a node, those that are reprieved included: as the dry run does.

    Arguments:
        pod: the one that preempts.
    """
    snapshot = candidates.snapshot
    if not snapshot.objects.pdbs:
        return {}
    slots, row = lower_priority_pods(snapshot, pod, candidates.node)
    found: dict[str, tuple[str, ...]] = {}
    for budget, breaks in violated(snapshot, slots, row):
        for slot in slots[breaks].tolist():
            uid = snapshot.pod_at(slot).uid
            found[uid] = (*found.get(uid, ()), budget.metadata.name)
    return found

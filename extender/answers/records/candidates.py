"""What is recorded of a preemption: the chosen candidate, and the best of the others."""

from collections.abc import Mapping
from itertools import chain
from typing import Final

import numpy as np

from extender.answers.records.values import CandidateRecord, Victim
from extender.engine.framework import Candidate, Candidates
from extender.engine.preemption.budgets import broken_budgets
from extender.engine.preemption.costs import best
from extender.engine.preemption.victim_policy import lost_gpu_hours
from extender.engine.snapshot.axes import CPU, MEMORY
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import assigned_requests

MAX_CANDIDATES: Final = 8
"""The number of candidates kept of a preemption."""
MAX_VICTIMS_OF_OTHERS: Final = 16
"""The number of victims kept of a candidate that was not chosen."""
MAX_VICTIMS: Final = 1000
"""The number of victims kept of the chosen one; no kubelet runs more pods."""


def keep_candidates(
    candidates: Candidates, preemptor: Pod, now: float, chosen: int | None = None
) -> tuple[CandidateRecord, ...]:
    """Returns the best candidates, the chosen one first.

    Arguments:
        now: seconds since 1970.
        chosen: its place in `candidates`; None if the choice is still to be made, so that any of them may be taken.
            Then all victims of each are kept.
    """
    if not len(candidates):
        return ()
    found = best(candidates, MAX_CANDIDATES, chosen)
    kept, snapshot = found.candidates, candidates.snapshot
    broken = broken_budgets(snapshot, kept.node[found.order], preemptor, candidates.rules)
    first: list[int] = kept.first.tolist()
    slots: list[int] = kept.slots.tolist()
    limits = [MAX_VICTIMS, *[MAX_VICTIMS if chosen is None else MAX_VICTIMS_OF_OTHERS] * (MAX_CANDIDATES - 1)]
    slots_of_each = [
        slots[first[place] : first[place + 1]][:limit] for place, limit in zip(found.order, limits, strict=False)
    ]
    # One look-up in the columns for the victims of all candidates; each takes its own off the iterator.
    held = iter(snapshot.pods.requests[list(chain.from_iterable(slots_of_each))][:, [CPU, MEMORY]].tolist())
    return tuple(
        CandidateRecord(
            node=snapshot.nodes.objects[int(kept.node[place])].name,
            victims=tuple(_victim(snapshot.pod_at(slot), broken, *next(held), now=now) for slot in of_candidate),
            num_pdb_violations=costs.num_pdb_violations,
            costs=costs,
        )
        for place, costs, of_candidate in zip(found.order, found.costs, slots_of_each, strict=True)
    )


def keep_chosen(candidates: Candidates, preemptor: Pod, now: float, place: int) -> CandidateRecord:
    """Returns the chosen candidate alone, without what it costs."""
    snapshot, first, last = candidates.snapshot, int(candidates.first[place]), int(candidates.first[place + 1])
    node = int(candidates.node[place])
    broken = broken_budgets(snapshot, np.array([node]), preemptor, candidates.rules)
    slots: list[int] = candidates.slots[first : min(last, first + MAX_VICTIMS)].tolist()
    held = snapshot.pods.requests[slots][:, [CPU, MEMORY]].tolist()
    victims = tuple(
        _victim(snapshot.pod_at(slot), broken, *of_pod, now=now) for slot, of_pod in zip(slots, held, strict=True)
    )
    return CandidateRecord(snapshot.nodes.objects[node].name, victims, int(candidates.num_pdb_violations[place]))


def keep_other_choice(chosen: Candidate, now: float) -> CandidateRecord:
    """Returns a candidate that is not one of those that are listed."""
    victims = []
    for pod in chosen.victims[:MAX_VICTIMS]:
        held, _, _ = assigned_requests(pod)
        victims.append(Victim.of(pod, (), held.milli_cpu, held.memory, lost_gpu_hours(pod, now)))
    return CandidateRecord(chosen.node, tuple(victims), chosen.num_pdb_violations)


def place_of(candidates: Candidates, node: str) -> int | None:
    """Returns the place of a node among the candidates; None if it is not one of them."""
    found = np.flatnonzero(candidates.node == candidates.snapshot.nodes.index.get(node, -1))
    return int(found[0]) if len(found) else None


def _victim(pod: Pod, broken: Mapping[str, tuple[str, ...]], cpu: int, memory: int, *, now: float) -> Victim:
    return Victim.of(pod, broken.get(pod.uid, ()), cpu, memory, lost_gpu_hours(pod, now))

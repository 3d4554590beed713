"""Candidates: nodes with the victims that would have to go; and how one of them is chosen.

Upstream: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption (v1.36.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from extender.framework import NodeVictims
from extender.snapshot import Snapshot
from extender.snapshot.axes import Index, Int64s


@final
@dataclass(frozen=True, slots=True)
class Candidates:
    """M nodes and their victims, as arrays: the victims of candidate m are `slots[first[m]:first[m + 1]]`."""

    snapshot: Snapshot
    node: Index
    """(M,) place on axis N."""
    slots: Index
    """(V,) pod slots of the victims, candidate by candidate, most important first."""
    first: Index
    """(M + 1,) where each candidate's victims begin; every candidate has at least one."""
    num_pdb_violations: Int64s
    """(M,)"""

    def __len__(self) -> int:
        return len(self.node)

    def at(self, candidate: int) -> NodeVictims:
        """One candidate, spelled out."""
        slots = self.slots[self.first[candidate] : self.first[candidate + 1]].tolist()
        return NodeVictims(
            node=self.snapshot.nodes.objects[int(self.node[candidate])].name,
            pods=tuple(self.snapshot.pod_at(slot) for slot in slots),
            num_pdb_violations=int(self.num_pdb_violations[candidate]),
        )

    def listed(self) -> list[NodeVictims]:
        """All candidates, spelled out."""
        return [self.at(candidate) for candidate in range(len(self))]

    def take(self, chosen: Index) -> "Candidates":
        """Only these candidates, in this order."""
        counts = self.first[chosen + 1] - self.first[chosen]
        first = np.zeros(len(counts) + 1, np.intp)
        np.cumsum(counts, out=first[1:])
        places = np.repeat(self.first[chosen] - first[:-1], counts) + np.arange(first[-1])
        return Candidates(self.snapshot, self.node[chosen], self.slots[places], first, self.num_pdb_violations[chosen])

    @staticmethod
    def of(snapshot: Snapshot, victims: Sequence[NodeVictims]) -> "Candidates":
        """Candidates as an extender names them: known nodes, each with pods of the snapshot.

        Raises:
            KeyError: a node or a pod that the snapshot does not have.
        """
        counts = [len(of_node.pods) for of_node in victims]
        return Candidates(
            snapshot,
            np.array([snapshot.nodes.index[of_node.node] for of_node in victims], np.intp),
            np.array([snapshot.pods.slots[pod.uid] for of_node in victims for pod in of_node.pods], np.intp),
            np.r_[0, np.cumsum(counts)].astype(np.intp),
            np.array([of_node.num_pdb_violations for of_node in victims], np.int64),
        )


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

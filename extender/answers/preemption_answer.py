"""What preemption would do for a pod, or why it cannot help: the dry run's outcome for people."""

from collections import Counter
from typing import Final

import numpy as np

from extender.answers.reasons import counted
from extender.answers.types import CandidateNode, PreemptionAnswer, ReasonCount, Victim
from extender.answers.waiting import pod_name
from extender.answers.why_not import why_not
from extender.framework import NodeVictims
from extender.objects.pod import Pod
from extender.objects.preemption_messages import NOT_HELPFUL
from extender.objects.resources import assigned_requests
from extender.preemption import Candidates, PreemptionOutcome
from extender.preemption.costs import broken_budgets, costs_of, ranked
from extender.snapshot import Snapshot

MAX_CANDIDATES: Final = 20
"""Nodes spelled out; there may be thousands."""


def preemption_answer(outcome: PreemptionOutcome, snapshot: Snapshot, pod: Pod, limit: int = MAX_CANDIDATES) -> PreemptionAnswer:
    """The chosen node and its victims, the runners-up and why they lost, and why other nodes would stay closed.

    Arguments:
        snapshot: the one that the outcome is about.
        pod: the one that preempts.
        limit: how many candidates are spelled out, at least one.
    """
    if outcome.why_not_eligible is not None:
        return PreemptionAnswer(eligible=False, message=outcome.why_not_eligible)
    candidates, victims = outcome.candidates, outcome.victims
    answer = PreemptionAnswer(
        eligible=True,
        message="" if outcome.status.is_success else outcome.status.message,
        not_helpful=_not_helpful(outcome, len(snapshot.nodes)),
    )
    if candidates is None or not len(candidates):
        return answer
    listed = _spelled_out(candidates, victims, pod, outcome.status.message, limit)
    chosen = listed[0] if victims is not None else None
    return PreemptionAnswer(
        eligible=True,
        message=answer.message,
        node="" if chosen is None else chosen.node,
        victims=() if chosen is None else chosen.victims,
        num_pdb_violations=0 if chosen is None else chosen.num_pdb_violations,
        candidates=listed,
        num_candidates=len(candidates),
        not_helpful=answer.not_helpful,
    )


def victim(pod: Pod, violates: tuple[str, ...] = ()) -> Victim:
    """A pod that has to go.

    Arguments:
        violates: names of the budgets that its going breaks.
    """
    owner = next((f"{owner.kind}/{owner.name}" for owner in pod.metadata.owner_references if owner.controller), "")
    held, _, _ = assigned_requests(pod)
    return Victim(pod=pod_name(pod), started=pod.status.start_time, owner=owner, violates=violates, cpu=held.milli_cpu, memory=held.memory)


def _spelled_out(candidates: Candidates, victims: NodeVictims | None, pod: Pod, failed: str, limit: int) -> tuple[CandidateNode, ...]:
    """The chosen candidate, then the others as far as they are shown."""
    order = ranked(candidates)
    if victims is not None:
        chosen = int(np.flatnonzero(candidates.node == candidates.snapshot.nodes.index[victims.node])[0])
        order = np.r_[chosen, order[order != chosen]]
    order = order[:limit]
    shown = candidates.take(order)
    costs, violates = costs_of(shown), broken_budgets(shown.snapshot, shown.node, pod)
    return tuple(
        CandidateNode(
            node=one.node,
            victims=tuple(victim(gone, violates.get(gone.uid, ())) for gone in one.pods),
            num_pdb_violations=one.num_pdb_violations,
            # An extender that failed has kept all of them from being chosen.
            why_not=failed if victims is None else "" if one.node == victims.node else why_not(costs[at], costs[0], victims.node),
        )
        for at, one in enumerate(shown.listed())
    )


def _not_helpful(outcome: PreemptionOutcome, num_nodes: int) -> tuple[ReasonCount, ...]:
    counts = Counter(reason for status in (outcome.statuses or {}).values() for reason in status.reasons)
    hopeless = num_nodes - len(outcome.potential_nodes)
    if hopeless:
        counts[NOT_HELPFUL] += hopeless
    return counted(counts)

"""What preemption would do for a pod, or why it does not help: the outcome of the dry run as an answer for people."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from extender.answers.explain.verdict_tables import reason_counts
from extender.answers.parts import CandidateNode, PodName, Victim, gpu_hours_of
from extender.answers.phrases import plural
from extender.answers.types import PreemptionAnswer, ReasonCount
from extender.engine.framework import Candidate, Candidates, PreemptionOutcome, ScoreFunction
from extender.engine.preemption.budgets import broken_budgets
from extender.engine.preemption.costs import ORDERED_SCORE_FUNCTIONS, Costs, costs_of, ranked
from extender.engine.preemption.victim_policy import lost_gpu_hours
from extender.engine.snapshot import Snapshot
from extender.values import limits
from extender.values.golang.times import rfc3339
from extender.values.objects.grouping import NOT_HELPFUL
from extender.values.objects.pod import STARTED_NOW, Pod
from extender.values.objects.resource_amounts import assigned_requests

TIES: Final = "ties with {} on every criterion"
_LATEST: Final = int(datetime.max.replace(tzinfo=UTC).timestamp())


def victim(pod: Pod, now: float, violates: tuple[str, ...] = ()) -> Victim:
    """Returns the pod as a victim, with its requests and the budgets that its eviction violates."""
    requests, _, _ = assigned_requests(pod)
    owners = (f"{owner.kind}/{owner.name}" for owner in pod.metadata.owner_references if owner.controller)
    return Victim(
        PodName.of(pod),
        pod.status.start_time,
        next(owners, ""),
        violates,
        requests.milli_cpu,
        requests.memory,
        lost_gpu_hours(pod, now),
    )


def preemption_answer(
    outcome: PreemptionOutcome, snapshot: Snapshot, pod: Pod, now: float, limit: int = limits.CANDIDATES
) -> PreemptionAnswer:
    """Returns the chosen node and its victims, the runners-up and why they lost, and where evictions do not help."""
    if outcome.why_not_eligible is not None:
        return PreemptionAnswer(eligible=False, message=outcome.why_not_eligible)
    candidates, chosen, failed = outcome.candidates, outcome.chosen, outcome.status.message
    listed = () if candidates is None else _listed(candidates, chosen, pod, failed, now, limit)
    best = listed[0] if chosen is not None and listed else CandidateNode(node="", victims=(), num_pdb_violations=0)
    is_without_victims = chosen is not None and not chosen.victims
    return PreemptionAnswer(
        eligible=True,
        message="" if outcome.status.is_success else failed,
        node=best.node,
        victims=best.victims,
        num_pdb_violations=best.num_pdb_violations,
        candidates=listed,
        num_candidates=0 if candidates is None else len(candidates) + is_without_victims,
        not_helpful=not_helpful(outcome, len(snapshot.nodes)),
        **_lost(outcome, gpu_hours_of(best.victims) if best.node else 0.0, now),
    )


def _lost(outcome: PreemptionOutcome, gpu_hours: float, now: float) -> dict[str, Any]:
    alone = outcome.without_policies
    if alone is None:
        return {"gpu_hours": gpu_hours, "gpu_hours_without_policies": gpu_hours}
    victims = tuple(victim(pod, now) for pod in alone.victims)
    node = CandidateNode(node=alone.node, victims=victims, num_pdb_violations=alone.num_pdb_violations)
    return {"gpu_hours": gpu_hours, "without_policies": node, "gpu_hours_without_policies": gpu_hours_of(victims)}


def _listed(
    candidates: Candidates, chosen: Candidate | None, pod: Pod, failed: str, now: float, limit: int
) -> tuple[CandidateNode, ...]:
    if chosen is not None and not chosen.victims:
        other_nodes = _listed(
            candidates, None, pod, f"some of its pods would have to go, none of those on {chosen.node}", now, limit - 1
        )
        return CandidateNode(node=chosen.node, victims=(), num_pdb_violations=0), *other_nodes
    if not len(candidates) or not limit:
        return ()
    best_candidates = best_first(candidates, None if chosen is None else chosen.node, limit)
    violates = broken_budgets(best_candidates.snapshot, best_candidates.node, pod, best_candidates.rules)
    listed = best_candidates.listed()
    # Without a chosen node, an extender has failed, which kept all of them from being chosen.
    lost = [failed] * len(listed) if chosen is None else _why_lost(best_candidates, listed, chosen.node)
    return tuple(
        CandidateNode(
            node=one.node,
            victims=tuple(victim(victim_pod, now, violates.get(victim_pod.uid, ())) for victim_pod in one.victims),
            num_pdb_violations=one.num_pdb_violations,
            why_not=lost[place],
        )
        for place, one in enumerate(listed)
    )


def best_first(candidates: Candidates, chosen: str | None, limit: int) -> Candidates:
    """Returns the best candidates, at most so many; before them the one on the chosen node, if there is one."""
    order = ranked(candidates)
    if chosen is not None:
        is_chosen = candidates.node[order] == candidates.snapshot.nodes.index[chosen]
        order = np.r_[order[is_chosen], order[~is_chosen]]
    return candidates.take(order[:limit])


def not_helpful(outcome: PreemptionOutcome, num_nodes: int) -> tuple[ReasonCount, ...]:
    """Returns why evictions do not help, with the number of nodes."""
    counts: Counter[str] = Counter()
    for status, nodes in outcome.statuses.counts() if outcome.statuses is not None else ():
        for reason in status.reasons:
            counts[reason] += nodes
    hopeless = num_nodes - outcome.num_potential
    if hopeless:
        counts[NOT_HELPFUL] += hopeless
    return reason_counts(counts)


# Why a candidate lost. Costs are numbers, so that candidates can be compared long after their victims are gone.


def what_comes_first(priorities_of_each: Iterable[Sequence[int]]) -> str:
    """Returns what to call the first victim: older rules do not always list the most important one first."""
    return "most important" if all(priorities[0] == max(priorities) for priorities in priorities_of_each) else "first"


OwnScores = tuple[tuple[str, int | float], ...]
"""What each criterion of a plugin's own rules gives to a candidate, by its name: of upstream's, that of the cost."""


def own_scores(candidates: Candidates) -> Sequence[OwnScores | None]:
    """Returns the scores of each candidate by the criteria of its rules; None by upstream's: costs say as much."""
    criteria = candidates.rules.criteria
    if tuple(criteria) in (ORDERED_SCORE_FUNCTIONS, ORDERED_SCORE_FUNCTIONS[:-1]):
        return [None] * len(candidates)
    scores = [score_function(candidates).tolist() for score_function in criteria]
    return [
        tuple((_name(criterion), its[place]) for criterion, its in zip(criteria, scores, strict=True))
        for place in range(len(candidates))
    ]


def _name(criterion: ScoreFunction) -> str:
    if criterion in ORDERED_SCORE_FUNCTIONS:
        return Costs._fields[ORDERED_SCORE_FUNCTIONS.index(criterion)]
    return getattr(criterion, "__name__", type(criterion).__name__)


def _why_lost(candidates: Candidates, listed: Sequence[Candidate], node: str) -> list[str]:
    """Returns for each candidate why it lost against the first one, on `node`, by the criteria of its rules."""
    first = what_comes_first([victim_pod.priority for victim_pod in one.victims] for one in listed)
    (chosen, by_own), *losers = zip(costs_of(candidates), own_scores(candidates), strict=True)
    return ["", *(why_lost(costs, its, chosen, by_own, node, first) for costs, its in losers)]


def why_lost(lost: Costs, its: OwnScores | None, chosen: Costs, by_own: OwnScores | None, node: str, first: str) -> str:
    """Returns in words by which criterion a candidate lost against the chosen one on `node`: upstream's as `why_not`
    has it, another by its name.
    """
    if its is None or by_own is None:
        return why_not(lost, chosen, node, first)
    criterion = next((name for (name, one), (_, other) in zip(its, by_own, strict=True) if one != other), "")
    if not criterion:
        return TIES.format(node)
    if criterion not in Costs._fields:
        return f"{criterion} prefers {node}"
    differs = {criterion} | ({"num_victims"} if criterion == "sum_of_priorities" else set())  # told with the number
    return why_not(chosen._replace(**{name: getattr(lost, name) for name in differs}), chosen, node, first)


def why_not(lost: Costs, chosen: Costs, node: str, first: str = "most important") -> str:
    """Returns the first criterion by which a candidate lost against the chosen one on `node`, in words."""
    its_victims, chosen_victims = (plural(costs.num_victims, "pod") for costs in (lost, chosen))
    if lost.num_pdb_violations != chosen.num_pdb_violations:
        violations = plural(lost.num_pdb_violations, "PodDisruptionBudget violation")
        return f"{violations}, {chosen.num_pdb_violations or 'none'} on {node}"
    if lost.first_priority != chosen.first_priority:
        return f"its {first} victim has priority {lost.first_priority}, on {node} it is {chosen.first_priority}"
    if lost.sum_of_priorities != chosen.sum_of_priorities:
        if lost.num_victims == chosen.num_victims:
            more = lost.sum_of_priorities - chosen.sum_of_priorities
            return f"the priorities of its victims add up to {more} more than on {node}"
        return f"evicting its {its_victims} costs more priority in all than evicting the {chosen_victims} on {node}"
    if lost.num_victims != chosen.num_victims:
        return f"{its_victims} would have to go, on {node} {chosen.num_victims}"
    if lost.start_time != chosen.start_time:
        return f"its most important victims {_since(lost)}, those on {node} {_since(chosen)}"
    return TIES.format(node)


def _since(costs: Costs) -> str:
    if costs.start_time == STARTED_NOW:
        return "have not started yet"
    # A time beyond what a calendar holds is still later than all others.
    return f"have run since {rfc3339(datetime.fromtimestamp(min(max(costs.start_time, 0), _LATEST), UTC))}"

"""What was decided, as answers: a kept attempt and a kept preemption; and what was decided in a time, filtered, counted
over the time, and equal attempts as one.
"""

import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, final

import msgspec
import numpy as np

from extender.answers.explain.node_choice import kept_scores
from extender.answers.explain.preemption import what_comes_first, why_not
from extender.answers.explain.verdict_tables import reason_counts
from extender.answers.records.arrays import Details, KeptAttempt, KeptVerdicts
from extender.answers.records.values import (
    AttemptRecord,
    CandidateNode,
    CandidateRecord,
    Outcome,
    PodName,
    PreemptionRecord,
    gpu_hours_of,
)
from extender.answers.types import (
    Answer,
    Attempt,
    NodePicture,
    NodeScore,
    PluginVerdict,
    Preemption,
    PreemptionAnswer,
    ReasonCount,
    WaterfallStep,
)
from extender.engine.framework import Code
from extender.engine.preemption.costs import Costs
from extender.engine.runtime.findings import out_of_play_reason
from extender.engine.snapshot.axes import Int64s, Mask
from extender.values import limits
from extender.values.golang.times import rfc3339

EXTENDERS: Final = "extenders"
"""Stands for the configured extenders, in place of a plugin."""


def attempt(kept: KeptAttempt, *, picture: bool = False) -> Attempt:
    """Returns the attempt, with as much as is still kept of it.

    Arguments:
        picture: whether to add the plugin that refused each node.
    """
    record, details = kept.record, kept.details or Details()
    of_calls = tuple(NodeScore(node=node, total=total, others=total) for node, total in details.best)
    return Attempt(
        id=record.id,
        time=_time(record.time),
        pod=record.pod,
        profile=record.profile,
        number=record.number,
        outcome=record.outcome,
        node=record.node,
        message=record.message,
        evaluated=record.evaluated,
        feasible=record.feasible,
        seconds=round(record.seconds, 6),
        woken_by=record.woken_by,
        caller=record.caller,
        waterfall=_waterfall(details.verdicts, refuses_all=record.feasible == 0)
        if details.verdicts is not None
        else (),
        scores=kept_scores(details.scores) if details.scores is not None else of_calls,
        preemption=_preemption(record, kept.preemption, details),
        picture=_picture(details.verdicts)
        if picture and details.verdicts is not None and details.verdicts.num_rows
        else None,
    )


def preemption(record: PreemptionRecord) -> Preemption:
    """Returns the preemption, with the best of the nodes that were not chosen."""
    return Preemption(
        id=record.id,
        time=_time(record.time),
        by=record.by,
        node=record.node,
        victims=record.victims,
        num_pdb_violations=record.num_pdb_violations,
        candidates=_candidates(record.candidates, record.node),
        num_candidates=record.num_candidates,
        outcome=record.outcome,
        verdict=record.verdict,
        room_taken_by=record.room_taken_by,
        **_lost(record),
        caller=record.caller,
    )


# Verdicts.


def _waterfall(verdicts: KeptVerdicts, *, refuses_all: bool) -> tuple[WaterfallStep, ...]:
    """Returns a step for each plugin that refused nodes; the nodes that are left in the end passed.

    Arguments:
        refuses_all: whether extenders refused all nodes that the Filters let pass.
    """
    left = len(verdicts.nodes.names)
    if verdicts.pre_filter is not None:
        plugin, message, for_good = verdicts.pre_filter
        who = plugin or ", ".join(verdicts.narrowed_by)
        reasons = (ReasonCount(reason=message, nodes=left),) if message else ()
        return (WaterfallStep(plugin=who, reasons=reasons, refused=left, unresolvable=left if for_good else 0, left=0),)
    steps: list[WaterfallStep] = []
    outside, left = left - verdicts.num_rows, verdicts.num_rows
    if outside and verdicts.narrowed_by:  # other nodes outside were not in question
        why = ReasonCount(reason=out_of_play_reason(verdicts.narrowed_by), nodes=outside)
        who = ", ".join(verdicts.narrowed_by)
        steps.append(WaterfallStep(plugin=who, reasons=(why,), refused=outside, unresolvable=outside, left=left))
    masks = [(reason, verdicts.mask(bits)) for reason, bits in verdicts.reasons]
    unresolvable = verdicts.mask(verdicts.unresolvable)
    for plugin, refused in _refused_first(verdicts):
        counts = Counter({reason: int((mask & refused).sum()) for reason, mask in masks})
        left -= (here := int(refused.sum()))
        hopeless = int((unresolvable & refused).sum())
        steps.append(
            WaterfallStep(plugin=plugin, reasons=reason_counts(+counts), refused=here, unresolvable=hopeless, left=left)
        )
    if refuses_all and left and verdicts.by_extenders:
        counts = Counter({reason: nodes for reason, nodes, _ in verdicts.by_extenders})
        hopeless = min(left, sum(number for _, _, number in verdicts.by_extenders))
        steps.append(
            WaterfallStep(plugin=EXTENDERS, reasons=reason_counts(counts), refused=left, unresolvable=hopeless, left=0)
        )
    return tuple(steps)


def _picture(verdicts: KeptVerdicts) -> NodePicture:
    """Returns every node with the first plugin that refused it; the others were not asked."""
    nodes, asked = verdicts.nodes.names, verdicts.asked()
    plugins = tuple(dict.fromkeys(plugin for plugin, _ in verdicts.refused_by))
    distinct: list[PluginVerdict] = []
    cells = np.full((len(nodes), len(plugins)), -1)
    # (1 + K, B): the code and whether each of K reasons holds, of B nodes. Nodes with equal columns have one verdict.
    reasons = [reason for reason, _ in verdicts.reasons]
    held = np.array([_codes(verdicts), *(verdicts.mask(bits) for _, bits in verdicts.reasons)], np.int64)
    for plugin, refused in _refused_first(verdicts):
        rows = np.flatnonzero(refused)
        _, first, which = np.unique(held[:, rows], axis=1, return_index=True, return_inverse=True)
        cells[asked[rows], plugins.index(plugin)] = len(distinct) + which.reshape(-1)
        for code, *holds in held[:, rows[first]].T.tolist():
            texts = tuple(reason for reason, is_held in zip(reasons, holds, strict=True) if is_held)
            distinct.append(PluginVerdict(plugin=plugin, code=str(Code(code)), reasons=texts))
    return NodePicture(plugins=plugins, nodes=nodes, verdicts=tuple(distinct), cells=tuple(map(tuple, cells.tolist())))


def _refused_first(verdicts: KeptVerdicts) -> Iterable[tuple[str, Mask]]:
    """Returns (plugin, (B,) the nodes that it was the first to refuse); each plugin occurs once."""
    together: dict[str, Mask] = {}
    so_far = np.zeros(verdicts.num_rows, np.bool_)
    for plugin, bits in verdicts.refused_by:
        first = verdicts.mask(bits) & ~so_far
        so_far |= first
        together[plugin] = together[plugin] | first if plugin in together else first
    return together.items()


def _codes(verdicts: KeptVerdicts) -> Int64s:
    """Returns (B,) the code of each node's refusal; codes of nodes that passed mean nothing."""
    codes = np.full(verdicts.num_rows, Code.UNSCHEDULABLE, np.int64)
    codes[verdicts.mask(verdicts.unresolvable)] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    if verdicts.pending is not None:
        codes[verdicts.mask(verdicts.pending)] = Code.PENDING
    return codes


# Preemption.


def _preemption(attempt: AttemptRecord, found: PreemptionRecord | None, details: Details) -> PreemptionAnswer | None:
    not_helpful = tuple(ReasonCount(reason=reason, nodes=nodes) for reason, nodes in details.not_helpful)
    if found is None:
        if attempt.may_preempt and not attempt.no_preemption:
            return None
        return PreemptionAnswer(eligible=attempt.may_preempt, message=attempt.no_preemption, not_helpful=not_helpful)
    return PreemptionAnswer(
        eligible=True,
        node=found.node,
        victims=found.victims,
        num_pdb_violations=found.num_pdb_violations,
        candidates=_candidates(found.candidates, found.node),
        num_candidates=found.num_candidates,
        **_lost(found),
        not_helpful=not_helpful,
    )


def _lost(record: PreemptionRecord) -> dict[str, Any]:
    """Returns the fields of an answer about the GPU time that was lost."""
    gpu_hours, alone = gpu_hours_of(record.victims), record.without_policies
    if alone is None:
        return {"gpu_hours": gpu_hours, "gpu_hours_without_policies": gpu_hours}
    node = CandidateNode(node=alone.node, victims=alone.victims, num_pdb_violations=alone.num_pdb_violations)
    return {"gpu_hours": gpu_hours, "without_policies": node, "gpu_hours_without_policies": gpu_hours_of(alone.victims)}


def _candidates(records: Sequence[CandidateRecord], chosen: str) -> tuple[CandidateNode, ...]:
    """Returns the candidates, each with the reason why it lost."""
    won = next((each for each in records if each.node == chosen and each.costs), None)
    first = what_comes_first([gone.pod.priority for gone in each.victims] for each in records if each.victims)
    return tuple(
        CandidateNode(
            node=each.node,
            victims=each.victims,
            num_pdb_violations=each.num_pdb_violations,
            why_not=""
            if won is None or each is won or not each.costs
            else why_not(Costs(*each.costs), Costs(*won.costs), chosen, first),
        )
        for each in records
    )


def _time(seconds: float) -> str:
    """Returns the time in RFC 3339 with milliseconds, since there may be thousands of attempts a second."""
    return rfc3339(datetime.fromtimestamp(seconds, UTC), "milliseconds")


OutcomeWanted = Literal["", "scheduled", "unschedulable", "error", "preempted", "asked"]
"""`preempted`: attempts that preempted. `asked`: calls by another scheduler. Empty for all."""

BUCKETS: Final = 100
"""The number of equal parts of the time for which attempts are counted."""
LEAST_SECONDS: Final = 100.0
"""The shortest time that is shown while none is chosen."""

_PLACED: Final = frozenset(("Scheduled", "Filter", "Prioritize"))


class PastQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for. Empty texts, and times that are left out, mean everything."""

    outcome: OutcomeWanted = ""
    name: str = ""
    """A part of the pod's namespace/name. The names of a workload's pods begin with its own."""
    namespace: str = ""
    node: str = ""
    """A part of the name of the node."""
    plugin: str = ""
    """A plugin that refused a node, of attempts of which the verdicts are still kept."""
    since: float = 0.0
    until: float = math.inf
    before: int | None = None
    """List only attempts with a smaller id."""


@final
class AttemptsAlike(Answer, frozen=True, kw_only=True):
    """Attempts for one pod that ended alike."""

    attempt: Attempt
    """The newest of the attempts."""
    count: int
    first: str
    """The time of the oldest."""


@final
class Count(Answer, frozen=True, kw_only=True):
    """How the attempts of one part of the time ended."""

    placed: int = 0
    refused: int = 0
    failed: int = 0


@final
class Past(Answer, frozen=True, kw_only=True):
    """What was decided in a time."""

    alike: tuple[AttemptsAlike, ...]
    """The attempts, those that ended alike together, with the newest first."""
    preemptions: tuple[Preemption, ...]
    counts: tuple[Count, ...]
    """One for each part of the time."""
    begin: float
    end: float
    """The end of the time, as `begin` in seconds since 1970."""
    total: int
    older: int = 0
    """The id before which further attempts are found; 0 if there are none."""


def past(
    kept: Sequence[KeptAttempt], made: Iterable[PreemptionRecord], query: PastQuery, may_see: Container[str], now: float
) -> Past:
    """Returns what was decided, newest first. Names of pods that the caller may not see are still in it, but are not
    found by.

    Arguments:
        kept: all attempts since the query's beginning, newest first.
        made: preemptions, newest first.
        may_see: the namespaces whose pods the caller may see.
    """
    found = [each for each in kept if _is_wanted(each, query, may_see)]
    oldest = found[-1].record.time if found else now
    begin = query.since or min(oldest, now - LEAST_SECONDS)
    end = min(max(now, begin), query.until)
    page, older = _page(found, query.before)
    preemptions = [each for each in made if _is_preemption_wanted(each, query, may_see)][: limits.HISTORY_PREEMPTIONS]
    return Past(
        alike=page,
        preemptions=tuple(map(preemption, preemptions)),
        counts=counts([each.record for each in found], begin, end),
        begin=begin,
        end=end,
        total=len(found),
        older=older,
    )


def counts(records: Iterable[AttemptRecord], begin: float, end: float) -> tuple[Count, ...]:
    """Returns how attempts ended in each part of the time."""
    tallies = [[0, 0, 0] for _ in range(BUCKETS)]
    for record in records:
        place = int((record.time - begin) / max(end - begin, 0.001) * BUCKETS)
        tallies[max(0, min(BUCKETS - 1, place))][how_ended(record.outcome, record.evaluated, record.feasible)] += 1
    return tuple(Count(placed=placed, refused=refused, failed=failed) for placed, refused, failed in tallies)


def how_ended(outcome: Outcome, evaluated: int, feasible: int) -> int:
    """Returns 0 for an attempt that found a node, 1 for one that did not, and 2 for one that failed."""
    if outcome in _PLACED and not (outcome == "Filter" and evaluated and not feasible):
        return 0
    return 2 if outcome == "Error" else 1


def _page(found: Sequence[KeptAttempt], before: int | None) -> tuple[tuple[AttemptsAlike, ...], int]:
    """Returns a page of attempts, equal ones as one, and where the next page begins."""
    alike: dict[tuple[str, ...], list[KeptAttempt]] = {}
    last, number = 0, 0
    for each in found:
        record = each.record
        if before is not None and record.id >= before:
            continue
        key = record.pod.uid or record.pod.key, record.outcome, record.node, record.message, record.caller
        if number == limits.HISTORY_ATTEMPTS or (key not in alike and len(alike) == limits.HISTORY_ALIKE):
            return _answers(alike.values()), last
        alike.setdefault(key, []).append(each)
        last, number = record.id, number + 1
    return _answers(alike.values()), 0


def _answers(alike: Iterable[Sequence[KeptAttempt]]) -> tuple[AttemptsAlike, ...]:
    return tuple(
        AttemptsAlike(attempt=attempt(each[0]), count=len(each), first=_time(each[-1].record.time)) for each in alike
    )


def _is_wanted(kept: KeptAttempt, query: PastQuery, may_see: Container[str]) -> bool:
    record = kept.record
    if not query.since <= record.time <= query.until or not _is_outcome(kept, query.outcome):
        return False
    if not _is_pod(record.pod, query, may_see) or query.node not in record.node:
        return False
    return not query.plugin or query.plugin in _refusing(kept)


def _is_outcome(kept: KeptAttempt, wanted: OutcomeWanted) -> bool:
    outcome = kept.record.outcome
    match wanted:
        case "":
            return True
        case "preempted":
            return kept.preemption is not None
        case "asked":
            return outcome in ("Filter", "Prioritize", "Preempt")
        case _:
            return outcome.lower() == wanted


def _is_pod(pod: PodName, query: PastQuery, may_see: Container[str]) -> bool:
    if not query.name and not query.namespace:
        return True
    return pod.namespace in may_see and query.name in pod.key and query.namespace in ("", pod.namespace)


def _is_preemption_wanted(made: PreemptionRecord, query: PastQuery, may_see: Container[str]) -> bool:
    pods = (made.by, *(victim.pod for victim in made.victims))
    is_of_time = query.since <= made.time <= query.until
    return is_of_time and query.node in made.node and any(_is_pod(pod, query, may_see) for pod in pods)


def _refusing(kept: KeptAttempt) -> set[str]:
    verdicts = None if kept.details is None else kept.details.verdicts
    if verdicts is None:
        return set()
    early = () if verdicts.pre_filter is None else (verdicts.pre_filter[0],)
    return {*early, *verdicts.narrowed_by, *(plugin for plugin, _ in verdicts.refused_by)}

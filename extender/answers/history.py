"""Kept attempts and preemptions as answers; and those of a time, filtered, counted, and equal attempts as one."""

import math
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from extender.answers.explain.preemption import what_comes_first, why_lost
from extender.answers.overviews import AttemptsAlike, Count, OutcomeWanted, Past
from extender.answers.parts import CandidateNode, Outcome, PodName, gpu_hours_of
from extender.answers.records.record_store import (
    AttemptRecord,
    CandidateRecord,
    Details,
    KeptAttempt,
    PreemptionRecord,
    picture_of,
)
from extender.answers.stories import Preemption
from extender.answers.types import Attempt, PreemptionAnswer, QuestionError
from extender.engine.preemption.costs import Costs
from extender.values import limits
from extender.values.golang.times import rfc3339


def attempt(kept: KeptAttempt, *, picture: bool = False) -> Attempt:
    """Returns the attempt, with as much as is still kept of it, and if wanted the plugin that refused each node."""
    record, details = kept.record, kept.details or Details()
    return Attempt(
        **_alike(record, Attempt)
        | {
            "time": written(record.time),
            "seconds": round(record.seconds, 6),
            "waterfall": details.waterfall,
            "scores": details.scores,
            "preemption": _preemption(record, kept.preemption, details),
            "picture": picture_of(details) if picture else None,
        }
    )


def preemption(record: PreemptionRecord) -> Preemption:
    """Returns the preemption, with the best of the nodes that were not chosen."""
    return Preemption(
        **_alike(record, Preemption)
        | {"time": written(record.time), "candidates": _candidates(record.candidates, record.node)}
        | _lost(record)
    )


def _alike(record: AttemptRecord | PreemptionRecord, answer: type[msgspec.Struct]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in answer.__struct_fields__ if name in record.__struct_fields__}


# Preemption.


def _preemption(attempt: AttemptRecord, found: PreemptionRecord | None, details: Details) -> PreemptionAnswer | None:
    if found is None:
        if attempt.may_preempt and not attempt.no_preemption:
            return None
        return PreemptionAnswer(
            eligible=attempt.may_preempt, message=attempt.no_preemption, not_helpful=details.not_helpful
        )
    return PreemptionAnswer(
        **_alike(found, PreemptionAnswer) | {"candidates": _candidates(found.candidates, found.node)} | _lost(found),
        eligible=True,
        not_helpful=details.not_helpful,
    )


def _lost(record: PreemptionRecord) -> dict[str, Any]:
    gpu_hours, alone = gpu_hours_of(record.victims), record.without_policies
    if alone is None:
        return {"gpu_hours": gpu_hours, "gpu_hours_without_policies": gpu_hours}
    node = CandidateNode(node=alone.node, victims=alone.victims, num_pdb_violations=alone.num_pdb_violations)
    return {"gpu_hours": gpu_hours, "without_policies": node, "gpu_hours_without_policies": gpu_hours_of(alone.victims)}


def _candidates(records: Sequence[CandidateRecord], chosen: str) -> tuple[CandidateNode, ...]:
    won = next((each for each in records if each.node == chosen and each.costs), None)
    first = what_comes_first([gone.pod.priority for gone in each.victims] for each in records if each.victims)
    return tuple(
        CandidateNode(
            node=each.node,
            victims=each.victims,
            num_pdb_violations=each.num_pdb_violations,
            why_not=""
            if won is None or each is won or not each.costs
            else why_lost(Costs(*each.costs), each.own_scores, Costs(*won.costs), won.own_scores, chosen, first),
        )
        for each in records
    )


def written(seconds: float) -> str:
    """Returns the time in RFC 3339 with milliseconds, since there may be thousands of attempts a second."""
    return rfc3339(datetime.fromtimestamp(seconds, UTC), "milliseconds")


# The attempts of a time.

BUCKETS: Final = 100
"""The number of equal parts of the time for which attempts are counted."""
LEAST_SECONDS: Final = 100.0
"""The shortest time that is shown while none is chosen."""
RANGES: Final = {"15m": 900.0, "1h": 3600.0, "6h": 21_600.0, "24h": 86_400.0, "7d": 604_800.0, "all": math.inf}
"""Name of a time that ends now -> its seconds."""


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

    @classmethod
    def written(cls, now: float, *, range: str, since: str, until: str, **further: Any) -> "PastQuery":  # noqa: A002 - its name in addresses
        """Returns what to look for, as an address has it: `since` goes before `range`. Raises QuestionError."""
        if range and range not in RANGES:
            raise QuestionError(f"range: one of {', '.join(RANGES)}")
        ago = RANGES[range or "all"]
        return cls(
            since=_moment("since", since) if since else 0.0 if math.isinf(ago) else now - ago,
            until=_moment("until", until) if until else math.inf,
            **further,
        )


def _moment(name: str, text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as exc:
        raise QuestionError(f"{name}: a time such as 2026-01-31T12:00:00Z") from exc


def past(
    kept: Sequence[KeptAttempt], made: Iterable[PreemptionRecord], query: PastQuery, may_see: Container[str], now: float
) -> Past:
    """Returns what was decided, newest first. Pods outside `may_see` are in it, but are not found by name."""
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
    if outcome in ("Scheduled", "Filter", "Prioritize") and not (outcome == "Filter" and evaluated and not feasible):
        return 0
    return 2 if outcome == "Error" else 1


def _page(found: Sequence[KeptAttempt], before: int | None) -> tuple[tuple[AttemptsAlike, ...], int]:
    """Returns a page of attempts, equal ones as one, and where the next page begins."""
    alike: dict[tuple[str, ...], list[KeptAttempt]] = {}
    last = number = older = 0
    for each in found:
        record = each.record
        if before is not None and record.id >= before:
            continue
        key = record.pod.uid or record.pod.key, record.outcome, record.node, record.message, record.caller
        if number == limits.HISTORY_ATTEMPTS or (key not in alike and len(alike) == limits.HISTORY_ALIKE):
            older = last
            break
        alike.setdefault(key, []).append(each)
        last, number = record.id, number + 1
    page = tuple(
        AttemptsAlike(attempt=attempt(same[0]), count=len(same), first=written(same[-1].record.time))
        for same in alike.values()
    )
    return page, older


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
    steps = () if kept.details is None else kept.details.waterfall
    return {plugin for step in steps for plugin in step.plugin.split(", ")}

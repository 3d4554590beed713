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


def attempt(kept_attempt: KeptAttempt, *, picture: bool = False) -> Attempt:
    """Returns the attempt, with as much as is still kept of it, and if wanted the plugin that refused each node."""
    record, details = kept_attempt.record, kept_attempt.details or Details()
    return Attempt(
        **_common_fields(record, Attempt)
        | {
            "time": time_text(record.time),
            "seconds": round(record.seconds, 6),
            "waterfall": details.waterfall,
            "scores": details.scores,
            "preemption": _preemption(record, kept_attempt.preemption, details),
            "picture": picture_of(details) if picture else None,
        }
    )


def preemption(record: PreemptionRecord) -> Preemption:
    """Returns the preemption, with the best of the nodes that were not chosen."""
    return Preemption(
        **_common_fields(record, Preemption)
        | {"time": time_text(record.time), "candidates": _candidates(record.candidates, record.node)}
        | _lost(record)
    )


def _common_fields(record: AttemptRecord | PreemptionRecord, answer: type[msgspec.Struct]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in answer.__struct_fields__ if name in record.__struct_fields__}


# Preemption.


def _preemption(attempt: AttemptRecord, record: PreemptionRecord | None, details: Details) -> PreemptionAnswer | None:
    if record is None:
        if attempt.may_preempt and not attempt.no_preemption:
            return None
        return PreemptionAnswer(
            eligible=attempt.may_preempt, message=attempt.no_preemption, not_helpful=details.not_helpful
        )
    return PreemptionAnswer(
        **_common_fields(record, PreemptionAnswer)
        | {"candidates": _candidates(record.candidates, record.node)}
        | _lost(record),
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
    won = next((candidate for candidate in records if candidate.node == chosen and candidate.costs), None)
    first = what_comes_first(
        [victim.pod.priority for victim in candidate.victims] for candidate in records if candidate.victims
    )
    return tuple(
        CandidateNode(
            node=candidate.node,
            victims=candidate.victims,
            num_pdb_violations=candidate.num_pdb_violations,
            why_not=""
            if won is None or candidate is won or not candidate.costs
            else why_lost(
                Costs(*candidate.costs), candidate.own_scores, Costs(*won.costs), won.own_scores, chosen, first
            ),
        )
        for candidate in records
    )


def time_text(seconds: float) -> str:
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
    def of_address(cls, now: float, *, range: str, since: str, until: str, **filters: Any) -> "PastQuery":  # noqa: A002 - its name in addresses
        """Returns what to look for, as an address has it: `since` goes before `range`. Raises QuestionError."""
        if range and range not in RANGES:
            raise QuestionError(f"range: one of {', '.join(RANGES)}")
        ago = RANGES[range or "all"]
        return cls(
            since=_moment("since", since) if since else 0.0 if math.isinf(ago) else now - ago,
            until=_moment("until", until) if until else math.inf,
            **filters,
        )


def _moment(name: str, text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as exc:
        raise QuestionError(f"{name}: a time such as 2026-01-31T12:00:00Z") from exc


def past(
    attempts: Sequence[KeptAttempt],
    records: Iterable[PreemptionRecord],
    query: PastQuery,
    may_see: Container[str],
    now: float,
) -> Past:
    """Returns what was decided, newest first. Pods outside `may_see` are in it, but are not found by name."""
    matches = [attempt for attempt in attempts if _is_wanted(attempt, query, may_see)]
    oldest = matches[-1].record.time if matches else now
    begin = query.since or min(oldest, now - LEAST_SECONDS)
    end = min(max(now, begin), query.until)
    page, older = _page(matches, query.before)
    preemptions = [record for record in records if _is_preemption_wanted(record, query, may_see)][
        : limits.HISTORY_PREEMPTIONS
    ]
    return Past(
        alike=page,
        preemptions=tuple(map(preemption, preemptions)),
        counts=counts([attempt.record for attempt in matches], begin, end),
        begin=begin,
        end=end,
        total=len(matches),
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


def _page(matches: Sequence[KeptAttempt], before: int | None) -> tuple[tuple[AttemptsAlike, ...], int]:
    """Returns a page of attempts, equal ones as one, and where the next page begins."""
    attempts_by_key: dict[tuple[str, ...], list[KeptAttempt]] = {}
    last = number = older = 0
    for kept_attempt in matches:
        record = kept_attempt.record
        if before is not None and record.id >= before:
            continue
        key = record.pod.uid or record.pod.key, record.outcome, record.node, record.message, record.caller
        if number == limits.HISTORY_ATTEMPTS or (
            key not in attempts_by_key and len(attempts_by_key) == limits.HISTORY_ALIKE
        ):
            older = last
            break
        attempts_by_key.setdefault(key, []).append(kept_attempt)
        last, number = record.id, number + 1
    page = tuple(
        AttemptsAlike(attempt=attempt(same[0]), count=len(same), first=time_text(same[-1].record.time))
        for same in attempts_by_key.values()
    )
    return page, older


def _is_wanted(attempt: KeptAttempt, query: PastQuery, may_see: Container[str]) -> bool:
    record = attempt.record
    if not query.since <= record.time <= query.until or not _is_outcome(attempt, query.outcome):
        return False
    if not _is_pod(record.pod, query, may_see) or query.node not in record.node:
        return False
    return not query.plugin or query.plugin in _refusing(attempt)


def _is_outcome(attempt: KeptAttempt, wanted_outcome: OutcomeWanted) -> bool:
    outcome = attempt.record.outcome
    match wanted_outcome:
        case "":
            return True
        case "preempted":
            return attempt.preemption is not None
        case "asked":
            return outcome in ("Filter", "Prioritize", "Preempt")
        case _:
            return outcome.lower() == wanted_outcome


def _is_pod(pod: PodName, query: PastQuery, may_see: Container[str]) -> bool:
    if not query.name and not query.namespace:
        return True
    return pod.namespace in may_see and query.name in pod.key and query.namespace in ("", pod.namespace)


def _is_preemption_wanted(record: PreemptionRecord, query: PastQuery, may_see: Container[str]) -> bool:
    pods = (record.by, *(victim.pod for victim in record.victims))
    is_of_time = query.since <= record.time <= query.until
    return is_of_time and query.node in record.node and any(_is_pod(pod, query, may_see) for pod in pods)


def _refusing(attempt: KeptAttempt) -> set[str]:
    steps = () if attempt.details is None else attempt.details.waterfall
    return {plugin for step in steps for plugin in step.plugin.split(", ")}

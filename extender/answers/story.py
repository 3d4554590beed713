"""The story of a pod, as one value for every door: from the records, or else from the pod's conditions and Events.

A name may have belonged to several pods, one after the other. What happened to all of them is in the story.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from extender.answers import history
from extender.answers.parts import PodName, workload_of
from extender.answers.phrases import NAMES_LISTED, all_of, for_people, plural, reasons_in
from extender.answers.records.record_store import AttemptRecord, PreemptionRecord, is_victim, took_room
from extender.answers.stories import Story, StoryStep, What
from extender.engine.cache.cluster import Cluster
from extender.values.golang.times import human_duration, moment_of, rfc3339
from extender.values.objects.listed_events import ListedEvents
from extender.values.objects.pod import Pod

_OF_EVENTS: Final[dict[str, What]] = {
    "FailedScheduling": "refused", "Scheduled": "placed",
    "Preempted": "evicted", "Evicted": "evicted", "TaintManagerEviction": "evicted",
}  # fmt: skip
"""Reason of Events that belong to the story -> what they tell of."""
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


def story(
    key: str,
    pod: Pod | None,
    cluster: Cluster,
    attempts: Sequence[AttemptRecord],
    preemptions: Sequence[PreemptionRecord],
    events: ListedEvents | None,
    since: str | None,
) -> Story:
    """Returns the story of the pods that have or had the name; `pod` is the one that is there now, which waits `since`.

    Records come oldest first; `events` is None if they were not asked for.
    """
    steps = [*_attempt_steps(attempts), *_preemption_steps(key, preemptions)]
    is_recorded, told_kinds = bool(steps), {step.what for step in steps}
    steps += [step for step in _event_steps(events) if step.what not in told_kinds]
    steps += _pod_steps(pod, {step.what for step in steps}) if pod is not None else ()
    steps += [step for record in preemptions for step in _replacement_steps(key, record, cluster)]
    steps.sort(key=lambda step: moment_of(step.first or step.time) or _BEGINNING)
    refusals = _refusals(pod, attempts, steps)
    text = _end(steps) if pod is None else _wait(pod, steps, since, refusals)
    notes = [] if events is None or not events.why_none else [f"its Events are not known: {events.why_none}"]
    if not is_recorded:
        notes.insert(0, "no records of it exist here: this story comes from its conditions and Events")
    elif attempts and attempts[0].number > 1:
        notes.insert(0, f"its attempts before number {attempts[0].number} are no longer stored")
    return Story(steps=tuple(steps), text=text, refusals=refusals, notes=tuple(notes))


def _step(what: What, time: str | None, text: str, **more: Any) -> StoryStep:
    return StoryStep(what=what, time=time, text=text, **{"first": time, **more})


# What the records tell.


def _attempt_steps(attempts: Iterable[AttemptRecord]) -> Iterator[StoryStep]:
    """Yields the attempts; those for equal reasons are one step, on whichever number of nodes the reasons held."""
    attempts_by_key: dict[tuple[object, ...], list[AttemptRecord]] = {}
    for attempt in attempts:
        key = (
            attempt.pod.uid,
            attempt.outcome,
            attempt.node,
            attempt.profile,
            attempt.caller,
            tuple(sorted(reasons_in(attempt.message))),
        )
        attempts_by_key.setdefault(key, []).append(attempt)
    for same in attempts_by_key.values():
        first, last = history.time_text(same[0].time), history.time_text(same[-1].time)
        yield _step(*_in_words(same[-1], last), first=first, count=len(same), decision=same[-1].id)


def _in_words(attempt: AttemptRecord, time: str) -> tuple[What, str, str]:
    words = f": {for_people(attempt.message)}" if attempt.message else ""
    if attempt.outcome == "Scheduled":
        among = f" among {attempt.feasible} nodes that fit" if attempt.feasible > 1 else ""
        return "placed", time, f"{attempt.profile} chose {attempt.node}{among}"
    if attempt.outcome == "Unschedulable":
        return "refused", time, f"{attempt.profile} refused it{words}"
    if attempt.outcome == "Error":
        return "failed", time, f"an attempt failed{words}"
    request = f"{attempt.caller or 'another scheduler'} asked the extender ({attempt.outcome})"
    return "asked", time, f"{request}, which kept {attempt.feasible} of {plural(attempt.evaluated, 'node')}{words}"


def _preemption_steps(key: str, records: Iterable[PreemptionRecord]) -> Iterator[StoryStep]:
    for record in records:
        preemption = history.preemption(record)
        pods, on = [victim.pod for victim in preemption.victims], f" on {preemption.node}" if preemption.node else ""
        for_whom = f"for {preemption.by.key} (priority {preemption.by.priority})"
        step = partial(_step, time=preemption.time, decision=preemption.id, preemption=preemption)
        if is_victim(key, record) and preemption.outcome != "failed":
            came = "evicted" if preemption.outcome == "told" else "chosen to be evicted"
            where = f" from {preemption.node}" if preemption.node else ""
            yield step("evicted", text=f"it was {came}{where} {for_whom}", pods=(preemption.by,))
        if preemption.by.key == key:
            verb = {"told": "evicted", "deciding": "chose to evict"}.get(preemption.outcome, "could not evict all of")
            text, takers = f"it {verb} {_names(pods)}{on}", preemption.room_taken_by
            if preemption.verdict == "used":
                text += ", and got a node"
            elif preemption.verdict:
                text += f", but got no node there{f': {_names(takers)} took the room' if takers else ''}"
            yield step("preempted", text=text, pods=(*pods, *takers))
        if took_room(key, record):
            yield step("took", text=f"it took the room{on} that was freed {for_whom}", pods=(preemption.by,))


def _names(pods: Sequence[PodName]) -> str:
    more = [f"{len(pods) - NAMES_LISTED} more"] if len(pods) > NAMES_LISTED else []
    return all_of([*(pod.key for pod in pods[:NAMES_LISTED]), *more]) if pods else "nobody"


def _replacement_steps(key: str, record: PreemptionRecord, cluster: Cluster) -> Iterator[StoryStep]:
    """Yields the first pods that the controller of an evicted one has made since, one for each that it lost."""
    victim = next((victim for victim in record.victims if victim.pod.key == key), None)
    if victim is None or not victim.owner or record.outcome == "failed":
        return
    evicted = rfc3339(datetime.fromtimestamp(record.time, UTC))  # objects are created at whole seconds, too
    successors = {
        pod.uid: pod
        for pod in (*cluster.pending.values(), *cluster.cache.pods)
        if (pod.metadata.creation_timestamp or "") >= evicted
        and (pod.namespace, pod.uid != victim.pod.uid) == (victim.pod.namespace, True)
        and any(f"{owner.kind}/{owner.name}" == victim.owner for owner in pod.metadata.owner_references)
    }
    number_lost = sum(other.owner == victim.owner for other in record.victims)
    for successor in sorted(successors.values(), key=lambda pod: pod.metadata.creation_timestamp or "")[:number_lost]:
        where = f"is on {successor.spec.node_name}" if successor.spec.node_name else "waits for a node"
        text = f"{victim.owner} made {successor.key} instead, which {where}"
        yield _step("replaced", successor.metadata.creation_timestamp, text, pods=(PodName.of(successor),))


# What Events and the pod tell.


def _event_steps(events: ListedEvents | None) -> Iterator[StoryStep]:
    for event in events.items if events is not None else ():
        if what := _OF_EVENTS.get(event.reason):
            text = f"{event.source or 'an Event'}: {for_people(event.message)}"
            yield _step(what, event.time or None, text, first=event.first or None, count=event.count)


def _pod_steps(pod: Pod, told_kinds: set[What]) -> Iterator[StoryStep]:
    created, workload, deleted = pod.metadata.creation_timestamp, workload_of(pod), pod.metadata.deletion_timestamp
    yield _step("created", created, f"it was created{f' by {workload}' if workload else ''}")
    for condition in pod.status.conditions:
        time, words = condition.last_transition_time, f": {for_people(condition.message)}" if condition.message else ""
        match condition.type, condition.status:
            case "PodScheduled", "False" if condition.reason != "SchedulingGated" and "refused" not in told_kinds:
                # It holds since the first refusal, with the words of the last.
                yield _step("refused", None, f"{pod.scheduler_name} refused it{words}", first=time, count=0)
            case "PodScheduled", "True" if "placed" not in told_kinds:
                yield _step("placed", time or pod.status.start_time, f"it got the node {pod.spec.node_name}")
            case "DisruptionTarget", "True" if "evicted" not in told_kinds:
                yield _step("evicted", time or deleted, f"it was chosen to be evicted{words}")
    if deleted:
        yield _step("ended", deleted, "it is being deleted")


# The whole.


def _end(steps: Sequence[StoryStep]) -> str:
    ends = [step for what in ("placed", "evicted") for step in steps if step.what == what]
    last = f"; the last that is recorded, at {ends[-1].time}: {ends[-1].text}" if ends else ""
    came = [f" {step.text}." for step in steps if step.what == "replaced"]
    return f"It is gone or has finished{last}.{''.join(came)}"


def _wait(pod: Pod, steps: Sequence[StoryStep], since: str | None, refusals: int | None) -> str:
    times = "" if not refusals else " once" if refusals == 1 else f" {refusals:,} times"
    refused = "" if refusals == 0 else f" and was refused{times}"
    if not pod.spec.node_name:
        return f"It has waited{f' since {since}' if since else ''}{refused}."
    placed = next((step.time for step in reversed(steps) if step.what == "placed"), None)
    began, ended = moment_of(since), moment_of(placed)
    if began is None or ended is None:
        return f"It has a node{refused}."
    return f"It waited {human_duration(max(ended - began, timedelta()))} for its node{refused}."


def _refusals(pod: Pod | None, attempts: Sequence[AttemptRecord], steps: Sequence[StoryStep]) -> int | None:
    """Returns how often the newest pod of the name was refused; None if it was, and nobody knows how often."""
    uid = pod.uid if pod is not None else attempts[-1].pod.uid if attempts else ""
    own_attempts = [attempt for attempt in attempts if attempt.number and attempt.pod.uid == uid]
    if own_attempts:
        return own_attempts[0].number - 1 + sum(attempt.outcome == "Unschedulable" for attempt in own_attempts)
    counts = [step.count for step in steps if step.what == "refused" and not step.decision]
    return sum(counts) or (None if counts else 0)

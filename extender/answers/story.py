"""The story of a pod, as one value for every door: from the records, or else from the pod's conditions and Events.

A name may have belonged to several pods, one after the other. What happened to all of them is in the story.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from extender.answers import history
from extender.answers.parts import PodName, workload_of
from extender.answers.phrases import NAMED, all_of, for_people, plural, reasons_in
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
    steps = [*_tried(attempts), *_preempted(key, preemptions)]
    is_recorded, known = bool(steps), {each.what for each in steps}
    steps += [each for each in _told_by_events(events) if each.what not in known]
    steps += _told_by_pod(pod, {each.what for each in steps}) if pod is not None else ()
    steps += [step for made in preemptions for step in _replaced(key, made, cluster)]
    steps.sort(key=lambda each: moment_of(each.first or each.time) or _BEGINNING)
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


def _tried(attempts: Iterable[AttemptRecord]) -> Iterator[StoryStep]:
    """Yields the attempts; those for equal reasons are one step, on whichever number of nodes the reasons held."""
    alike: dict[tuple[object, ...], list[AttemptRecord]] = {}
    for each in attempts:
        key = each.pod.uid, each.outcome, each.node, each.profile, each.caller, tuple(sorted(reasons_in(each.message)))
        alike.setdefault(key, []).append(each)
    for same in alike.values():
        first, last = history.written(same[0].time), history.written(same[-1].time)
        yield _step(*_in_words(same[-1], last), first=first, count=len(same), decision=same[-1].id)


def _in_words(made: AttemptRecord, time: str) -> tuple[What, str, str]:
    said = f": {for_people(made.message)}" if made.message else ""
    if made.outcome == "Scheduled":
        among = f" among {made.feasible} nodes that fit" if made.feasible > 1 else ""
        return "placed", time, f"{made.profile} chose {made.node}{among}"
    if made.outcome == "Unschedulable":
        return "refused", time, f"{made.profile} refused it{said}"
    if made.outcome == "Error":
        return "failed", time, f"an attempt failed{said}"
    asked = f"{made.caller or 'another scheduler'} asked the extender ({made.outcome})"
    return "asked", time, f"{asked}, which kept {made.feasible} of {plural(made.evaluated, 'node')}{said}"


def _preempted(key: str, records: Iterable[PreemptionRecord]) -> Iterator[StoryStep]:
    for record in records:
        made = history.preemption(record)
        pods, on = [each.pod for each in made.victims], f" on {made.node}" if made.node else ""
        for_whom = f"for {made.by.key} (priority {made.by.priority})"
        step = partial(_step, time=made.time, decision=made.id, preemption=made)
        if is_victim(key, record) and made.outcome != "failed":
            came = "evicted" if made.outcome == "told" else "chosen to be evicted"
            where = f" from {made.node}" if made.node else ""
            yield step("evicted", text=f"it was {came}{where} {for_whom}", pods=(made.by,))
        if made.by.key == key:
            verb = {"told": "evicted", "deciding": "chose to evict"}.get(made.outcome, "could not evict all of")
            text, takers = f"it {verb} {_names(pods)}{on}", made.room_taken_by
            if made.verdict == "used":
                text += ", and got a node"
            elif made.verdict:
                text += f", but got no node there{f': {_names(takers)} took the room' if takers else ''}"
            yield step("preempted", text=text, pods=(*pods, *takers))
        if took_room(key, record):
            yield step("took", text=f"it took the room{on} that was freed {for_whom}", pods=(made.by,))


def _names(pods: Sequence[PodName]) -> str:
    more = [f"{len(pods) - NAMED} more"] if len(pods) > NAMED else []
    return all_of([*(each.key for each in pods[:NAMED]), *more]) if pods else "nobody"


def _replaced(key: str, record: PreemptionRecord, cluster: Cluster) -> Iterator[StoryStep]:
    """Yields the first pods that the controller of an evicted one has made since, one for each that it lost."""
    gone = next((each for each in record.victims if each.pod.key == key), None)
    if gone is None or not gone.owner or record.outcome == "failed":
        return
    evicted = rfc3339(datetime.fromtimestamp(record.time, UTC))  # objects are created at whole seconds, too
    made = {
        each.uid: each
        for each in (*cluster.pending.values(), *cluster.cache.pods)
        if (each.metadata.creation_timestamp or "") >= evicted
        and (each.namespace, each.uid != gone.pod.uid) == (gone.pod.namespace, True)
        and any(f"{owner.kind}/{owner.name}" == gone.owner for owner in each.metadata.owner_references)
    }
    number_lost = sum(each.owner == gone.owner for each in record.victims)
    for each in sorted(made.values(), key=lambda pod: pod.metadata.creation_timestamp or "")[:number_lost]:
        where = f"is on {each.spec.node_name}" if each.spec.node_name else "waits for a node"
        text = f"{gone.owner} made {each.key} instead, which {where}"
        yield _step("replaced", each.metadata.creation_timestamp, text, pods=(PodName.of(each),))


# What Events and the pod tell.


def _told_by_events(events: ListedEvents | None) -> Iterator[StoryStep]:
    for each in events.items if events is not None else ():
        if what := _OF_EVENTS.get(each.reason):
            text = f"{each.source or 'an Event'}: {for_people(each.message)}"
            yield _step(what, each.time or None, text, first=each.first or None, count=each.count)


def _told_by_pod(pod: Pod, known: set[What]) -> Iterator[StoryStep]:
    created, workload, deleted = pod.metadata.creation_timestamp, workload_of(pod), pod.metadata.deletion_timestamp
    yield _step("created", created, f"it was created{f' by {workload}' if workload else ''}")
    for each in pod.status.conditions:
        time, said = each.last_transition_time, f": {for_people(each.message)}" if each.message else ""
        match each.type, each.status:
            case "PodScheduled", "False" if each.reason != "SchedulingGated" and "refused" not in known:
                # It holds since the first refusal, with the words of the last.
                yield _step("refused", None, f"{pod.scheduler_name} refused it{said}", first=time, count=0)
            case "PodScheduled", "True" if "placed" not in known:
                yield _step("placed", time or pod.status.start_time, f"it got the node {pod.spec.node_name}")
            case "DisruptionTarget", "True" if "evicted" not in known:
                yield _step("evicted", time or deleted, f"it was chosen to be evicted{said}")
    if deleted:
        yield _step("ended", deleted, "it is being deleted")


# The whole.


def _end(steps: Sequence[StoryStep]) -> str:
    ends = [each for what in ("placed", "evicted") for each in steps if each.what == what]
    last = f"; the last that is recorded, at {ends[-1].time}: {ends[-1].text}" if ends else ""
    came = [f" {each.text}." for each in steps if each.what == "replaced"]
    return f"It is gone or has finished{last}.{''.join(came)}"


def _wait(pod: Pod, steps: Sequence[StoryStep], since: str | None, refusals: int | None) -> str:
    times = "" if not refusals else " once" if refusals == 1 else f" {refusals:,} times"
    refused = "" if refusals == 0 else f" and was refused{times}"
    if not pod.spec.node_name:
        return f"It has waited{f' since {since}' if since else ''}{refused}."
    placed = next((each.time for each in reversed(steps) if each.what == "placed"), None)
    began, ended = moment_of(since), moment_of(placed)
    if began is None or ended is None:
        return f"It has a node{refused}."
    return f"It waited {human_duration(max(ended - began, timedelta()))} for its node{refused}."


def _refusals(pod: Pod | None, attempts: Sequence[AttemptRecord], steps: Sequence[StoryStep]) -> int | None:
    """Returns how often the newest pod of the name was refused; None if it was, and nobody knows how often."""
    uid = pod.uid if pod is not None else attempts[-1].pod.uid if attempts else ""
    own = [each for each in attempts if each.number and each.pod.uid == uid]
    if own:
        return own[0].number - 1 + sum(each.outcome == "Unschedulable" for each in own)
    told = [each.count for each in steps if each.what == "refused" and not each.decision]
    return sum(told) or (None if told else 0)

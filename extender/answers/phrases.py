"""Phrases that the command line, the page and the summaries share, and the reasons in a message of a scheduler.

They need no engine.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from extender.answers.overviews import FoundNames
from extender.answers.parts import Victim
from extender.answers.stories import Preemption, StoryStep
from extender.answers.types import Explanation, GroupOutcome, Lack, PreemptionAnswer
from extender.values.klog.setup import escaped
from extender.values.objects.grouping import NO_VICTIMS, NOT_HELPFUL
from extender.values.objects.listed_events import ListedEvents
from extender.values.objects.resource_names import PODS

NOT_KNOWN: Final = "not known"
"""What messages about something begin with that could not be read."""
NAMES_LISTED: Final = 3

_OF_A_SCHEDULER: Final = " nodes are available:"
_ASIDES: Final = "no new claims to deallocate|still not schedulable"
_INTERNAL: Final = re.compile(rf"(?<=\. )(?:{_ASIDES})(?:, |$)|, (?:{_ASIDES})(?=, |$)|(?<=\. )not found$")
_CLAUSES: Final = re.compile(r"(?:^|(?<=, ))(\d+) (.+?)(?=, \d+ |$)")
_IN_QUOTES: Final = re.compile(r'"[^"]*"')


def for_people(text: str) -> str:
    """Returns a text as a person may read it. A scheduler's message is without what only its developers understand:
    that DynamicResources found no claim to deallocate, or did not look ("not found"). Characters that would move the
    cursor of a terminal, turn the direction of text, or hide in it, are escaped.
    """
    if _OF_A_SCHEDULER in text:
        text = _INTERNAL.sub("", text).rstrip()
    return text if text.isprintable() else escaped(text, len(text))


def clauses(message: str) -> list[tuple[int, str]]:
    """Returns (nodes, reason) of kube-scheduler's message, most nodes first; none if it is not about nodes."""
    _, separator, rest = message.partition(" nodes are available: ")
    matches = _CLAUSES.findall(re.split(r"\. |\.$", rest)[0]) if separator else []
    return sorted(((int(nodes), reason) for nodes, reason in matches), key=lambda clause: -clause[0])


def reasons_in(message: str) -> Counter[str]:
    """Returns reason -> nodes of a message of a scheduler; equal reasons are equal texts."""
    by_nodes: Counter[str] = Counter()
    for nodes, reason in clauses(message):
        by_nodes[_without_names(reason)] += nodes
    message = for_people(message)
    return by_nodes or Counter({_without_names(message.partition(" nodes are available: ")[2] or message): 0})


def _without_names(text: str) -> str:
    """Returns the text without the names in quotes, so that equal reasons are equal texts."""
    return _IN_QUOTES.sub('"…"', text).rstrip(".")


def guess(found_names: FoundNames, kind: str, namespace: str, name: str) -> str:
    """Returns the end of a sentence about a pod or node that does not exist: the one that is likely to be meant, by
    what was found of its name. Empty if none is near.
    """
    items = [item for item in found_names.items if item.kind == kind]
    items.sort(key=lambda item: (item.name != name, item.namespace != namespace))
    return "".join(f"; did you mean {'/'.join(filter(None, (item.namespace, item.name)))}?" for item in items[:1])


def its_scheduler(answer: Explanation) -> str:
    """Returns what the pod's scheduler has done with it, and what it would do now; empty if the summary says it."""
    its = answer.standing
    if its is None or its.state in ("waiting", "binding") or answer.state == "Gated":
        return ""
    if its.state != "refused":
        return its.text
    text = its.text.removesuffix(f": {for_people(answer.message)}").removesuffix(".")
    return text + {"fits": "; it would fit now", "refused": "; it would be refused now, too"}.get(its.now, "")


def happened(step: StoryStep, ago: Callable[[str | None], str]) -> str:
    """Returns when a step happened, as kubectl says it of Events: `5s`, or `5s (x3 over 2m)`."""
    if step.count < 2:
        return ago(step.time or step.first)
    return f"{ago(step.time)} (x{step.count} since {ago(step.first)})"


def last_words(what: str, events: ListedEvents) -> str:
    """Returns what the newest Event about something says."""
    if events.why_none or not events.items:
        return f"no Events of {what} are known{f': {events.why_none}' if events.why_none else ''}"
    last = events.items[0]
    times = f", {plural(last.count, 'time')} since {last.first}" if last.count > 1 else ""
    return f"last Event of {what}, at {last.time}{times}: {last.reason}: {last.message}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def all_of(things: Iterable[str]) -> str:
    """Returns `a`, `a and b`, or `a, b and c`."""
    *first_things, last = things
    return f"{', '.join(first_things)} and {last}" if first_things else last


def noun(lack: Lack) -> str:
    """Returns the word for what the node is short of: `cpu`, `pods`, but one `pod`."""
    return "pod" if lack.resource == PODS and lack.short == "1" else lack.resource


def loss(preemption: PreemptionAnswer | Preemption) -> str:
    """Returns the GPU time that a preemption loses, and kube-scheduler's own choice beside policies; else empty."""
    alone = preemption.without_policies
    ours = f"{preemption.gpu_hours:.1f} GPU-hours" if preemption.victims else "none"
    if alone is None:
        return f"GPU time lost: {ours}" if preemption.gpu_hours else ""
    if {victim.pod.uid for victim in alone.victims} == {victim.pod.uid for victim in preemption.victims}:
        who = "the same pods"
    else:
        who = ", ".join(map(_name, alone.victims[:NAMES_LISTED]))
        who += f" and {len(alone.victims) - NAMES_LISTED} more" if len(alone.victims) > NAMES_LISTED else ""
    where = f" on {alone.node}" if alone.node else ""
    theirs = f"{preemption.gpu_hours_without_policies:.1f} GPU-hours"
    return f"GPU time lost: {ours}; kube-scheduler alone would evict {who}{where}, and lose {theirs}"


def alone_would_evict(group: GroupOutcome) -> str:
    """Returns how many pods kube-scheduler alone would evict, if a search for the fewest found others; else empty."""
    number = len(group.without_policies)
    return f"kube-scheduler alone would evict {number}" if number else ""


def _name(victim: Victim) -> str:
    return "a pod of another namespace" if victim.pod.hidden else victim.pod.key


def why_no_room(preemption: PreemptionAnswer) -> str:
    """Returns half a sentence that says why evictions do not help this pod; pods of higher priority are left out."""
    if not preemption.eligible:
        return f"it may not preempt: {preemption.message.removesuffix('.')}"
    if preemption.num_candidates:
        return f"preemption failed: {preemption.message.removesuffix('.')}"
    reasons = {reason_count.reason for reason_count in preemption.not_helpful} - {NOT_HELPFUL}
    if not reasons:
        return "no eviction would make room"
    if reasons == {NO_VICTIMS}:
        return "no pod of lower priority is on a node where evictions could help"
    return "evicting all pods of lower priority would not make room"

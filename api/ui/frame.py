"""What every page shows around its content: how full the cluster is, and the pending pods."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final
from urllib.parse import quote

from api.ui.priorities import Priorities
from api.ui.wording import ago, plural, pod_words, priority_words, share
from extender.answers.cluster_map import ClusterMap
from extender.answers.types import Queue, QueuePlace
from extender.records.values import PodName

MAX_PENDING: Final = 150
"""The number of pods that are listed; others are counted, and can be found by name."""

_CLAUSES: Final = re.compile(r"(\d+) (.+?)(?=, \d+ |$)")
_QUEUES: Final[Mapping[str, tuple[str, str]]] = {
    "active": ("▶", "in the active queue"),
    "inFlight": ("●", "being scheduled"),
    "backoff": ("◔", "backing off"),
    "unschedulable": ("○", "unschedulable"),
    "gated": ("‖", "gated"),
}


@final
@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending pod."""

    name: str
    namespace: str
    href: str
    css: str
    priority: str
    sign: str
    place: str
    reason: str
    since: str
    attempts: int


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the header; one with `percent` has a bar."""

    words: str
    value: str
    percent: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """What every page shows."""

    figures: tuple[Figure, ...]
    pending: tuple[PendingRow, ...]
    num_pending: int
    num_left_out: int
    find: str
    deciding: bool
    priorities: Priorities
    version: str
    signed_in: bool


def frame(shown: ClusterMap, queue: Queue, now: datetime, find: str = "", version: str = "", *, signed_in: bool = False) -> Frame:
    """Returns the frame of a page.

    Arguments:
        find: a part of the names of the pods to list.
        version: the version of what is shown; the page is drawn again when there is another one.
        signed_in: whether there is a session to sign out of.
    """
    priorities = Priorities.of([*shown.priorities, *(place.pod.priority for place in queue.items)])
    found = [place for place in queue.items if find.lower() in pod_words(place.pod).lower()]
    rows = tuple(_row(place, priorities, now, queue.deciding) for place in found[:MAX_PENDING])
    num_pending = max(len(queue.items), sum(queue.counts.values()))
    return Frame(
        _figures(shown, num_pending), rows, num_pending, len(found) - len(rows), find, queue.deciding, priorities, version, signed_in
    )


def pod_href(pod: PodName) -> str:
    """Returns the address of a pod's page; empty for a pod that is hidden."""
    return "" if pod.hidden else f"/ui/pods/{quote(pod.namespace, safe='')}/{quote(pod.name, safe='')}"


def short_reason(message: str) -> str:
    """Returns the reason in kube-scheduler's message that holds on most nodes."""
    _, found, rest = message.partition(" nodes are available: ")
    if not found:
        return message
    clauses = sorted(_CLAUSES.findall(re.split(r"\. |\.$", rest)[0]), key=lambda clause: -int(clause[0]))
    if not clauses:
        return message
    count, reason = clauses[0]
    return f"{count} {reason}" + (f", and {plural(len(clauses) - 1, 'other reason')}" if len(clauses) > 1 else "")


def _figures(shown: ClusterMap, num_pending: int) -> tuple[Figure, ...]:
    cpu = share(sum(node.requested_cpu for node in shown.nodes), sum(node.cpu for node in shown.nodes))
    memory = share(sum(node.requested_memory for node in shown.nodes), sum(node.memory for node in shown.nodes))
    return (
        Figure("node" if len(shown.nodes) == 1 else "nodes", f"{len(shown.nodes):,}"),
        Figure("pod" if shown.num_pods == 1 else "pods", f"{shown.num_pods:,}"),
        Figure("pending", f"{num_pending:,}"),
        Figure("cpu", f"{cpu} %", min(cpu, 100)),
        Figure("memory", f"{memory} %", min(memory, 100)),
    )


def _row(place: QueuePlace, priorities: Priorities, now: datetime, deciding: bool) -> PendingRow:
    sign, words = _QUEUES[place.queue]
    if not deciding and place.queue == "unschedulable":
        words = "no node yet"
    return PendingRow(
        name=place.pod.name or pod_words(place.pod),
        namespace=place.pod.namespace,
        href=pod_href(place.pod),
        css=priorities.css(place.pod.priority),
        priority=priority_words(place.pod.priority),
        sign=sign,
        place=f"{words} ({place.position})" if place.position is not None else words,
        reason=_reason(place, words),
        since=ago(place.since, now),
        attempts=place.attempts,
    )


def _reason(place: QueuePlace, words: str) -> str:
    if place.gated_by:
        return f"gated by {place.gated_by}"
    if place.message:
        return short_reason(place.message)
    return f"refused by {', '.join(place.refused_by)}" if place.refused_by else words

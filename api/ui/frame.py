"""What every page shows around its content: how full the cluster is, and the pending pods; and the page's style sheet,
scripts and pictures, under a path that changes with them, so that browsers may keep them forever.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Final, final
from urllib.parse import quote, urlencode

from api.ui.resources import Priorities
from api.ui.wording import ago, plural, pod_words, share
from extender.answers.overviews import ClusterMap, Found
from extender.answers.parts import PodName
from extender.answers.pending import Pending, pending
from extender.answers.phrases import clauses
from extender.answers.types import Queue, QueuePlace
from extender.values import limits
from extender.values.objects.grouping import SYSTEM_CRITICAL

_QUEUES: Final[Mapping[str, tuple[str, str]]] = {
    "active": ("▶", "in the active queue"),
    "inFlight": ("●", "being scheduled"),
    "backoff": ("◔", "backing off"),
    "unschedulable": ("○", "unschedulable"),
    "gated": ("‖", "gated"),
    "placed": ("◔", "placed"),
    "elsewhere": ("○", "not in a queue here"),
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
    href: str
    percent: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """What every page shows, and the map and the time that it shows them of."""

    shown: ClusterMap
    now: datetime
    figures: tuple[Figure, ...]
    pending: tuple[PendingRow, ...]
    problems: Pending
    queue: Queue
    priorities: Priorities
    version: str
    """The version of what is shown; the page is drawn again when there is another one."""
    signed_in: bool
    """Whether there is a session to sign out of."""
    has_shadow: bool = False
    """Whether decisions are compared with those of another scheduler."""
    warning: str = ""
    """What the caller is told of the whole page."""


def frame(
    cluster_map: ClusterMap,
    queue: Queue,
    now: datetime,
    version: str = "",
    *,
    signed_in: bool = False,
    has_shadow: bool = False,
    warning: str = "",
) -> Frame:
    # With the classes that no pod has yet, so that a pod that comes seldom changes the colours of others.
    classes = [value for value in cluster_map.priority_classes.values() if value < SYSTEM_CRITICAL]
    waiting = [place.pod.priority for place in queue.items]
    priorities = Priorities.of([*cluster_map.priorities, *waiting, *classes], cluster_map.priority_classes)
    rows = tuple(_row(place, priorities, now, queue.deciding) for place in queue.items[: limits.PAGE_PENDING])
    problems = pending(queue)
    figures = _figures(cluster_map, problems.pods)
    return Frame(cluster_map, now, figures, rows, problems, queue, priorities, version, signed_in, has_shadow, warning)


def address(path: str, **parameters: object) -> str:
    """Returns the address of a page, without the parameters that are empty."""
    query = urlencode({name: value for name, value in parameters.items() if value})
    return f"{path}?{query}" if query else path


def pod_href(pod: PodName) -> str:
    """Returns the address of a pod's page; empty for a pod that is hidden."""
    return "" if pod.hidden else f"/ui/pods/{quote(pod.namespace, safe='')}/{quote(pod.name, safe='')}"


def pods_href(namespace: str, *, workload: str = "", group: str = "") -> str:
    return address("/ui/pods", namespace=namespace, workload=workload, group=group)


def node_href(name: str) -> str:
    return f"/ui/nodes/{quote(name, safe='')}"


def found_href(found_object: Found) -> str:
    match found_object.kind:
        case "node":
            return node_href(found_object.name)
        case "pod":
            return pod_href(PodName(namespace=found_object.namespace, name=found_object.name))
        case "workload":
            return pods_href(found_object.namespace, workload=found_object.name)
        case "group":
            return pods_href(found_object.namespace, group=found_object.name)
        case "namespace":
            return pods_href(found_object.name)


def short_reason(message: str) -> str:
    """Returns the reason in kube-scheduler's message that holds on most nodes."""
    reasons = clauses(message)
    if not reasons:
        return message
    nodes, reason = reasons[0]
    return f"{nodes} {reason}" + (f", and {plural(len(reasons) - 1, 'other reason')}" if len(reasons) > 1 else "")


def _figures(cluster_map: ClusterMap, num_pending: int) -> tuple[Figure, ...]:
    cpu = share(sum(node.requested_cpu for node in cluster_map.nodes), sum(node.cpu for node in cluster_map.nodes))
    memory = share(
        sum(node.requested_memory for node in cluster_map.nodes), sum(node.memory for node in cluster_map.nodes)
    )
    return (
        Figure("node" if len(cluster_map.nodes) == 1 else "nodes", f"{len(cluster_map.nodes):,}", "/ui/nodes"),
        Figure("pod" if cluster_map.num_pods == 1 else "pods", f"{cluster_map.num_pods:,}", "/ui/pods"),
        Figure("pending", f"{num_pending:,}", "/#problems"),
        Figure("cpu", f"{cpu} %", "/?by=cpu#map", min(cpu, 100)),
        Figure("memory", f"{memory} %", "/?by=memory#map", min(memory, 100)),
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
        priority=priorities.words(place.pod.priority),
        sign=sign,
        place=f"{words} ({place.position})" if place.position is not None else words,
        reason=reason_of(place) or words,
        since=ago(place.since, now),
        attempts=place.attempts,
    )


def reason_of(place: QueuePlace) -> str:
    """Returns in a few words why the pod waits; empty if that is not known."""
    if place.standing is not None and place.standing.reason:
        return place.standing.reason
    if place.gated_by:
        return f"gated by {place.gated_by}"
    if place.message:
        return short_reason(place.message)
    return f"refused by {', '.join(place.refused_by)}" if place.refused_by else ""


_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@final
@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    content: bytes
    media_type: str


@final
@dataclass(frozen=True, slots=True)
class Assets:
    """All files, with one version for all of them, so that scripts find each other under the same path."""

    version: str
    files: Mapping[str, Asset]

    def path(self, name: str) -> str:
        if name not in self.files:
            raise LookupError(f"there is no file {name}")
        return f"/ui/static/{self.version}/{name}"


@cache
def assets() -> Assets:
    """Returns the files of this version of the program."""
    folder = resources.files("api.ui") / "static"
    contents = {file.name: file.read_bytes() for file in sorted(folder.iterdir(), key=lambda file: file.name)}
    files = {name: Asset(content, _TYPES[f".{name.rpartition('.')[2]}"]) for name, content in contents.items()}
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + content for name, content in contents.items()))
    return Assets(digest.hexdigest()[:16], files)

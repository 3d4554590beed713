"""The judge of a history: functions that yield a sentence for each thing that must not have happened.

They know nothing of how the history came about. What nobody can know (whether a request without an answer was done) is
decided in favour of the accused.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from bench.jepsen.history import (
    CLIENT,
    LEASE,
    Began,
    Ended,
    Event,
    Happened,
    Healed,
    History,
    Listed,
    Record,
    Request,
    Seen,
)
from reprieve.cluster.in_memory import SAVE_EVERY

SETTLE_SECONDS: Final = 60.0
"""The time after the last fault within which everything must be in order, without that in which processes wait for a
processor.
"""
LEASE_SECONDS: Final = 3.0
"""The leaseDuration of the replicas."""
LONGEST_WRITE: Final = 1.0
"""leaseDuration less renewDeadline: what has been under way for longer may arrive when somebody else leads."""
FINISHED: Final = ("Succeeded", "Failed")

Position = tuple[int, int]
"""The number of an API server and a resourceVersion of it: positions are in the order in which the servers did things.
"""
R = TypeVar("R", bound=Record)


def violations(history: History) -> list[str]:
    """Returns what is wrong with a history; nothing, if all is well."""
    return [f"{check.__name__}: {sentence}" for check in CHECKS for sentence in check(history)]


def moved_pods(history: History) -> Iterator[str]:
    """No pod is bound twice, moved or unbound, and none is bound but by a binding that a replica has asked for."""
    era_of = eras(history)
    nodes: dict[tuple[int, str], str] = {}
    for position, pod in _observed_pods(history):
        key = era_of[position[0]], pod.uid
        before = nodes.get(key, "")
        if before and pod.node != before:
            yield f"pod {pod.name} ({pod.uid}) was on {before}, and is on {pod.node or 'no node'} at {position}"
        nodes[key] = pod.node or before
    asked_nodes, done = defaultdict(set), defaultdict(list)
    for request in _records(history, Request):
        if request.is_binding and request.may_be_done:
            asked_nodes[request.uid].add(request.node)
        if request.is_binding and request.is_done:
            done[era_of[request.life], request.uid].append(request)
    for (_, uid), node in nodes.items():
        if node and node not in asked_nodes[uid]:
            yield f"pod {uid} is on {node}, for which nobody has asked"
    for (_, uid), requests in done.items():
        if len(requests) > 1:
            yield f"pod {uid} was bound {len(requests)} times: {[(binding.by, binding.node) for binding in requests]}"


def rival_writers(history: History) -> Iterator[str]:
    """A replica writes only while the lease names it, in the order in which the API server did things.

    Nothing but a fencing token, which the API of Kubernetes does not have, could stop a write that is very slow on its
    way.
    """
    era_of, began_at = eras(history), {began.life: began.at for began in _records(history, Began)}
    writers = {
        request.holder: request.by
        for request in _records(history, Request)
        if request.resource == "leases" and request.holder
    }
    leases = _leases(history)
    for request in _records(history, Request):
        if (
            request.by == CLIENT
            or request.resource == "leases"
            or not request.is_done
            or request.until - request.at > LONGEST_WRITE
        ):
            continue
        position = _position_of(request, history)
        if position is None:
            continue
        past = [entry for entry in leases if entry[0] < position and era_of[entry[0][0]] == era_of[position[0]]]
        holder = past[-1][1] if past else ""
        if writers.get(holder) == request.by:
            continue
        # Who led an API server that has forgotten it can learn that only from a renewal.
        first = min(life for life, era in era_of.items() if era == era_of[request.life])
        if first and request.at < began_at[first] + LEASE_SECONDS and _led_before(request.by, first, leases, writers):
            continue
        what = f"{request.verb} {request.resource}/{request.subresource} {request.name}"
        yield (
            f"{request.by} wrote ({what}) at {position}, {request.at:.2f} s, while "
            f"{writers.get(holder, holder) or 'nobody'} led"
        )


def lost_pods(history: History) -> Iterator[str]:
    """What the API server has acknowledged is there until somebody deletes it, and at the end each pod is bound or
    cannot be.
    """
    era_of = eras(history)
    deleted: dict[str, float] = {}
    for request in _records(history, Request):
        if request.verb == "delete" and request.may_be_done:
            deleted[request.uid] = min(request.at, deleted.get(request.uid, request.at))
    gone_nodes = {
        request.name
        for request in _records(history, Request)
        if (request.verb, request.resource) == ("delete", "nodes")
    }
    places = defaultdict(set)
    for _, pod in _observed_pods(history):
        places[pod.uid].add(pod.node)
    era_by_uid: dict[str, int] = {}
    """The uids of acknowledged pods -> the era in which they were acknowledged, or from whose file they came."""

    def missing_uids(pods: Iterable[Seen], era: int, until: float) -> Iterator[str]:
        uids = {pod.uid for pod in pods}
        for uid, since in era_by_uid.items():
            if since == era and uid not in uids and deleted.get(uid, until) >= until and not places[uid] & gone_nodes:
                yield uid

    records = [record for record in history if isinstance(record, Began | Request | Ended)]
    for record in sorted(records, key=lambda record: record.until if isinstance(record, Request) else record.at):
        match record:
            case Request(by="client", verb="create", resource="pods", is_done=True):
                era_by_uid[record.uid] = era_of[record.life]
            case Began():
                if not record.forgets:
                    yield from (
                        f"pod {uid} was not saved" for uid in missing_uids(record.saved, era_of[record.life], record.at)
                    )
                era_by_uid |= {pod.uid: era_of[record.life] for pod in record.saved}
            case Ended():
                yield from (f"pod {uid} is gone" for uid in missing_uids(record.pods, max(era_of.values()), record.at))


def torn_files(history: History) -> Iterator[str]:
    """An API server that could not save leaves its file as it was, if it has not lived long enough to save it
    meanwhile.
    """
    before: Began | None = None
    for began in _records(history, Began):
        if (
            began.forgets
            and before is not None
            and began.at - before.at < SAVE_EVERY
            and _places(before.saved) != _places(began.saved)
        ):
            yield f"server {began.life} began with {_places(began.saved)}, and the file was {_places(before.saved)}"
        before = began


def crowded_nodes(history: History) -> Iterator[str]:
    """No binding puts more on a node than it has."""
    for life, lists, events in _timelines(history):
        rooms = {node.name: node.cpu for listed in lists.get("nodes", ()) for node in listed.objects}
        rooms |= {event.seen.name: event.seen.cpu for event in events.get("nodes", {}).values()}
        if not lists.get("pods"):
            continue
        pods = {pod.uid: pod for pod in lists["pods"][0].objects}
        for version, event in sorted(events.get("pods", {}).items()):
            if version <= lists["pods"][0].version:
                continue
            pod, before = event.seen, pods.pop(event.seen.uid, None)
            if event.type == "DELETED" or pod.phase in FINISHED:
                continue
            pods[pod.uid] = pod
            requested_cpu = sum(other.cpu for other in pods.values() if other.node == pod.node)
            if pod.node and (before is None or not before.node) and requested_cpu > rooms.get(pod.node, requested_cpu):
                yield (
                    f"{pod.name} was bound to {pod.node} at {(life, version)}: {requested_cpu} of {rooms[pod.node]} "
                    "millicores"
                )


def watch_errors(history: History) -> Iterator[str]:
    """Versions grow, watches show each change after their beginning once and in order, and lists are the sum of the
    changes before them.
    """
    highest = 0
    for life, lists, events in _timelines(history):
        versions = {listed.version for series in lists.values() for listed in series} | {
            number for by_version in events.values() for number in by_version
        }
        if versions and min(versions) < highest:
            yield f"server {life} has a version {min(versions)}, and the one before had {highest}"
        highest = max(versions, default=highest)
        for resource, changes in events.items():
            yield from _skipped(life, resource, changes, history)
            if lists.get(resource):
                yield from _wrong_lists(life, resource, changes, lists[resource], is_last=life == max(eras(history)))
        writes = [
            write
            for write in _records(history, Request)
            if write.life == life and write.version and write.is_done and write.verb != "delete"
        ]
        for request in writes:
            changes, first = events.get(request.resource, {}), next(iter(lists.get(request.resource, ())), None)
            if (
                first is not None
                and first.version < request.version < max(changes, default=0)
                and request.version not in changes
            ):
                yield (
                    f"{request.by} was told of version {request.version} of {request.resource} {request.name}, and no "
                    "watch shows it"
                )


def unsettled(history: History) -> Iterator[str]:
    """Soon after the last fault each pod is bound, or is said not to fit and does not."""
    healed, ended = _records(history, Healed), _records(history, Ended)
    if not healed or not ended:
        yield "the run did not come to its end"
        return
    if ended[-1].is_starved:
        return  # the machine was too busy with other things
    if ended[-1].at - healed[-1].at - ended[-1].waited > SETTLE_SECONDS:
        yield f"that took {ended[-1].at - healed[-1].at:.0f} s"
    yield from unexplained(ended[-1].pods, ended[-1].nodes)


def unexplained(pods: Iterable[Seen], nodes: Iterable[Seen]) -> Iterator[str]:
    """Yields what should still change: pods that are leaving, or wait though there is room or could be made, or wait
    without a word.
    """
    pods = [pod for pod in pods if pod.phase not in FINISHED]
    for pod in pods:
        if pod.is_closed:
            yield f"pod {pod.name} is being deleted"
        elif not pod.node and pod.reason != "Unschedulable":
            yield f"pod {pod.name} waits, and nothing is said about it"
    for node in nodes:
        if node.is_closed:
            continue
        for pod in pods:
            if pod.node or pod.selector not in ("", node.name):
                continue
            # Whoever is less important can be preempted.
            stay = sum(other.cpu for other in pods if other.node == node.name and other.priority >= pod.priority)
            if stay + pod.cpu <= node.cpu:
                yield f"pod {pod.name} waits, and could be on node {node.name}"


def broken_processes(history: History) -> Iterator[str]:
    """No process fails in a way that is not foreseen."""
    yield from (happened.what for happened in _records(history, Happened) if happened.broken)


CHECKS: Final[tuple[Callable[[History], Iterator[str]], ...]] = (
    moved_pods,
    rival_writers,
    lost_pods,
    torn_files,
    crowded_nodes,
    watch_errors,
    unsettled,
    broken_processes,
)


def eras(history: History) -> dict[int, int]:
    """Returns the era of each life of the API server."""
    era_of: dict[int, int] = {}
    for began in _records(history, Began):
        era_of[began.life] = max(era_of.values(), default=0) + began.forgets
    return era_of


def _records(history: History, kind: type[R]) -> list[R]:
    return [record for record in history if isinstance(record, kind)]


def _observed_pods(history: History) -> list[tuple[Position, Seen]]:
    """Pods as somebody saw them, in the order of the API servers. What is in a file comes before what its server
    did.
    """
    pods: list[tuple[Position, Seen]] = []
    for record in history:
        match record:
            case Began():
                pods += [((record.life, 0), pod) for pod in record.saved]
            case Listed(resource="pods"):
                pods += [((record.life, pod.version), pod) for pod in record.objects]
            case Event(resource="pods") if record.type != "DELETED":
                pods.append(((record.life, record.seen.version), record.seen))
    return sorted(pods, key=lambda pair: pair[0])


def _leases(history: History) -> list[tuple[Position, str]]:
    """Who held the replicas' lease from when on; told by whoever wrote it, and by observers.

    An API server has a lease of its own.
    """
    holders = {}
    for record in history:
        match record:
            case Request(resource="leases", name=name, is_done=True) if record.version and name == LEASE:
                holders[record.life, record.version] = record.holder
            case Event(resource="leases", seen=lease) if lease.name == LEASE:
                holders[record.life, lease.version] = lease.holder if record.type != "DELETED" else ""
            case Listed(resource="leases"):
                holders |= {(record.life, obj.version): obj.holder for obj in record.objects if obj.name == LEASE}
    return sorted(holders.items())


def _led_before(process: str, life: int, leases: list[tuple[Position, str]], writers: dict[str, str]) -> bool:
    """Whether a process was the last to lead before this life of the API server."""
    holders = [holder for position, holder in leases if position[0] < life]
    return bool(holders) and writers.get(holders[-1]) == process


def _position_of(request: Request, history: History) -> Position | None:
    """Returns where in the API server's order a write of a replica was done; None if nobody saw it, or another may have
    done the same.
    """
    if request.is_binding or request.verb == "delete":
        if request.verb == "delete" and any(
            other.verb == "delete" and other.uid == request.uid and other.by != request.by
            for other in _records(history, Request)
        ):
            return None
        events = [
            event for event in _records(history, Event) if event.life == request.life and event.seen.uid == request.uid
        ]
        done = [
            event.seen.version for event in events if (event.seen.node if request.is_binding else event.seen.is_closed)
        ]
        return (request.life, min(done)) if done else None
    is_news = request.version and all(
        event.at >= request.at
        for event in _records(history, Event)
        if (event.life, event.seen.version) == (request.life, request.version)
    )
    return (request.life, request.version) if is_news else None


def _places(objects: Iterable[Seen]) -> list[tuple[str, str]]:
    return sorted((pod.uid, pod.node) for pod in objects)


Timeline = tuple[int, dict[str, list[Listed]], dict[str, dict[int, Event]]]


def _timelines(history: History) -> Iterator[Timeline]:
    """Yields for each life of the API server the lists, by resource and version, and what any watch has shown, by
    resource and version.
    """
    for life in eras(history):
        lists: dict[str, list[Listed]] = defaultdict(list)
        events: dict[str, dict[int, Event]] = defaultdict(dict)
        for record in history:
            if isinstance(record, Listed) and record.life == life:
                lists[record.resource].append(record)
            elif isinstance(record, Event) and record.life == life:
                events[record.resource].setdefault(record.seen.version, record)
        yield (
            life,
            {resource: sorted(series, key=lambda listed: listed.version) for resource, series in lists.items()},
            dict(events),
        )


def _skipped(life: int, resource: str, changes: dict[int, Event], history: History) -> Iterator[str]:
    watches: dict[int, list[Event]] = defaultdict(list)
    for event in _records(history, Event):
        if (event.life, event.resource) == (life, resource):
            watches[event.watch].append(event)
    for events in watches.values():
        since = events[0].since
        name = f"the watch of {resource} by {events[0].by} from {(life, since)}"
        versions = [event.seen.version for event in events]
        if versions != sorted(set(versions)) or versions[0] <= since:
            yield f"{name} shows {versions}"
        gaps = sorted({version for version in changes if since < version <= max(versions)} - set(versions))
        if gaps:
            yield f"{name} skips {gaps}"
        for event in events:
            other = changes[event.seen.version]
            if (event.type, event.seen) != (other.type, other.seen):
                yield f"{name} shows {event.type} {event.seen}, and another one {other.type} {other.seen}"


def _wrong_lists(
    life: int, resource: str, changes: dict[int, Event], lists: list[Listed], *, is_last: bool
) -> Iterator[str]:
    """Compares each list with the first one and the changes since then; but for lists after the last change that a
    watch has shown.
    """
    objects = {obj.name: obj for obj in lists[0].objects}
    remaining = sorted((version, event) for version, event in changes.items() if version > lists[0].version)
    for listed in lists[1:]:
        while remaining and remaining[0][0] <= listed.version:
            _, event = remaining.pop(0)
            objects.pop(event.seen.name, None)
            if event.type != "DELETED":
                objects[event.seen.name] = event.seen
        listing = {obj.name: obj for obj in listed.objects}
        if listing != objects and (remaining or is_last):
            differing = sorted(name for name in {*listing, *objects} if listing.get(name) != objects.get(name))
            yield (
                f"the list of {resource} by {listed.by} at {(life, listed.version)} is not what the changes before it "
                f"make: {differing}"
            )

"""Where pods wait, in the words of people: the queue as `QueuePlace`s."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from extender import framework as fwk
from extender.answers.types import PodName, Queue, QueuePlace, WakesOn
from extender.answers.wall_clock import WallClock
from extender.objects.pod import Pod
from extender.queue.queued_pod_info import QueuedPodInfo
from extender.queue.scheduling_queue import SchedulingQueue

Registered = Mapping[str, Sequence[fwk.ClusterEventWithHint]]
"""Plugin -> the events that it wants to hear of."""

_MAX_PLACES: Final = 5000
"""Pods of one answer; the counts are of all."""


def pod_name(pod: Pod) -> PodName:
    """The pod, by its names."""
    return PodName(namespace=pod.metadata.namespace or "default", name=pod.metadata.name, uid=pod.uid, priority=pod.priority)


def queue_view(queue: SchedulingQueue, registered: Mapping[str, Registered], clock: WallClock) -> Queue:
    """Every pod that waits or is being tried: first those that are tried next.

    Arguments:
        registered: by profile, what its plugins registered.
    """
    places = [_in_flight(info, clock) for info in queue.in_flight_pods()[:_MAX_PLACES]]
    for position, info in enumerate(queue.pods_in_active_q(), start=1):
        if len(places) >= _MAX_PLACES:
            break
        places.append(_place(info, "active", registered, clock, position))
    pausing = [*queue.pods_in_backoff_q(), *queue.pods_in_backoff_q(failed=True)]
    places += [_of_backoff(queue, info, registered, clock) for info in pausing[: _MAX_PLACES - len(places)]]
    places += [_of_unschedulable(info, registered, clock) for info in queue.unschedulable_pods()[: max(0, _MAX_PLACES - len(places))]]
    counts = queue.pending_counts() | {"inFlight": len(queue.in_flight_pods())}
    return Queue(items=tuple(places), counts=counts)


def queue_place(queue: SchedulingQueue, key: str, registered: Mapping[str, Registered], clock: WallClock) -> QueuePlace | None:
    """Where the pod namespace/name waits; None if it does not."""
    tried = next((info for info in queue.in_flight_pods() if info.key == key), None)
    if tried is not None:
        return _in_flight(tried, clock)
    info = queue.get(key)
    if info is None:
        return None
    for position, other in enumerate(queue.pods_in_active_q(), start=1):
        if other is info:
            return _place(info, "active", registered, clock, position)
    if any(info is other for failed in (False, True) for other in queue.pods_in_backoff_q(failed=failed)):
        return _of_backoff(queue, info, registered, clock)
    return _of_unschedulable(info, registered, clock)


def without_a_queue(pods: Iterable[Pod]) -> Queue:
    """Another scheduler decides: the pods that have no node."""
    pending = sorted(pods, key=lambda pod: (-pod.priority, pod.key))
    places = tuple(
        QueuePlace(pod=pod_name(pod), queue="gated" if pod.spec.scheduling_gates else "unschedulable", message=_said(pod))
        for pod in pending
    )
    return Queue(items=places[:_MAX_PLACES], counts={"pending": len(pending)}, deciding=False)


def _in_flight(info: QueuedPodInfo, clock: WallClock) -> QueuePlace:
    return QueuePlace(pod=pod_name(info.pod), queue="inFlight", attempts=info.attempts, since=clock.text(info.timestamp))


def _of_backoff(queue: SchedulingQueue, info: QueuedPodInfo, registered: Mapping[str, Registered], clock: WallClock) -> QueuePlace:
    return _place(info, "backoff", registered, clock, None, queue.backoff_time(info))


def _of_unschedulable(info: QueuedPodInfo, registered: Mapping[str, Registered], clock: WallClock) -> QueuePlace:
    return _place(info, "gated" if info.is_gated else "unschedulable", registered, clock)


def _place(
    info: QueuedPodInfo,
    queue: str,
    registered: Mapping[str, Registered],
    clock: WallClock,
    position: int | None = None,
    backoff_ends: float | None = None,
) -> QueuePlace:
    by = sorted(info.unschedulable_plugins | info.pending_plugins)
    of_profile = registered.get(info.pod.scheduler_name, {})
    return QueuePlace(
        pod=pod_name(info.pod),
        queue=queue,  # type: ignore[arg-type]
        position=position,
        attempts=info.attempts,
        since=clock.text(info.timestamp),
        backoff_ends=None if backoff_ends is None else clock.text(backoff_ends),
        gated_by=info.gating_plugin,
        refused_by=tuple(by),
        wakes_on=() if queue == "active" else _wakes_on(by, of_profile),
        message=_said(info.pod),
    )


def _said(pod: Pod) -> str:
    """What whoever schedules it wrote last: the message of its condition PodScheduled."""
    return next((each.message for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False"), "")


def _wakes_on(plugins: Sequence[str], registered: Registered) -> tuple[WakesOn, ...]:
    """The events that plugins which refused the pod want to hear of. Whether one helps, a hint says when it comes."""
    by_event: dict[str, list[str]] = {}
    for plugin in plugins:
        for each in registered.get(plugin, ()):
            for label in _labels(each.event):
                by_event.setdefault(label, [])
                if plugin not in by_event[label]:
                    by_event[label].append(plugin)
    return tuple(WakesOn(event=event, plugins=tuple(names)) for event, names in by_event.items())


def _labels(event: fwk.ClusterEvent) -> list[str]:
    if event.is_wildcard:
        return ["*"]
    named, action = str(event.action), event.action
    actions = [named] if named else [str(each) for each in _whole(action)]
    return [f"{event.resource.value}/{action}" for action in actions]


def _whole(action: fwk.ActionType) -> list[fwk.ActionType]:
    """What the action is made of; all kinds of updates together are one."""
    if fwk.ActionType.UPDATE in action:
        return [*_whole(action & ~fwk.ActionType.UPDATE), fwk.ActionType.UPDATE]
    return [each for each in fwk.ActionType if each in action]

"""Where pods wait: the scheduling queue as `QueuePlace`s. And what their claims wait for, which no message names."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain, islice
from typing import Final, Literal, final

import msgspec

from extender.answers.parts import PodName, workload_of
from extender.answers.phrases import plural
from extender.answers.types import Queue, QueuePlace, Standing, WakesOn
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.values import limits
from extender.values.golang.times import rfc3339
from extender.values.objects.claims import (
    NO_PROVISIONER,
    SELECTED_NODE_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_name,
    volumes_with_claims,
)
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import DeviceRequest, ResourceClaim
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolumeClaim

Registered = Mapping[str, Sequence[fwk.ClusterEventWithHint]]
"""Plugin -> the events that it has registered for."""

_ABOUT_VOLUMES: Final = re.compile("volume", re.IGNORECASE)
_ABOUT_DEVICES: Final = re.compile("resource ?claim|all claims|device", re.IGNORECASE)


@final
class WallClock:
    """The wall clock and the event loop's clock, read at the same moment."""

    def __init__(self, wall: datetime, loop_time: float) -> None:
        self._wall = wall
        self._loop_time = loop_time

    def text(self, loop_time: float) -> str:
        """Returns a moment of the event loop's clock in RFC 3339, in UTC, to the second."""
        return rfc3339(self.moment(loop_time))

    def moment(self, loop_time: float) -> datetime:
        return self._wall + timedelta(seconds=loop_time - self._loop_time)


def queue_view(queue: SchedulingQueue, registered: Mapping[str, Registered], clock: WallClock) -> Queue:
    """Returns every pod that waits or is being tried: first those that are tried next."""
    pausing = (*queue.pods_in_backoff_q(), *queue.pods_in_backoff_q(failed=True))
    places = chain(
        (_in_flight(info, clock) for info in queue.in_flight_pods()),
        (
            _place_of(info, "active", registered, clock, position)
            for position, info in enumerate(queue.pods_in_active_q(), start=1)
        ),
        (_place_of(info, "backoff", registered, clock, None, queue.backoff_time(info)) for info in pausing),
        (_of_unschedulable(info, registered, clock) for info in queue.unschedulable_pods()),
    )
    counts = queue.pending_counts() | {"inFlight": len(queue.in_flight_pods())}
    return Queue(items=tuple(islice(places, limits.QUEUE_PLACES)), counts=counts)


def queue_place(
    queue: SchedulingQueue, key: str, registered: Mapping[str, Registered], clock: WallClock
) -> QueuePlace | None:
    """Returns where the pod namespace/name waits; None if it does not."""
    in_flight_info = next((info for info in queue.in_flight_pods() if info.key == key), None)
    if in_flight_info is not None:
        return _in_flight(in_flight_info, clock)
    info = queue.get(key)
    if info is None:
        return None
    for position, other in enumerate(queue.pods_in_active_q(), start=1):
        if other is info:
            return _place_of(info, "active", registered, clock, position)
    if any(info is other for failed in (False, True) for other in queue.pods_in_backoff_q(failed=failed)):
        return _place_of(info, "backoff", registered, clock, None, queue.backoff_time(info))
    return _of_unschedulable(info, registered, clock)


def without_a_queue(pods: Iterable[Pod]) -> Queue:
    """Returns the pods that have no node, where another scheduler decides."""
    pending = sorted(pods, key=lambda pod: (-pod.priority, pod.key))
    places = tuple(
        QueuePlace(
            pod=PodName.of(pod),
            queue="gated" if pod.spec.scheduling_gates else "unschedulable",
            since=pod.metadata.creation_timestamp,
            gated_by="SchedulingGates" if pod.spec.scheduling_gates else "",
            message=_last_message(pod),
            workload=workload_of(pod),
        )
        for pod in pending[: limits.QUEUE_PLACES]
    )
    return Queue(items=places, counts={"pending": len(pending)}, deciding=False)


def with_standings(queue: Queue, cluster: Cluster, standing: Callable[[Pod], Standing | None]) -> Queue:
    """Returns the queue with how far its pods have come with their schedulers."""

    def with_standing(place: QueuePlace) -> QueuePlace:
        pod = cluster.pending.get(place.pod.uid)
        its = None if pod is None else standing(pod)
        if its is None:
            return place
        if its.state not in ("waiting", "binding", "elsewhere"):
            return msgspec.structs.replace(place, standing=its)
        where: Literal["placed", "elsewhere"] = "elsewhere" if its.state == "elsewhere" else "placed"
        return msgspec.structs.replace(place, standing=its, queue=where)

    return msgspec.structs.replace(queue, items=tuple(map(with_standing, queue.items)))


def _in_flight(info: QueuedPodInfo, clock: WallClock) -> QueuePlace:
    return QueuePlace(
        pod=PodName.of(info.pod),
        queue="inFlight",
        attempts=info.attempts,
        since=_since(info, clock),
        workload=workload_of(info.pod),
    )


def _since(info: QueuedPodInfo, clock: WallClock) -> str:
    """Returns since when the pod waits, over all its attempts: first queued to be tried, or else when it came."""
    first = info.initial_attempt_timestamp
    return clock.text(info.timestamp if first is None else first)


def _of_unschedulable(info: QueuedPodInfo, registered: Mapping[str, Registered], clock: WallClock) -> QueuePlace:
    return _place_of(info, "gated" if info.is_gated else "unschedulable", registered, clock)


def _place_of(
    info: QueuedPodInfo,
    queue: str,
    registered: Mapping[str, Registered],
    clock: WallClock,
    position: int | None = None,
    backoff_ends: float | None = None,
) -> QueuePlace:
    refusing_plugins = sorted(info.unschedulable_plugins | info.pending_plugins)
    of_profile = registered.get(info.pod.scheduler_name, {})
    return QueuePlace(
        pod=PodName.of(info.pod),
        queue=queue,  # type: ignore[arg-type]
        position=position,
        attempts=info.attempts,
        since=_since(info, clock),
        backoff_ends=None if backoff_ends is None else clock.text(backoff_ends),
        gated_by=info.gating_plugin,
        refused_by=tuple(refusing_plugins),
        wakes_on=() if queue == "active" else _wakes_on(refusing_plugins, of_profile),
        message=_last_message(info.pod),
        workload=workload_of(info.pod),
    )


def _last_message(pod: Pod) -> str:
    """Returns the message of its condition PodScheduled, which its scheduler writes."""
    scheduled = (condition for condition in pod.status.conditions if condition.type == "PodScheduled")
    return next((condition.message for condition in scheduled if condition.status == "False"), "")


def _wakes_on(plugins: Sequence[str], registered: Registered) -> tuple[WakesOn, ...]:
    """Returns the events for which the refusing plugins registered; a queueing hint decides whether one helps."""
    by_event: dict[str, list[str]] = {}
    for plugin in plugins:
        events = (registration.event for registration in registered.get(plugin, ()))
        for name in dict.fromkeys(chain.from_iterable(map(_event_names, events))):
            by_event.setdefault(name, []).append(plugin)
    return tuple(WakesOn(event=event, plugins=tuple(names)) for event, names in by_event.items())


@lru_cache(maxsize=1024)
def _event_names(event: fwk.ClusterEvent) -> Sequence[str]:
    if event.is_wildcard:
        return ["*"]
    action_name, action = str(event.action), event.action
    actions = [action_name] if action_name else list(map(str, _single_actions(action)))
    return [f"{event.resource.value}/{action}" for action in actions]


def _single_actions(action: fwk.ActionType) -> list[fwk.ActionType]:
    """Returns the single actions of which this one consists; all kinds of updates together count as one."""
    if fwk.ActionType.UPDATE in action:
        return [*_single_actions(action & ~fwk.ActionType.UPDATE), fwk.ActionType.UPDATE]
    return [single_action for single_action in fwk.ActionType if single_action in action]


# Claims: their phase and their class.


def with_claims(queue: Queue, cluster: Cluster) -> Queue:
    """Returns the queue with what the claims of its pods wait for."""

    def noted(place: QueuePlace) -> QueuePlace:
        pod = cluster.pending.get(place.pod.uid) if place.message else None
        claims = () if pod is None else tuple(claim_notes(pod, cluster.cache.objects, place.message))
        return msgspec.structs.replace(place, claims=claims) if claims else place

    return msgspec.structs.replace(queue, items=tuple(map(noted, queue.items)))


def claim_notes(pod: Pod, objects: ClusterObjects, message: str) -> Iterator[str]:
    """Yields a note on each claim of the kind that the scheduler's message is about."""
    if _ABOUT_VOLUMES.search(message):
        for volume in volumes_with_claims(pod):
            name = claim_name(pod, volume) or ""
            claim = objects.pvcs.get((pod.namespace, name))
            yet = "" if volume.ephemeral is None else f" yet: it will be created for the volume {volume.name}"
            yield f"the claim {name} {f'does not exist{yet}' if claim is None else _of_volume(claim, objects)}"
    if _ABOUT_DEVICES.search(message):
        generated_names = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        for reference in pod.spec.resource_claims:
            resource_claim_name = reference.resource_claim_name or generated_names.get(reference.name)
            resource_claim = objects.resource_claims.get((pod.namespace, resource_claim_name or ""))
            if resource_claim is not None:
                yield f"the resource claim {resource_claim_name} {_of_devices(resource_claim, objects)}"
            elif resource_claim_name is not None:
                yield f"the resource claim {resource_claim_name} does not exist"
            else:
                template = reference.resource_claim_template_name
                yield f"the resource claim {reference.name} has not been created yet from the template {template}"


def _of_volume(claim: PersistentVolumeClaim, objects: ClusterObjects) -> str:
    name, phase, volume = claim_class(claim), claim.status.phase or "Pending", claim.spec.volume_name
    state = f"{f'of the class {name} ' if name else ''}is {phase}"
    storage_class = objects.storage_classes.get(name)
    if volume:
        return f"{state}: its volume {volume}{'' if volume in objects.pvs else ' does not exist'}"
    if storage_class is None:
        return f"{state}: {'its class does not exist' if name else 'without a class its volume is created by hand'}"
    maker = "hand" if storage_class.provisioner == NO_PROVISIONER else storage_class.provisioner
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return f"{state}: its volume is created by {maker} before the pod is scheduled (Immediate)"
    selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
    if selected is not None:
        return f"{state}: its volume will be created by {maker} for the node {selected}"
    where = " in one of the topologies of its class" if storage_class.allowed_topologies else ""
    return f"{state}: its volume is created by {maker} once a node is chosen{where} ({WAIT_FOR_FIRST_CONSUMER})"


def _of_devices(claim: ResourceClaim, objects: ClusterObjects) -> str:
    if claim.status.allocation is not None:
        return f"is allocated, and reserved for {plural(len(claim.status.reserved_for), 'pod')}"
    return f"is pending: {', '.join(_request_text(request, objects) for request in claim.spec.devices.requests)}"


def _request_text(request: DeviceRequest, objects: ClusterObjects) -> str:
    return " or ".join(
        f"{option.count or 1 if option.allocation_mode != 'All' else 'all'} of the class {option.device_class_name}"
        + ("" if option.device_class_name in objects.device_classes else ", which does not exist")
        for option in ([request.exactly] if request.exactly is not None else request.first_available)
    )

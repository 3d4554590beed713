"""NodeResourcesFit: a pod fits where it requests no more than what is free.

Extended resources that a device class backs are left to DynamicResources on nodes that offer none of their own.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go; extendedresources.go, shouldDelegateResourceToDRA. The
hints are isSchedulableAfterPodEvent, isSchedulableAfterNodeChange, isSchedulableAfterDeviceClassEvent.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from operator import le, sub
from typing import Any, Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework.interface import with_containers
from extender.engine.plugins.node_resources.scoring_strategies import (
    STRATEGIES,
    PodUse,
    most_allocated_together,
    pod_use,
    with_totals,
)
from extender.engine.snapshot.axes import NATIVE_RESOURCES, Int64s, Mask, read_only
from extender.values.config.args_validation import check_args
from extender.values.config.plugin_args import NodeResourcesFitArgs, ScoringStrategy
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import DeviceClass
from extender.values.objects.extended_resources import (
    DEVICE_CLASS_PREFIX,
    NO_DEVICE_CLASSES,
    DeviceClasses,
    backed_resources,
    device_class_of,
)
from extender.values.objects.grouping import PodGroup
from extender.values.objects.node import ResourceList
from extender.values.objects.pod import Container, Pod, ResourceRequirements
from extender.values.objects.quantity import nanos_of
from extender.values.objects.resource_amounts import (
    Resources,
    allocatable,
    as_quantity,
    assigned_requests,
    filter_requests,
    fit_scorer_requests,
    in_words,
    pod_requests,
    requested_amounts,
)
from extender.values.objects.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    INSUFFICIENT,
    MEMORY,
    PODS,
    TOO_MANY_PODS,
    is_extended_resource_name,
)

LEAST = int(np.iinfo(np.int64).min)

_NATIVE: Final = slice(len(NATIVE_RESOURCES))
_FITS: Final = fwk.Verdicts(read_only(np.zeros(1, np.int8)))
_UNSCHEDULABLE = np.int8(int(fwk.Code.UNSCHEDULABLE))
_NANOS: Final = 10**9
_NANOS_OF_A_MILLICORE: Final = 10**6


@final
class FitRequest(msgspec.Struct, frozen=True):
    """The requests of a pod."""

    names: tuple[str, ...]
    """(A,) the native resources, and the requested scalar ones that are not ignored."""
    amounts: Int64s
    """(A, 1) the amount of each; LEAST for a native one that is not requested, which is never short."""
    of_native: tuple[int, ...]
    """(3,) the amounts of the native ones."""

    @property
    def scalars(self) -> tuple[str, ...]:
        return self.names[len(NATIVE_RESOURCES) :]


REQUEST = fwk.StateKey[FitRequest]("PreFilterNodeResourcesFit")
USE = fwk.StateKey[PodUse]("PreScoreNodeResourcesFit")


@final
class NodeResourcesFit(
    fwk.SignPlugin,
    fwk.PreFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.ScorePlugin,
    fwk.PlacementScorePlugin,
    fwk.AdvicePlugin,
):
    """Filters by free resources and scores by how full a node, or the nodes of a placement, would be."""

    looks_only_at_node = True

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        args = arguments if arguments is not None else NodeResourcesFitArgs()
        check_args(args)
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        strategy = args.scoring_strategy or ScoringStrategy()
        self._resources = tuple((spec.name, spec.weight or 1) for spec in strategy.resources)
        self._scorer = STRATEGIES[strategy.type](strategy)
        self._requests = fwk.PodMemo[FitRequest]()
        self._scored = fwk.PodMemo[PodUse]()
        self._leaves_devices = leaves_devices = self.feature_gates.enabled("DRAExtendedResource")
        # No reference to the plugin itself, which is gone with its framework.
        self._hints = FitHints(
            lambda: handle.objects.device_classes if handle is not None and leaves_devices else NO_DEVICE_CLASSES
        )

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        action = fwk.ActionType
        events = [
            fwk.on(fwk.EventResource.POD, action.DELETE | action.UPDATE_POD_SCALE_DOWN, self._hints.after_pod_event),
            fwk.on(fwk.EventResource.NODE, action.ADD | action.UPDATE_NODE_ALLOCATABLE, self._hints.after_node_change),
        ]
        if self._leaves_devices:
            events.append(
                fwk.on(fwk.EventResource.DEVICE_CLASS, action.ADD | action.UPDATE, self._hints.after_device_class_event)
            )
        return events

    def sign_pod(self, pod: Pod) -> Hashable:
        request = self._request(pod)
        return request.names, request.amounts.tobytes(), self._scored_amounts(pod)

    def pre_filter(self, state: fwk.CycleState, pod: Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Computes the pod's effective requests. It never skips: a pod without requests still counts as a pod."""
        request = self._requests.of(state, lambda: self._request(pod))
        state.write(REQUEST, request)
        if self._backed(request, snapshot.objects):
            state.depends_on_devices = True
            return fwk.PreFilterResult(fwk.SUCCESS)
        return fwk.PreFilterResult(fwk.SUCCESS_EQUAL_PODS)

    def _request(self, pod: Pod) -> FitRequest:
        requests = filter_requests(pod)
        native = [
            amount if amount > 0 else LEAST
            for amount in (requests.milli_cpu, requests.memory, requests.ephemeral_storage)
        ]
        scalars = {
            name: amount for name, amount in requests.scalar.items() if amount != 0 and not self._is_ignored(name)
        }
        amounts = np.array([*native, *scalars.values()], np.int64)[:, np.newaxis]
        return FitRequest((*NATIVE_RESOURCES, *scalars), amounts, tuple(native))

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refuses rows without room, with a reason for each resource; beyond the node's capacity, unresolvable."""
        request, node = state.read(REQUEST), rows.only_node
        if node is not None and not request.scalars and node.pods_left > 0:
            free = map(sub, node.allocatable, node.requested)
            if all(map(le, request.of_native, free)):
                return _FITS
        too_many: Mask = rows.pod_count >= rows.allowed_pods
        capacity, room = self._room(rows, request)
        short: Mask = request.amounts > room
        if not np.count_nonzero(short) and not np.count_nonzero(too_many):
            return fwk.accept(len(rows))
        reasons = [(TOO_MANY_PODS, too_many)] if too_many.any() else []
        reasons += [
            (INSUFFICIENT + request.names[place], short[place]) for place in np.flatnonzero(short.any(axis=1)).tolist()
        ]
        codes = (too_many | short.any(axis=0)) * _UNSCHEDULABLE
        codes += (short & (request.amounts > capacity)).any(axis=0)  # the next code: unresolvable
        return fwk.Verdicts(codes, tuple(reasons))

    def _room(self, rows: fwk.Rows, request: FitRequest) -> tuple[Int64s, Int64s]:
        """Returns (A, R) the capacity for each requested resource, and (A, R) its free amount, perhaps below zero.

        DynamicResources judges nodes that have none of a resource with a device class: the requested amount counts as
        free there.
        """
        capacity, requested = rows.allocatable.T[_NATIVE], rows.requested.T[_NATIVE]
        if not request.scalars:
            return capacity, capacity - requested
        capacity = np.vstack((capacity, *map(rows.allocatable_of, request.scalars)))
        free = capacity - np.vstack((requested, *map(rows.requested_of, request.scalars)))
        for name in self._backed(request, rows.snapshot.objects):
            place = request.names.index(name)
            free[place] = np.where(capacity[place] > 0, free[place], request.amounts[place])
        return capacity, free

    def pre_score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Status:
        use = self._scored.of(state, lambda: pod_use(self._resources, self._scored_amounts(pod)))
        state.write(USE, with_totals(state, use))
        return fwk.SUCCESS if use.native_places is None else fwk.SUCCESS_EQUAL_PODS

    def _scored_amounts(self, pod: Pod) -> tuple[int, ...]:
        return fit_scorer_requests(pod, [name for name, _ in self._resources])

    def score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Int64s:
        return self._scorer(rows, state.read(USE))

    def score_placement(self, group: PodGroup, placed: fwk.PlacedGroup, snapshot: fwk.Snapshot) -> int:
        """Prefers placements that the group fills, whatever the strategy for nodes is."""
        rows = fwk.Rows.of(snapshot, placed.placement.nodes)
        names = [name for name, _ in self._resources]
        of_pods = np.array([fit_scorer_requests(pod, names) for pod in placed.pods], np.int64).reshape(-1, len(names))
        amounts = of_pods.sum(axis=0).tolist()
        return most_allocated_together(rows, pod_use(self._resources, amounts))

    def shortages(self, pod: Pod, rows: fwk.Rows) -> Sequence[fwk.Shortage]:
        """The resources that are short on any row, by name; the number of pods is one of them."""
        request = self._request(pod)
        _, free = self._room(rows, request)
        candidates = [fwk.Shortage(PODS, 1, _pods_left(rows))]
        candidates += map(fwk.Shortage, request.names, request.amounts[:, 0].tolist(), free)
        return sorted(
            (shortage for shortage in candidates if (shortage.requested > shortage.free).any()),
            key=lambda shortage: shortage.resource,
        )

    def suggest(self, pod: Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        return _suggestions(pod, self.shortages(pod, rows))

    def suggest_for_node(self, pod: Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """Requests for the amounts that the node has left."""
        return _requesting_at_most(
            pod, {shortage.resource: int(shortage.free[0]) for shortage in self.shortages(pod, rows)}
        )

    def _backed(self, request: FitRequest, objects: ClusterObjects) -> Iterable[str]:
        return backed_resources(frozenset(request.scalars), objects.device_classes) if self._leaves_devices else ()

    def _is_ignored(self, name: str) -> bool:
        is_named = name in self._ignored or name.split("/", 1)[0] in self._ignored_groups
        return is_named and is_extended_resource_name(name)


def _pods_left(rows: fwk.Rows) -> Int64s:
    """Returns (R,) the number of further pods that the nodes allow."""
    return rows.allowed_pods - rows.pod_count


@final
class FitHints:
    """The queueing hints. State: the parsed objects of the last event, since many pods are checked against them."""

    def __init__(self, device_classes: Callable[[], DeviceClasses]) -> None:
        """Takes a function that returns the device classes; it is only called for resources that a node lacks."""
        self._device_classes = device_classes
        self._rooms: deque[tuple[fwk.Node, tuple[Resources, int]]] = deque(maxlen=2)
        self._pods: tuple[fwk.Pod, fwk.Pod] | None = None
        self._shrunk: frozenset[str] = frozenset()

    def after_pod_event(self, pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod | None) -> fwk.QueueingHint:
        """Queues the pod if a placed or nominated pod left, or it or a placed pod requests less of what it requests."""
        if new is None:
            return fwk.queue_if(bool(old.spec.node_name or old.status.nominated_node_name))
        if new.uid == pod.uid:
            return fwk.QueueingHint.QUEUE
        if not new.spec.node_name:
            return fwk.QueueingHint.QUEUE_SKIP
        if self._pods is None or self._pods[0] is not old or self._pods[1] is not new:
            before, after = dict(_amounts(assigned_requests(old)[0])), dict(_amounts(assigned_requests(new)[0]))
            self._pods = old, new
            self._shrunk = frozenset(name for name, amount in before.items() if amount > after.get(name, 0))
        return fwk.queue_if(
            any(amount and name in self._shrunk for name, amount in _amounts(assigned_requests(pod)[0]))
        )

    def after_node_change(self, pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
        """Queues the pod if it fits the empty node, which is new or offers more of what it requests."""
        room, allowed_pods = self._room_on(new)
        requests = filter_requests(pod)
        if allowed_pods < 1 or not self._fits(requests, room):
            return fwk.QueueingHint.QUEUE_SKIP
        if old is None:
            return fwk.QueueingHint.QUEUE
        old_room, old_allowed_pods = self._room_on(old)
        if allowed_pods > old_allowed_pods:
            return fwk.QueueingHint.QUEUE
        has, had = dict(_amounts(room)), dict(_amounts(old_room))
        grown = any(amount and has.get(name, 0) > had.get(name, 0) for name, amount in _amounts(requests))
        return fwk.queue_if(
            grown or any(amount and self._is_backed_by_devices(name, room) for name, amount in requests.scalar.items())
        )

    def after_device_class_event(self, pod: fwk.Pod, old: DeviceClass | None, new: DeviceClass) -> fwk.QueueingHint:
        """Queues the pod if the class has come to back an extended resource that it requests."""
        name = new.spec.extended_resource_name
        if old is not None and (old.spec.extended_resource_name or "") == (name or ""):
            return fwk.QueueingHint.QUEUE_SKIP
        requests = pod_requests(pod, use_status=False)
        return fwk.queue_if((old is None and DEVICE_CLASS_PREFIX + new.metadata.name in requests) or name in requests)

    def _fits(self, requests: Resources, room: Resources) -> bool:
        if (
            requests.milli_cpu > room.milli_cpu
            or requests.memory > room.memory
            or requests.ephemeral_storage > room.ephemeral_storage
        ):
            return False
        return all(
            amount <= room.scalar.get(name, 0) or self._is_backed_by_devices(name, room)
            for name, amount in requests.scalar.items()
            if amount
        )

    def _is_backed_by_devices(self, name: str, room: Resources) -> bool:
        return not room.scalar.get(name) and device_class_of(name, self._device_classes()) is not None

    def _room_on(self, node: fwk.Node) -> tuple[Resources, int]:
        for cached_node, room in self._rooms:
            if cached_node is node:
                return room
        self._rooms.append((node, allocatable(node)))
        return self._rooms[-1][1]


def _amounts(resources: Resources) -> Iterator[tuple[str, int]]:
    yield CPU, resources.milli_cpu
    yield MEMORY, resources.memory
    yield EPHEMERAL_STORAGE, resources.ephemeral_storage
    yield from resources.scalar.items()


# What the pod would have to request less.


def _suggestions(pod: fwk.Pod, shortages: Sequence[fwk.Shortage]) -> Iterator[fwk.Suggestion]:
    """Yields for each resource the pod with a request that fits a node which lacks nothing else.

    If every node lacks several resources at once, the requests are those that fit the first node, which is the nearest.
    The shortages are those on the nodes that only NodeResourcesFit refuses.
    """
    if not shortages:
        return
    short = np.stack([shortage.requested > shortage.free for shortage in shortages])
    number = short.sum(axis=0)
    suggestions = [
        suggestion
        for shortage, is_short in zip(shortages, short, strict=True)
        if (alone := is_short & (number == 1)).any()
        and (suggestion := _requesting_at_most(pod, {shortage.resource: int(shortage.free[alone].max())})) is not None
    ]
    if not suggestions:
        for row in np.flatnonzero(number > 1)[:1].tolist():
            limits = {
                shortage.resource: int(shortage.free[row])
                for shortage in shortages
                if shortage.requested > shortage.free[row]
            }
            suggestion = _requesting_at_most(pod, limits)
            suggestions = [] if suggestion is None else [suggestion]
    yield from suggestions


def _requesting_at_most(pod: fwk.Pod, limits: Mapping[str, int]) -> fwk.Suggestion | None:
    """Returns the pod with requests within the limits: base units, millicores for cpu.

    It is None if the pod would have to request nothing, and if there are too many pods: a small pod is a pod, too.
    """
    if not limits or PODS in limits or any(limit <= 0 for limit in limits.values()):
        return None
    changed = with_smaller_requests(pod, limits)
    if changed is None:
        return None
    before, after = requested_amounts(pod), requested_amounts(changed)
    if not all(after[resource] for resource in limits):
        return None
    texts = [
        f"{in_words(name, as_quantity(name, after[name]))} of {name} instead of "
        f"{in_words(name, as_quantity(name, before[name]))}"
        for name in limits
    ]
    return fwk.Suggestion("request", f"ask for {' and '.join(texts)}", changed)


def with_smaller_requests(pod: fwk.Pod, limits: Mapping[str, int]) -> fwk.Pod | None:
    """Returns the pod with requests reduced by one factor, if its overhead fits. Raises QuantityError."""
    for resource, limit in limits.items():
        overhead = nanos_of(pod.spec.overhead.get(resource, 0))
        requested = pod_requests(pod, use_status=False)[resource].nanos() - overhead
        allowed = limit * _unit(resource) - overhead
        if allowed <= 0:
            return None
        if requested > allowed:
            pod = _scaled(pod, resource, Fraction(allowed, requested))
    return pod


def _scaled(pod: fwk.Pod, resource: str, factor: Fraction) -> fwk.Pod:
    def scaled(container: Container) -> Container:
        return replaced(container, resources=_requirements_scaled(container.resources, resource, factor))

    whole = pod.spec.resources
    resources = None if whole is None else _requirements_scaled(whole, resource, factor)
    return with_containers(pod, scaled, resources=resources)


def _requirements_scaled(resources: ResourceRequirements, resource: str, factor: Fraction) -> ResourceRequirements:
    raw = resources.requests.get(resource)
    if raw is None:
        return resources
    units = int(nanos_of(raw) * factor) // _unit(resource)
    requests: ResourceList = {**resources.requests, resource: f"{units}m" if resource == CPU else units}
    return replaced(resources, requests=requests)


def _unit(resource: str) -> int:
    return _NANOS_OF_A_MILLICORE if resource == CPU else _NANOS

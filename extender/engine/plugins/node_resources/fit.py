"""NodeResourcesFit: a pod fits where it requests no more than what is free.

Extended resources that a device class backs are left to DynamicResources on nodes that offer none of their own.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go; extendedresources.go, shouldDelegateResourceToDRA. The
hints are isSchedulableAfterPodEvent, isSchedulableAfterNodeChange, isSchedulableAfterDeviceClassEvent.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.node_resources import advice
from extender.engine.plugins.node_resources.scoring_strategies import (
    STRATEGIES,
    PodUse,
    most_allocated_together,
    pod_use,
    with_totals,
)
from extender.engine.snapshot.axes import NATIVE_RESOURCES, Int64s, Mask
from extender.values.config.args_validation import check_args
from extender.values.config.plugin_args import NodeResourcesFitArgs, ScoringStrategy
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import DeviceClass
from extender.values.objects.extended_resources import (
    DEVICE_CLASS_PREFIX,
    NO_DEVICE_CLASSES,
    DeviceClasses,
    backed_resources,
    device_class_of,
)
from extender.values.objects.grouping import PodGroup
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import (
    Resources,
    allocatable,
    assigned_requests,
    filter_requests,
    fit_scorer_requests,
    pod_requests,
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

_UNSCHEDULABLE = np.int8(int(fwk.Code.UNSCHEDULABLE))


@final
@dataclass(frozen=True, slots=True)
class FitRequest:
    """The requests of a pod."""

    names: tuple[str, ...]
    """(A,) the native resources, and the scalar ones of which the pod requests some and that are not ignored."""
    amounts: Int64s
    """(A, 1) how much of each; LEAST of a native one that is not requested, which is never short."""

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
        native = requests.milli_cpu, requests.memory, requests.ephemeral_storage
        scalars = {
            name: amount for name, amount in requests.scalar.items() if amount != 0 and not self._is_ignored(name)
        }
        amounts = [*(amount if amount > 0 else LEAST for amount in native), *scalars.values()]
        return FitRequest((*NATIVE_RESOURCES, *scalars), np.array(amounts, np.int64)[:, np.newaxis])

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refuses rows without room, with a reason for each resource; beyond the node's capacity, unresolvable."""
        request = state.read(REQUEST)
        too_many: Mask = _pods_left(rows) < 1
        capacity, free = self._room(rows, request)
        short: Mask = request.amounts > free
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
        """Returns (A, R) the capacity for each requested resource, and (A, R) how much of it is free, perhaps below
        zero.

        Nodes that have none of a resource which a device class backs are judged by DynamicResources: as much as the pod
        requests counts as free there.
        """
        native = slice(len(NATIVE_RESOURCES))
        capacity, requested = rows.allocatable.T[native], rows.requested.T[native]
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
        found = [fwk.Shortage(PODS, 1, _pods_left(rows))]
        found += map(fwk.Shortage, request.names, request.amounts[:, 0].tolist(), free)
        return sorted(
            (shortage for shortage in found if (shortage.requested > shortage.free).any()),
            key=lambda shortage: shortage.resource,
        )

    def suggest(self, pod: Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        return advice.suggestions(pod, self.shortages(pod, rows))

    def suggest_for_node(self, pod: Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """Requests of as much as the node has left."""
        return advice.requesting_at_most(
            pod, {shortage.resource: int(shortage.free[0]) for shortage in self.shortages(pod, rows)}
        )

    def _backed(self, request: FitRequest, objects: ClusterObjects) -> Iterable[str]:
        return backed_resources(frozenset(request.scalars), objects.device_classes) if self._leaves_devices else ()

    def _is_ignored(self, name: str) -> bool:
        is_named = name in self._ignored or name.split("/", 1)[0] in self._ignored_groups
        return is_named and is_extended_resource_name(name)


def _pods_left(rows: fwk.Rows) -> Int64s:
    """Returns (R,) how many more pods the nodes take."""
    return rows.allowed_pods - rows.pod_count


@final
class FitHints:
    """The queueing hints. State: the parsed objects of the last event, which many pods are checked against."""

    def __init__(self, device_classes: Callable[[], DeviceClasses]) -> None:
        """Takes what returns the device classes, which is only called for resources that a node lacks."""
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
        wanted = filter_requests(pod)
        if allowed_pods < 1 or not self._fits(wanted, room):
            return fwk.QueueingHint.QUEUE_SKIP
        if old is None:
            return fwk.QueueingHint.QUEUE
        old_room, old_allowed_pods = self._room_on(old)
        if allowed_pods > old_allowed_pods:
            return fwk.QueueingHint.QUEUE
        has, had = dict(_amounts(room)), dict(_amounts(old_room))
        grown = any(amount and has.get(name, 0) > had.get(name, 0) for name, amount in _amounts(wanted))
        return fwk.queue_if(
            grown or any(amount and self._is_backed_by_devices(name, room) for name, amount in wanted.scalar.items())
        )

    def after_device_class_event(self, pod: fwk.Pod, old: DeviceClass | None, new: DeviceClass) -> fwk.QueueingHint:
        """Queues the pod if the class has come to back an extended resource that it requests."""
        name = new.spec.extended_resource_name
        if old is not None and (old.spec.extended_resource_name or "") == (name or ""):
            return fwk.QueueingHint.QUEUE_SKIP
        wanted = pod_requests(pod, use_status=False)
        return fwk.queue_if((old is None and DEVICE_CLASS_PREFIX + new.metadata.name in wanted) or name in wanted)

    def _fits(self, wanted: Resources, room: Resources) -> bool:
        if (
            wanted.milli_cpu > room.milli_cpu
            or wanted.memory > room.memory
            or wanted.ephemeral_storage > room.ephemeral_storage
        ):
            return False
        return all(
            amount <= room.scalar.get(name, 0) or self._is_backed_by_devices(name, room)
            for name, amount in wanted.scalar.items()
            if amount
        )

    def _is_backed_by_devices(self, name: str, room: Resources) -> bool:
        return not room.scalar.get(name) and device_class_of(name, self._device_classes()) is not None

    def _room_on(self, node: fwk.Node) -> tuple[Resources, int]:
        for known, room in self._rooms:
            if known is node:
                return room
        self._rooms.append((node, allocatable(node)))
        return self._rooms[-1][1]


def _amounts(resources: Resources) -> Iterator[tuple[str, int]]:
    yield CPU, resources.milli_cpu
    yield MEMORY, resources.memory
    yield EPHEMERAL_STORAGE, resources.ephemeral_storage
    yield from resources.scalar.items()

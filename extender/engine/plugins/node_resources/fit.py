"""NodeResourcesFit: a pod fits where it requests no more than what is free.

Extended resources that a device class backs are left to DynamicResources on nodes that offer none of their own.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go; extendedresources.go, shouldDelegateResourceToDRA
(v1.36.2).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.node_resources import advice
from extender.engine.plugins.node_resources.hints import FitHints
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
from extender.values.objects.extended_resources import NO_DEVICE_CLASSES, DeviceClasses, backed_resources
from extender.values.objects.pod import Pod
from extender.values.objects.pod_groups import PodGroup
from extender.values.objects.resource_amounts import filter_requests, fit_scorer_requests, requested_amounts
from extender.values.objects.resource_names import is_extended_resource_name

TOO_MANY_PODS = "Too many pods"
NOT_NATIVE = -1
"""Scalar resources are looked up by name: their place on axis K differs between clusters."""
LEAST = int(np.iinfo(np.int64).min)

_UNSCHEDULABLE = np.int8(int(fwk.Code.UNSCHEDULABLE))

_FEW = 16
"""The answer to a pod with more scalar resources is not kept for equal pods: pods may request thousands."""

_SUCCESS = fwk.PreFilterResult(fwk.SUCCESS_EQUAL_PODS)
_SUCCESS_OF_THIS_POD = fwk.PreFilterResult(fwk.SUCCESS)


@final
@dataclass(frozen=True, slots=True)
class FitRequest:
    """The requests of a pod."""

    amounts: tuple[tuple[str, int, int], ...]
    """(resource, place on axis K or NOT_NATIVE, amount) of the native resources above 0 and the scalar ones that are
    not ignored.
    """
    native: Int64s
    """(3,) the amounts of the native resources; LEAST where none is requested, which is never short."""
    scalars: tuple[tuple[str, int, int], ...]
    """Those of `amounts` that are not native."""
    names: frozenset[str]
    """The resources of `scalars`."""
    is_empty: bool
    """True if nothing is requested, not even zero of a scalar resource: then only the number of pods counts."""


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
        return request.amounts, request.is_empty, self._scored_amounts(pod)

    def pre_filter(self, state: fwk.CycleState, pod: Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Computes the pod's effective requests. It never skips: a pod without requests still counts as a pod."""
        request = self._requests.of(state, lambda: self._request(pod))
        state.write(REQUEST, request)
        classes = self._backing(snapshot.objects)
        if backed_resources(request.names, classes):
            state.depends_on_devices = True
            return _SUCCESS_OF_THIS_POD
        return _SUCCESS if len(request.scalars) <= _FEW else _SUCCESS_OF_THIS_POD

    def _request(self, pod: Pod) -> FitRequest:
        requests = filter_requests(pod)
        native = (requests.milli_cpu, requests.memory, requests.ephemeral_storage)
        amounts = tuple(
            (name, place, native[place]) for place, name in enumerate(NATIVE_RESOURCES) if native[place] > 0
        )
        wanted = (
            (name, amount) for name, amount in requests.scalar.items() if amount != 0 and not self._is_ignored(name)
        )
        scalars = tuple((name, NOT_NATIVE, amount) for name, amount in wanted)
        return FitRequest(
            amounts=(*amounts, *scalars),
            native=np.array([amount if amount > 0 else LEAST for amount in native], np.int64),
            scalars=scalars,
            names=frozenset(name for name, _, _ in scalars),
            is_empty=not any(native) and not requests.scalar,
        )

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refuses rows without room, with a reason for each resource. A request beyond the node's capacity is
        unresolvable.
        """
        request = state.read(REQUEST)
        reasons: list[tuple[str, Mask]] = []
        too_many: Mask = rows.pod_count >= rows.allowed_pods
        if np.count_nonzero(too_many):
            reasons.append((TOO_MANY_PODS, too_many))
        unresolvable: Mask | None = None
        if not request.is_empty:
            allocatable, requested, offered = rows.allocatable, rows.requested, rows.snapshot.nodes.offered
            backed = backed_resources(request.names, self._backing(rows.snapshot.objects))
            everywhere: Mask | None = None
            # Most often no native resource is short on any row, which one comparison of all of them tells.
            is_short = request.native > allocatable[:, : len(NATIVE_RESOURCES)] - requested[:, : len(NATIVE_RESOURCES)]
            amounts = request.amounts if np.count_nonzero(is_short) else request.scalars
            for name, place, amount in amounts:
                is_native = place != NOT_NATIVE
                if not is_native and name not in offered:
                    if name not in backed:
                        everywhere = np.ones(len(rows), np.bool_) if everywhere is None else everywhere
                        reasons.append((f"Insufficient {name}", everywhere))
                        unresolvable = everywhere
                    continue
                has = allocatable[:, place] if is_native else rows.allocatable_of(name)
                short: Mask = amount > has - (requested[:, place] if is_native else rows.requested_of(name))
                if not np.count_nonzero(short):
                    continue
                beyond_capacity: Mask = short & (amount > has)
                if name in backed:
                    # Nodes without any of it are judged by DynamicResources.
                    short, beyond_capacity = short & (has > 0), beyond_capacity & (has > 0)
                    if not short.any():
                        continue
                reasons.append((f"Insufficient {name}", short))
                unresolvable = beyond_capacity if unresolvable is None else unresolvable | beyond_capacity
        return _verdicts(len(rows), reasons, unresolvable)

    def fits(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Mask | None:
        """Returns (R,) the rows with room; None for a pod whose requests device classes back."""
        request = state.read(REQUEST)
        refused: Mask = rows.pod_count >= rows.allowed_pods
        if request.is_empty:
            return ~refused
        classes = self._backing(rows.snapshot.objects)
        if backed_resources(request.names, classes):
            return None
        native = len(NATIVE_RESOURCES)
        free = rows.allocatable.T[:native] - rows.requested.T[:native]
        refused |= np.logical_or.reduce(request.native[:, np.newaxis] > free)
        for name, _, amount in request.scalars:
            if name not in rows.snapshot.nodes.offered:
                return np.zeros(len(rows), np.bool_)
            refused |= amount > rows.allocatable_of(name) - rows.requested_of(name)
        return ~refused

    def pre_score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Status:
        """Computes what the pod adds to each scored resource."""
        use = self._use(state, pod)
        state.write(USE, with_totals(state, use))
        return fwk.SUCCESS if use.native_places is None else fwk.SUCCESS_EQUAL_PODS

    def _use(self, state: fwk.CycleState, pod: Pod) -> PodUse:
        return self._scored.of(state, lambda: pod_use(self._resources, self._scored_amounts(pod)))

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
        amounts = {
            name: amount for name, amount in requested_amounts(pod).items() if amount > 0 and not self._is_ignored(name)
        }
        backed = backed_resources(frozenset(amounts), self._backing(rows.snapshot.objects))
        found = []
        for name, amount in sorted(amounts.items()):
            free = advice.free(rows, name)
            if name in backed:
                free = np.where(rows.allocatable_of(name) > 0, free, amount)
            found.append(fwk.Shortage(name, amount, free))
        return [shortage for shortage in found if (shortage.requested > shortage.free).any()]

    def suggest(self, pod: Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Smaller requests; see `advice.suggestions`."""
        return advice.suggestions(pod, self.shortages(pod, rows))

    def suggest_for_node(self, pod: Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """Requests of as much as the node has left."""
        return advice.requesting_at_most(
            pod, {shortage.resource: int(shortage.free[0]) for shortage in self.shortages(pod, rows)}
        )

    def _backing(self, objects: ClusterObjects) -> DeviceClasses:
        return objects.device_classes if self._leaves_devices else NO_DEVICE_CLASSES

    def _is_ignored(self, name: str) -> bool:
        return (name in self._ignored or name.split("/", 1)[0] in self._ignored_groups) and is_extended_resource_name(
            name
        )


def _verdicts(num_rows: int, reasons: list[tuple[str, Mask]], unresolvable: Mask | None) -> fwk.Verdicts:
    if not reasons:
        return fwk.accept(num_rows)
    refused, *others = {id(mask): mask for _, mask in reasons}.values()
    for mask in others:
        refused = refused | mask
    codes = refused.astype(np.int8) * _UNSCHEDULABLE
    if unresolvable is not None:
        codes += unresolvable  # the next code, for rows that are refused
    return fwk.Verdicts(codes, tuple(reasons))

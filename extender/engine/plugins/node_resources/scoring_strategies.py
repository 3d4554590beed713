"""LeastAllocated, MostAllocated and RequestedToCapacityRatio as functions over rows.

Upstream: pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio,
resource_allocation}.go. As there, all amounts are int64 and all divisions truncate.
"""

from collections.abc import Callable, Sequence
from typing import final

import msgspec
import numpy as np
from msgspec.structs import replace

from extender.engine.framework import DEVICE_TOTALS, MAX_NODE_SCORE, CycleState, DeviceTotals, Rows
from extender.engine.framework.score_shapes import broken_line, rounded_average
from extender.engine.snapshot.axes import CPU, MEMORY, NATIVE_RESOURCES, Int64s
from extender.values.config.plugin_args import ScoringStrategy
from extender.values.objects.resource_names import is_scalar_resource_name

CUSTOM_PRIORITY_SCALE = MAX_NODE_SCORE // 10
"""Shape points are configured on a scale of 0..10."""


@final
class PodUse(msgspec.Struct, frozen=True):
    """The amounts that a pod adds to the S scored resources; scalar ones to which it adds nothing are left out."""

    names: list[str]
    """(S,)"""
    native_places: slice | list[int] | None
    """(S,) places on axis K, if all of them are cpu or memory; a slice, which needs no copy, where they are in order.
    """
    amounts: list[int]
    """(S,) the pod's amounts, for one row."""
    requests: Int64s
    """(S, 1) the pod's amounts, for many rows."""
    without_and_with: Int64s
    """(2, S, 1) the amounts without the pod, which are 0, and with it."""
    weights: Int64s
    """(S, 1)"""
    weight_of: list[int]
    """(S,) the weights as Python's numbers, for one row."""
    total_weight: int
    devices: DeviceTotals | None = None
    """Counts the devices for extended resources; None if there is nothing to count."""


Scorer = Callable[[Rows, PodUse], Int64s]


def pod_use(weighted: Sequence[tuple[str, int]], amounts: Sequence[int]) -> PodUse:
    """Returns the use of the weighted resources by a pod that adds these amounts."""
    scored = [
        (name, amount, weight)
        for (name, weight), amount in zip(weighted, amounts, strict=True)
        if amount != 0 or not is_scalar_resource_name(name)
    ]
    names = [name for name, _, _ in scored]
    of_pod, weight_of = [amount for _, amount, _ in scored], [weight for _, _, weight in scored]
    requests = np.array(of_pod, np.int64).reshape(-1, 1)
    places = [_PLACES[name] for name in names] if all(name in _PLACES for name in names) else None
    return PodUse(
        names=names,
        native_places=slice(CPU, MEMORY + 1) if places == [CPU, MEMORY] else places,
        amounts=of_pod,
        requests=requests,
        without_and_with=np.array((np.zeros_like(requests), requests)),
        weights=np.array(weight_of, np.int64).reshape(-1, 1),
        weight_of=weight_of,
        total_weight=sum(weight_of),
    )


def with_totals(state: CycleState, use: PodUse) -> PodUse:
    """Returns the use with a counter of devices, if resources other than cpu and memory are scored."""
    totals = state.find(DEVICE_TOTALS) if use.native_places is None else None
    return use if totals is None else replace(use, devices=totals)


def used_and_capacity(rows: Rows, use: PodUse) -> tuple[Int64s, Int64s]:
    """(S, R) the requests with the pod, and (S, R) the node's allocatable.

    As in upstream's scorers, cpu and memory count containers without a request at their defaults.
    """
    if use.native_places is not None:
        return rows.non_zero_requested.T[use.native_places] + use.requests, rows.allocatable.T[use.native_places]
    requested = [
        rows.non_zero_requested[:, _PLACES[name]] if name in _PLACES else rows.requested_of(name) for name in use.names
    ]
    offered = [rows.allocatable_of(name) for name in use.names]
    used, capacity = with_devices(rows, use, np.array(requested), np.array(offered))
    return used + use.requests, capacity


def with_devices(rows: Rows, use: PodUse, requested: Int64s, capacity: Int64s) -> tuple[Int64s, Int64s]:
    """Returns (S, R) requests and (S, R) allocatable amounts, with devices where a node has nothing else."""
    if use.devices is None:
        return requested, capacity
    for place, name in enumerate(use.names):
        if name in NATIVE_RESOURCES:
            continue
        existing, in_use = use.devices(name, rows)
        by_devices = (capacity[place] == 0) & (existing > 0)
        requested[place] = np.where(by_devices, in_use, requested[place])
        capacity[place] = np.where(by_devices, existing, capacity[place])
    return requested, capacity


# Numpy takes half as long for an array of no axes as for a number.
_ZERO, _MAX_NODE_SCORE = np.array(0), np.array(MAX_NODE_SCORE)

_PLACES = {"cpu": CPU, "memory": MEMORY}


def least_allocated(_: ScoringStrategy) -> Scorer:
    """Scores the free share of each resource, averaged by weight."""
    return lambda rows, use: _average(
        rows,
        use,
        lambda used, capacity: np.maximum(capacity - used, _ZERO),
        lambda used, capacity: max(capacity - used, 0),
    )


def most_allocated(_: ScoringStrategy) -> Scorer:
    """Scores the used share of each resource, averaged by weight."""
    # Defaults of containers without a request can push the sum beyond the capacity.
    return lambda rows, use: _average(rows, use, np.minimum, min)


def most_allocated_together(rows: Rows, use: PodUse) -> int:
    """Returns the used share of each resource on all rows together with `use`, averaged by weight."""
    before, capacity = used_and_capacity(rows, replace(use, requests=np.zeros_like(use.requests)))
    offered = capacity.sum(axis=1)
    used = np.minimum(before.sum(axis=1) + use.requests[:, 0], offered)
    weights = np.where(offered != 0, use.weights[:, 0], 0)
    return int(_divided((_divided(used * MAX_NODE_SCORE, offered) * weights).sum(), weights.sum()))


def requested_to_capacity_ratio(strategy: ScoringStrategy) -> Scorer:
    """Scores the used share of each resource by the configured shape; resources that score 0 do not count."""
    ratio = strategy.requested_to_capacity_ratio
    points = ratio.shape if ratio is not None else ()
    xs = np.array([point.utilization for point in points], np.int64)
    ys = np.array([point.score * CUSTOM_PRIORITY_SCALE for point in points], np.int64)

    def score(rows: Rows, use: PodUse) -> Int64s:
        if not use.names:
            return np.zeros(len(rows), np.int64)
        used, capacity = used_and_capacity(rows, use)
        utilization = np.where(used > capacity, MAX_NODE_SCORE, _divided(used * MAX_NODE_SCORE, capacity))
        scores = np.where(capacity != 0, broken_line(utilization, xs, ys), 0)
        weights = np.where(scores > 0, use.weights, 0)
        return rounded_average((scores * weights).sum(axis=0), weights.sum(axis=0))

    return score


STRATEGIES: dict[str, Callable[[ScoringStrategy], Scorer]] = {
    "LeastAllocated": least_allocated,
    "MostAllocated": most_allocated,
    "RequestedToCapacityRatio": requested_to_capacity_ratio,
}


def _average(
    rows: Rows, use: PodUse, part: Callable[[Int64s, Int64s], Int64s], part_of_one: Callable[[int, int], int]
) -> Int64s:
    """(R,) `part` of each resource as a share of its capacity, 0..100, averaged by weight where the node has it."""
    if not use.names:
        return np.zeros(len(rows), np.int64)
    node = rows.only_node
    if node is not None and isinstance(use.native_places, slice):
        weighted = total = 0
        of_node = node.non_zero_requested, node.allocatable[use.native_places]
        for requested, whole, amount, weight in zip(*of_node, use.amounts, use.weight_of, strict=True):
            if whole:
                share = part_of_one(requested + amount, whole) * MAX_NODE_SCORE // whole
                weighted, total = weighted + share * weight, total + weight
        return np.array([weighted // total if total else 0])
    used, capacity = used_and_capacity(rows, use)
    scaled = part(used, capacity) * _MAX_NODE_SCORE
    if np.count_nonzero(capacity) == capacity.size:
        average: Int64s = use.weights[:, 0].dot(scaled // capacity) // use.total_weight
        return average
    weights = np.where(capacity != 0, use.weights, 0)
    return _divided((_divided(scaled, capacity) * weights).sum(axis=0), weights.sum(axis=0))


def _divided(amount: Int64s, divisor: Int64s) -> Int64s:
    """Integer division of non-negative amounts; 0 where the divisor is 0."""
    if np.count_nonzero(divisor) == divisor.size:
        quotient: Int64s = amount // divisor
        return quotient
    return np.where(divisor != 0, amount // np.where(divisor != 0, divisor, 1), 0)

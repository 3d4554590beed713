"""LeastAllocated, MostAllocated and RequestedToCapacityRatio as functions over rows.

Upstream: pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio,
resource_allocation}.go (v1.36.2). All amounts are int64 and all divisions truncate, as there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from extender.config.plugin_args import ScoringStrategy
from extender.framework import MAX_NODE_SCORE, Rows
from extender.objects.resource_names import is_scalar_resource_name
from extender.snapshot.axes import CPU, MEMORY, Int64s
from extender.snapshot.symbols import SymbolTable

CUSTOM_PRIORITY_SCALE = MAX_NODE_SCORE // 10
"""Shape points are written on a scale of 0..10."""


@final
@dataclass(frozen=True, slots=True)
class ResourceUse:
    """One scored resource: where it is on axis K (-1: no node has it), its weight, and what the pod adds."""

    place: int
    weight: int
    request: int
    is_scored: bool
    """False for a scalar resource that the pod does not ask for."""


Scorer = Callable[[Rows, tuple[ResourceUse, ...]], Int64s]


def resource_use(name: str, weight: int, request: int, resources: SymbolTable[str]) -> ResourceUse:
    """What scoring needs to know of one configured resource."""
    return ResourceUse(resources.code_of(name), weight, request, request != 0 or not is_scalar_resource_name(name))


@final
@dataclass(frozen=True, slots=True)
class Amounts:
    """The scored resources (S) over rows."""

    used: Int64s
    """(S, R) what would be requested with the pod."""
    capacity: Int64s
    """(S, R) what the node has."""
    weights: Int64s
    """(S, 1)"""


def amounts_of(rows: Rows, uses: tuple[ResourceUse, ...]) -> Amounts | None:
    """What the strategies work on; None when no row has any of the resources.

    cpu and memory count containers that ask for nothing at their defaults, as kube-scheduler's scorers do.
    """
    uses = tuple(use for use in uses if use.is_scored and 0 <= use.place < rows.allocatable.shape[1])
    if not uses:
        return None
    places = [use.place for use in uses]
    if all(place in (CPU, MEMORY) for place in places):
        requested = rows.non_zero_requested.T[places]
    else:
        requested = np.array([(rows.non_zero_requested if place in (CPU, MEMORY) else rows.requested)[:, place] for place in places])
    return Amounts(
        used=requested + np.array([[use.request] for use in uses], np.int64),
        capacity=rows.allocatable.T[places],
        weights=np.array([[use.weight] for use in uses], np.int64),
    )


def least_allocated(_: ScoringStrategy) -> Scorer:
    """The emptier the better: the free share of each resource, averaged by weight."""
    return lambda rows, uses: _average(rows, uses, lambda of: np.maximum(of.capacity - of.used, 0))


def most_allocated(_: ScoringStrategy) -> Scorer:
    """The fuller the better: the used share of each resource, averaged by weight."""
    # Defaults of containers that ask for nothing can push the sum beyond the capacity.
    return lambda rows, uses: _average(rows, uses, lambda of: np.minimum(of.used, of.capacity))


def requested_to_capacity_ratio(strategy: ScoringStrategy) -> Scorer:
    """The used share of each resource, put through the configured broken line; resources that score 0 do not count."""
    ratio = strategy.requested_to_capacity_ratio
    points = ratio.shape if ratio is not None else ()
    xs = np.array([point.utilization for point in points], np.int64)
    ys = np.array([point.score * CUSTOM_PRIORITY_SCALE for point in points], np.int64)

    def score(rows: Rows, uses: tuple[ResourceUse, ...]) -> Int64s:
        amounts = amounts_of(rows, uses)
        if amounts is None:
            return np.zeros(len(rows), np.int64)
        used, capacity = amounts.used, amounts.capacity
        utilization = np.where(used > capacity, MAX_NODE_SCORE, _divided(used * MAX_NODE_SCORE, capacity))
        scores = np.where(capacity != 0, broken_line(utilization, xs, ys), 0)
        weights = np.where(scores > 0, amounts.weights, 0)
        return _rounded((scores * weights).sum(axis=0), weights.sum(axis=0))

    return score


STRATEGIES: dict[str, Callable[[ScoringStrategy], Scorer]] = {
    "LeastAllocated": least_allocated,
    "MostAllocated": most_allocated,
    "RequestedToCapacityRatio": requested_to_capacity_ratio,
}


def broken_line(x: Int64s, xs: Int64s, ys: Int64s) -> Int64s:
    """(R,) the piecewise linear function through the points, in whole numbers; flat before the first and after the last.

    Upstream: pkg/scheduler/framework/plugins/helper/shape_score.go, BuildBrokenLinearFunction (v1.36).
    """
    right = np.clip(np.searchsorted(xs, x, side="left"), 1, max(len(xs) - 1, 1))
    if len(xs) == 1:
        return np.full_like(x, ys[0])
    left = right - 1
    rise, run = (ys[right] - ys[left]) * (x - xs[left]), xs[right] - xs[left]
    inside = ys[left] + np.sign(rise) * (np.abs(rise) // run)  # Go truncates towards zero
    line: Int64s = np.where(x <= xs[0], ys[0], np.where(x > xs[-1], ys[-1], inside))
    return line


def _average(rows: Rows, uses: tuple[ResourceUse, ...], part: Callable[[Amounts], Int64s]) -> Int64s:
    """(R,) what share of its capacity a part of each resource is, 0..100, averaged by weight over the resources that the node has."""
    amounts = amounts_of(rows, uses)
    if amounts is None:
        return np.zeros(len(rows), np.int64)
    shares = _divided(part(amounts) * MAX_NODE_SCORE, amounts.capacity) * amounts.weights
    weights = amounts.weights.sum() if amounts.capacity.all() else np.where(amounts.capacity != 0, amounts.weights, 0).sum(axis=0)
    return _divided(shares.sum(axis=0), np.asarray(weights))


def _divided(amount: Int64s, by: Int64s) -> Int64s:
    """Whole-number division of amounts that are not negative; 0 where it is not defined."""
    if by.all():
        quotient: Int64s = amount // by
        return quotient
    return np.where(by != 0, amount // np.where(by != 0, by, 1), 0)


def _rounded(total: Int64s, weights: Int64s) -> Int64s:
    ratio = total / np.where(weights == 0, 1, weights)
    # math.Round goes half away from zero, and nothing here is negative.
    return np.where(weights == 0, 0, np.floor(ratio + 0.5)).astype(np.int64)

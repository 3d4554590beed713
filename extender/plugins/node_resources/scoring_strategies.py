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
from extender.snapshot.axes import CPU, MEMORY, Int64s, Mask
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


def used_and_capacity(rows: Rows, use: ResourceUse) -> tuple[Int64s, Int64s] | None:
    """(R,) what would be requested with the pod, and (R,) what the node has; None when no row has the resource.

    cpu and memory count containers that ask for nothing at their defaults, as kube-scheduler's scorers do.
    """
    if not use.is_scored or not 0 <= use.place < rows.allocatable.shape[1]:
        return None
    requested = rows.non_zero_requested if use.place in (CPU, MEMORY) else rows.requested
    return requested[:, use.place] + use.request, rows.allocatable[:, use.place]


def least_allocated(_: ScoringStrategy) -> Scorer:
    """The emptier the better: the free share of each resource, averaged by weight."""

    def share(used: Int64s, capacity: Int64s, has: Mask) -> Int64s:
        free = np.where(used > capacity, 0, capacity - used) * MAX_NODE_SCORE
        return _divided(free, capacity, has)

    return lambda rows, uses: _average(rows, uses, share)


def most_allocated(_: ScoringStrategy) -> Scorer:
    """The fuller the better: the used share of each resource, averaged by weight."""

    def share(used: Int64s, capacity: Int64s, has: Mask) -> Int64s:
        # Defaults of containers that ask for nothing can push the sum beyond the capacity.
        return _divided(np.minimum(used, capacity) * MAX_NODE_SCORE, capacity, has)

    return lambda rows, uses: _average(rows, uses, share)


def requested_to_capacity_ratio(strategy: ScoringStrategy) -> Scorer:
    """The used share of each resource, put through the configured broken line; resources that score 0 do not count."""
    ratio = strategy.requested_to_capacity_ratio
    points = ratio.shape if ratio is not None else ()
    xs = np.array([point.utilization for point in points], np.int64)
    ys = np.array([point.score * CUSTOM_PRIORITY_SCALE for point in points], np.int64)

    def score(rows: Rows, uses: tuple[ResourceUse, ...]) -> Int64s:
        total, weights = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        for use in uses:
            amounts = used_and_capacity(rows, use)
            if amounts is None:
                continue
            used, capacity = amounts
            has = capacity != 0
            utilization = np.where(used > capacity, MAX_NODE_SCORE, _divided(used * MAX_NODE_SCORE, capacity, has))
            scores = np.where(has, broken_line(utilization, xs, ys), 0)
            counts = scores > 0
            total += np.where(counts, scores * use.weight, 0)
            weights += np.where(counts, use.weight, 0)
        return _rounded(total, weights)

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


def _average(rows: Rows, uses: tuple[ResourceUse, ...], share: Callable[[Int64s, Int64s, Mask], Int64s]) -> Int64s:
    total: Int64s | None = None
    weights: Int64s | int = 0
    for use in uses:
        amounts = used_and_capacity(rows, use)
        if amounts is None:
            continue
        used, capacity = amounts
        has = capacity != 0
        weighted = share(used, capacity, has) * use.weight
        total = weighted if total is None else total + weighted
        weights = weights + (use.weight if has.all() else np.where(has, use.weight, 0))
    if total is None:
        return np.zeros(len(rows), np.int64)
    if isinstance(weights, int):
        mean: Int64s = total // weights
        return mean
    return _divided(total, weights, weights != 0)


def _divided(amount: Int64s, by: Int64s, where: Mask) -> Int64s:
    """(R,) whole-number division of amounts that are not negative; 0 where it is not defined."""
    if where.all():
        quotient: Int64s = amount // by
        return quotient
    return np.where(where, amount // np.where(where, by, 1), 0)


def _rounded(total: Int64s, weights: Int64s) -> Int64s:
    ratio = total / np.where(weights == 0, 1, weights)
    # math.Round goes half away from zero, and nothing here is negative.
    return np.where(weights == 0, 0, np.floor(ratio + 0.5)).astype(np.int64)

"""Scores as a function of utilization, given by points.

Upstream: pkg/scheduler/framework/plugins/helper/shape_score.go, BuildBrokenLinearFunction.
"""

import numpy as np

from extender.engine.snapshot.axes import Int64s


def broken_line(x: Int64s, xs: Int64s, ys: Int64s) -> Int64s:
    """(R,) the piecewise linear function through the points, in integers; constant beyond the first and last."""
    upper = np.clip(np.searchsorted(xs, x, side="left"), 1, max(len(xs) - 1, 1))
    if len(xs) == 1:
        return np.full_like(x, ys[0])
    lower = upper - 1
    rise, run = (ys[upper] - ys[lower]) * (x - xs[lower]), xs[upper] - xs[lower]
    inside = ys[lower] + np.sign(rise) * (np.abs(rise) // run)  # Go truncates towards zero
    line: Int64s = np.where(x <= xs[0], ys[0], np.where(x > xs[-1], ys[-1], inside))
    return line


def rounded_average(total: Int64s, weights: Int64s) -> Int64s:
    """(R,) the average of non-negative scores, rounded half up as Go's math.Round does; 0 where all weights are 0."""
    ratio = total / np.where(weights == 0, 1, weights)
    return np.where(weights == 0, 0, np.floor(ratio + 0.5)).astype(np.int64)

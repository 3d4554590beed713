"""Topology domains: nodes with the same value of a label count as one place."""

import numpy as np

from extender.snapshot.axes import Int64s
from extender.snapshot.columns import LabelColumn


def sums_by_value(column: LabelColumn, per_node: Int64s) -> Int64s:
    """(V + 1,) the sum over the nodes of each value of the label, by code; at the end, where ABSENT finds it, over the nodes without it.

    Arguments:
        per_node: (N,) at most 2**53 in sum, either way.
    """
    # bincount adds up in float64, which is exact that far.
    by_code = np.bincount(column.codes + 1, weights=per_node, minlength=len(column.values) + 1)
    sums = np.empty(len(by_code), np.int64)
    sums[:-1], sums[-1] = by_code[1:], by_code[0]
    return sums

"""The prioritize verb: scores of the given nodes for a pod."""

from collections.abc import Sequence

import numpy as np

from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot.axes import Int64s
from extender.values.protocol.wire_types import MAX_EXTENDER_PRIORITY
from extender.verbs.filtering import places_of, rows_at


def prioritize_nodes(cycle: Cycle, names: Sequence[str]) -> list[int]:
    """Returns a score from 0 to 10 for each given node: the profile's weighted total, as a share of the best node's.

    Unknown nodes get 0, and so do all nodes for a pod that demands too much.

    Raises:
        PluginError: a plugin failed; the message names it.
    """
    places, known = places_of(cycle.snapshot, names)
    scores = np.zeros(len(names), np.int64)
    if known.any() and cycle.framework.plugins.score:
        # Score plugins may read what their PreFilter kept; its verdict does not matter here, because the caller has
        # filtered.
        cycle.run_pre_filter_plugins()
        if cycle.demands_too_much:
            return [0] * len(names)
        rows, row_of = rows_at(cycle.snapshot, places[known])
        cycle.run_pre_score_plugins(rows)
        scores[known] = _on_extender_scale(cycle.run_score_plugins(rows).total)[row_of]
    of_each: list[int] = scores.tolist()
    return of_each


def _on_extender_scale(total: Int64s) -> Int64s:
    """Returns (R,) 10 for the best row, and for the others their rounded share of it, as kube-scheduler's normalising
    does with 100.

    Totals below 0, which a negative weight can cause, count as 0. Weights are int32, so that 20 times a total fits an
    int64.
    """
    best = int(total.max(initial=0))
    return (2 * MAX_EXTENDER_PRIORITY * np.maximum(total, 0) + best) // (2 * best) if best > 0 else np.zeros_like(total)

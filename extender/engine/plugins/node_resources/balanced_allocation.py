"""NodeResourcesBalancedAllocation: prefers nodes whose resources are used more evenly with the pod.

Upstream: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go.
"""

from operator import add
from typing import Any, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.node_resources.scoring_strategies import PodUse, pod_use, with_devices, with_totals
from extender.engine.snapshot.axes import Floats, Int64s, any_of
from extender.values.config.args_validation import check_args
from extender.values.config.plugin_args import NodeResourcesBalancedAllocationArgs
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import balanced_scorer_requests

# By the change of the balance, -100 to 100; a negative one counts from the end. The division truncates towards zero, as
# Go's.
_SCORES = np.array([50 + int((50 + change) / 2) for change in (*range(101), *range(-100, 0))], np.int64)

_SCORES_OF_ONE = _SCORES.tolist()

USE = fwk.StateKey[PodUse]("PreScoreNodeResourcesBalancedAllocation")


@final
class NodeResourcesBalancedAllocation(fwk.SignPlugin, fwk.PreScorePlugin, fwk.ScorePlugin):
    """Compares the deviation of utilisation with and without the pod."""

    looks_only_at_node = True

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        args = arguments if arguments is not None else NodeResourcesBalancedAllocationArgs()
        check_args(args)
        self._resources = tuple((spec.name, spec.weight or 1) for spec in args.resources)
        self._scored = fwk.PodMemo[PodUse]()

    def sign_pod(self, pod: Pod) -> tuple[int, ...]:
        return balanced_scorer_requests(pod, [name for name, _ in self._resources])

    def pre_score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Status:
        """Skips pods that request none of the resources, since they do not change the balance."""
        use = self._scored.of(state, lambda: pod_use(self._resources, self.sign_pod(pod)))
        if not any(use.amounts):
            return fwk.SKIP_EQUAL_PODS
        state.write(USE, with_totals(state, use))
        return fwk.SUCCESS if use.native_places is None else fwk.SUCCESS_EQUAL_PODS

    def score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Int64s:
        """(R,) 75 where the pod changes nothing, more where it evens out the utilisation; 50..100 unless sums wrap."""
        use = state.read(USE)
        if not use.names:
            return np.full(len(rows), 75, np.int64)
        node = rows.only_node
        if node is not None and isinstance(use.native_places, slice) and all(node.allocatable[use.native_places]):
            offered, before = node.allocatable[use.native_places], node.requested[use.native_places]
            after = [*map(add, before, use.amounts)]
            return np.array([_SCORES_OF_ONE[_balance_of_one(after, offered) - _balance_of_one(before, offered)]])
        if use.native_places is not None:
            capacity, used = rows.allocatable.T[use.native_places], rows.requested.T[use.native_places]
        else:
            amounts = [rows.requested_of(name) for name in use.names], [rows.allocatable_of(name) for name in use.names]
            used, capacity = with_devices(rows, use, *map(np.array, amounts))
        without_pod, with_pod = _balance(used + use.without_and_with, capacity)
        change = with_pod - without_pod
        # A change is beyond 100 where a sum wrapped below zero; the framework refuses the score, as upstream.
        wraps, gain = any_of(np.abs(change) > 100), 50 + change
        scores: Int64s = 50 + np.sign(gain) * (np.abs(gain) // 2) if wraps else _SCORES[change]
        return scores


def _balance(used: Int64s, capacity: Int64s) -> Int64s:
    """(2, R) 100 where all resources have the same utilisation, less the more it differs.

    `used` is (2, S, R), without the pod and with it; `capacity` is (S, R).
    """
    if len(capacity) == 2 and np.count_nonzero(capacity) == capacity.size:
        shares = np.minimum(used / capacity, 1)
        deviation = np.abs((shares[:, 0] - shares[:, 1]) / 2)
    else:
        has = capacity != 0
        shares = np.minimum(used / np.where(has, capacity, 1), 1)
        deviation = np.array([_deviation(resource_shares, has) for resource_shares in shares])
    balance: Int64s = ((1 - deviation) * 100).astype(np.int64)
    return balance


def _balance_of_one(used: list[int], capacity: list[int]) -> int:
    """The balance of one row with two resources: numpy takes ten times as long for it, and it is what changes."""
    distance = abs(min(float(used[0]) / capacity[0], 1) - min(float(used[1]) / capacity[1], 1))
    return int((1 - distance / 2) * 100)


def _deviation(shares: Floats, has: np.ndarray[Any, np.dtype[np.bool_]]) -> Floats:
    """(R,) the standard deviation of each row's shares; half the distance for two, 0 for one or none."""
    shares = np.where(has, shares, 0)
    count = has.sum(axis=0)
    mean = _in_order(shares) / np.maximum(count, 1)
    squares = _in_order(np.where(has, (shares - mean) ** 2, 0))
    deviation = np.sqrt(squares / np.maximum(count, 1))
    # Upstream compares two shares directly; the general formula would round differently.
    high, low = np.where(has, shares, -np.inf).max(axis=0), np.where(has, shares, np.inf).min(axis=0)
    with np.errstate(invalid="ignore"):
        two: Floats = np.abs((high - low) / 2)
    return np.where(count > 2, deviation, np.where(count == 2, two, 0.0))


def _in_order(terms: Floats) -> Floats:
    """(R,) the sum over resources, in upstream's order, because float addition is not associative."""
    total = np.zeros(terms.shape[1])
    for term in terms:
        total += term
    return total

"""What plugins return, checked before it is used: plugins from elsewhere may not have been checked by mypy.

None is Success, as a nil status is upstream. A result that its extension point does not allow raises TypeError, and
codes that a Filter may not return raise PluginError.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.values.objects.pod import Pod

_ERROR: Final = int(fwk.Code.ERROR)
_REFUSED: Final = int(fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


def pre_filter_result(
    plugin: fwk.PreFilterPlugin, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
) -> fwk.PreFilterResult:
    """Returns what PreFilter answered."""
    result: fwk.PreFilterResult | None = plugin.pre_filter(state, pod, snapshot)
    if isinstance(result, fwk.PreFilterResult) and isinstance(result.status, fwk.Status) and result.node_names is None:
        return result  # nearly always; the rest finds the words for what is wrong
    if result is None:
        return fwk.PreFilterResult(fwk.SUCCESS)
    _check_kind(result, fwk.PreFilterResult)
    _check_kind(result.status, fwk.Status)
    if result.node_names is not None:
        _check_kind(result.node_names, frozenset)
    return result


def filter_verdicts(plugin: fwk.FilterPlugin, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Verdicts:
    """Returns the verdicts on these rows, one a row."""
    result: fwk.Verdicts | None = plugin.filter(state, pod, rows)
    if result is None:
        return fwk.accept(len(rows))
    _check_kind(result, fwk.Verdicts)
    _check_array(result.codes, len(rows), "integers")
    for mask in {id(mask): mask for _, mask in result.reasons}.values():  # thousands of reasons may share one
        _check_array(mask, len(rows), "booleans")
    return result


async def post_filter_result(
    plugin: fwk.PostFilterPlugin, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses
) -> fwk.PostFilterResult:
    """Returns what PostFilter achieved."""
    result: fwk.PostFilterResult | None = await plugin.post_filter(state, pod, statuses)
    if result is None:
        return fwk.PostFilterResult(fwk.SUCCESS)
    _check_kind(result, fwk.PostFilterResult)
    return result


def pre_score_status(plugin: fwk.PreScorePlugin, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Status:
    """Returns what PreScore answered."""
    status: fwk.Status | None = plugin.pre_score(state, pod, rows)
    if status is None:
        return fwk.SUCCESS
    _check_kind(status, fwk.Status)
    return status


def pod_signature(plugin: fwk.SignPlugin, pod: Pod) -> Hashable:
    """Returns the plugin's signature of the pod. One that cannot be compared raises TypeError."""
    signature = plugin.sign_pod(pod)
    hash(signature)
    return signature


def _check_kind(answer: object, kind: type) -> None:
    if not isinstance(answer, kind):
        raise TypeError(f"it returned {type(answer).__name__}, not {kind.__name__}")


def _check_array(answer: object, num_rows: int, of: str) -> None:
    wanted = {"integers": "iu", "booleans": "b"}[of]
    if not isinstance(answer, np.ndarray) or answer.shape != (num_rows,) or answer.dtype.kind not in wanted:
        raise TypeError(f"it returned no array of {num_rows} {of}, one a row")


def refuse_unknown_codes(name: str, verdicts: fwk.Verdicts) -> None:
    """Raises PluginError if a row has a code that a Filter may not return."""
    codes = verdicts.codes
    if codes.dtype == np.int8 and codes.view(np.uint8).max() <= _REFUSED and not np.count_nonzero(codes == _ERROR):
        return  # nearly always: Success and the two refusals are the lowest codes but for Error
    rejected = (
        (codes == fwk.Code.UNSCHEDULABLE)
        | (codes == fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        | (codes == fwk.Code.PENDING)
    )
    wrong = np.flatnonzero(~rejected & (codes != fwk.Code.SUCCESS))
    if len(wrong):
        why = ", ".join(verdicts.reasons_of(int(wrong[0]))) or f"it answered code {int(codes[wrong[0]])}"
        raise PluginError(name, "Filter", why)


def scattered_reasons(
    reasons: Sequence[tuple[str, Mask]], at: Index | None, num_rows: int
) -> Sequence[tuple[str, Mask]]:
    """Returns reasons for the rows `at` as reasons for all rows. Reasons that share a mask still do: there may be
    thousands of them.
    """
    if at is None:
        return reasons
    masks = {id(mask): mask for _, mask in reasons}
    of_all = {which: scattered(mask, at, num_rows) for which, mask in masks.items()}
    return [(reason, of_all[id(mask)]) for reason, mask in reasons]


def scattered(mask: Mask, at: Index | None, num_rows: int) -> Mask:
    """Returns (num_rows,) a mask over the rows `at` as a mask over all rows; `at` is None for all of them."""
    if at is None:
        return mask
    scattered = np.zeros(num_rows, np.bool_)
    scattered[at[mask]] = True
    return scattered


def no_node_left(plugins: list[str]) -> fwk.Status:
    """Returns why PreFilter plugins left no node in play, given the sorted names of those that narrowed the search."""
    if len(plugins) == 1:
        return fwk.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return fwk.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")

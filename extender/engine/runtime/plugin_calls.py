"""The one place where plugins are called. A call is timed; an exception becomes a PluginError with the plugin's name.

What a plugin returns is checked, since plugins from elsewhere may not have been checked by mypy. A result that its
extension point does not allow raises TypeError, and codes that a Filter may not return raise PluginError. `LongWork` is
done in a thread, so that other pods are scheduled meanwhile.

Upstream: pkg/scheduler/framework/runtime/framework.go, runFilterPlugin and its siblings.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from time import perf_counter
from traceback import walk_tb
from typing import Any, Final, ParamSpec, TypeVar, TypeVarTuple, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Index, Mask, any_of
from extender.values.concurrency.child_process import renewed_in_children
from extender.values.metrics import ObservePlugin
from extender.values.objects.pod import Pod

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_ERROR: Final = int(fwk.Code.ERROR)
_ERROR_NAME: Final = str(fwk.Code.ERROR)
_REFUSED: Final = int(fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
_ALLOWED: Final = (fwk.Code.SUCCESS, fwk.Code.UNSCHEDULABLE, fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE, fwk.Code.PENDING)

_FAILED: Final = {
    "Filter": 'running "{plugin}" filter plugin: {why}',
    "Score": 'running Score plugins: plugin "{plugin}" failed with: {why}',
    "ScoreExtensionNormalize": 'running Normalize on Score plugins: plugin "{plugin}" failed with: {why}',
    "ScoreWeights": 'applying score defaultWeights on Score plugins: plugin "{plugin}" {why}',
    "PreBindPreFlight": 'running PreBindPreFlight "{plugin}": {why}',
}
"""Extension point as metrics name it -> upstream's message for a failure there, where it differs from the usual one."""
_FAILED_ELSEWHERE: Final = 'running {point} plugin "{plugin}": {why}'

_PROGRAM: Final = f"{Path(fwk.__file__).parents[2]}/"
_CALLERS: Final = tuple(
    f"{_PROGRAM}{folder}/" for folder in ("engine/framework", "engine/runtime", "answers", "testing")
)
"""The files that call plugins, or stand between a call and the plugin."""


@final
class PluginError(fwk.EvaluationError):
    """A plugin raised, or returned what its extension point does not allow. It fails the pod's cycle only.

    The message is upstream's (`running "Name" filter plugin: ...`), `why` is without the words around it; what the
    plugin raised is chained.
    """

    def __init__(self, plugin: str, point: str, why: str) -> None:
        super().__init__(_FAILED.get(point, _FAILED_ELSEWHERE).format(point=point, plugin=plugin, why=why))
        self.plugin = plugin
        self.why = why


def told(exc: BaseException) -> str:
    """Returns the message of a plugin's exception; for a plugin from outside the tree, with its type and the place."""
    place = place_of(exc)
    return f"{exc} ({type(exc).__name__}, {place})" if place else str(exc)


def place_of(exc: BaseException) -> str:
    """Returns the file and line where a plugin from outside the tree raised; empty for one of the tree."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(exc.__traceback__)]
    file = next((name for name, _ in lines if not (name.startswith(_CALLERS) or "importlib" in name)), _PROGRAM)
    if file.startswith(_PROGRAM):
        return ""
    return f"{'/'.join(Path(file).parts[-2:])}, line {[line for name, line in lines if name == file][-1]}"


def call_plugin(observe: ObservePlugin | None, plugin: str, point: str, call: Callable[[*Ts], T], *args: *Ts) -> T:
    """Returns the result of the call; `observe`, if given, receives the seconds it took by the metrics' point.

    Raises LongWork if the answer takes long, PluginError if the plugin raised.
    """
    try:
        return call(*args) if observe is None else _timed(observe, plugin, point, call, *args)
    except (PluginError, LongWork):
        raise  # a PluginError is that of another plugin that this one called
    except Exception as exc:
        raise PluginError(plugin, point, told(exc)) from exc


async def call_plugin_async(
    observe: ObservePlugin | None, plugin: str, point: str, call: Callable[[], Awaitable[T]]
) -> T:
    """Returns the result of the awaited call.

    Raises as `call_plugin`, PluginError also if what it waited for was cancelled; CancelledError if this task is.
    """
    status, began = _ERROR_NAME, perf_counter()
    try:
        answer = await call()
        if observe is not None:
            status = _status_of(answer)
        return answer
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # This task is not being cancelled, but something that the plugin waits for, which is an error like any other.
        raise PluginError(plugin, point, "context canceled") from exc
    except LongWork:
        status = ""  # there is no answer yet
        raise
    except PluginError:
        raise  # of another plugin that this one called
    except Exception as exc:
        raise PluginError(plugin, point, told(exc)) from exc
    finally:
        if observe is not None and status:
            observe(perf_counter() - began, plugin, point, status)


def _timed(observe: ObservePlugin, plugin: str, point: str, call: Callable[[*Ts], T], *args: *Ts) -> T:
    status, began = _ERROR_NAME, perf_counter()
    try:
        answer = call(*args)
        status = _status_of(answer)
        return answer
    except LongWork:
        status = ""  # there is no answer yet
        raise
    finally:
        if status:
            observe(perf_counter() - began, plugin, point, status)


def _status_of(answer: object) -> str:
    """Returns the code of a result; of Verdicts, Success if any row passes."""
    match answer:
        case fwk.Status():
            return str(answer.code)
        case fwk.PreFilterResult() | fwk.PostFilterResult() | fwk.PreFlight():
            return str(answer.status.code)
        case fwk.Verdicts():
            refused = len(answer) and not answer.ok.any()
            return str(fwk.Code(int(answer.codes[0])) if refused else fwk.Code.SUCCESS)
        case (fwk.Status() as status, _):
            return str(status.code)
        case _:
            return str(fwk.Code.SUCCESS)


# What plugins return, checked before it is used. None is Success, as a nil status is upstream.


def pre_filter_result(
    plugin: fwk.PreFilterPlugin, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
) -> fwk.PreFilterResult:
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
    result: fwk.Verdicts | None = plugin.filter(state, pod, rows)
    if result is None:
        return fwk.accept(len(rows))
    _check_kind(result, fwk.Verdicts)
    _check_array(result.codes, len(rows), "integers")
    if result.reasons:
        for mask in {id(mask): mask for _, mask in result.reasons}.values():  # thousands of reasons may share one
            _check_array(mask, len(rows), "booleans")
    return result


async def post_filter_result(
    plugin: fwk.PostFilterPlugin, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses
) -> fwk.PostFilterResult:
    result: fwk.PostFilterResult | None = await plugin.post_filter(state, pod, statuses)
    if result is None:
        return fwk.PostFilterResult(fwk.SUCCESS)
    _check_kind(result, fwk.PostFilterResult)
    return result


def pre_score_status(plugin: fwk.PreScorePlugin, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Status:
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


def _check_array(answer: object, num_rows: int, kind: str) -> None:
    dtype_kinds = {"integers": "iu", "booleans": "b"}[kind]
    if not isinstance(answer, np.ndarray) or answer.shape != (num_rows,) or answer.dtype.kind not in dtype_kinds:
        raise TypeError(f"it returned no array of {num_rows} {kind}, one a row")


def refuse_unknown_codes(name: str, verdicts: fwk.Verdicts) -> None:
    """Raises PluginError if a row has a code that a Filter may not return."""
    codes = verdicts.codes
    unsigned = codes.view(np.uint8) if codes.dtype == np.int8 else None
    # argmax is faster than max.
    if unsigned is not None and unsigned[unsigned.argmax()] <= _REFUSED and not any_of(codes == _ERROR):
        return  # nearly always: Success and the two refusals are the lowest codes but for Error
    wrong = np.flatnonzero(~np.isin(codes, _ALLOWED))
    if len(wrong):
        why = ", ".join(verdicts.reasons_of(int(wrong[0]))) or f"it answered code {int(codes[wrong[0]])}"
        raise PluginError(name, "Filter", why)


def scattered_reasons(
    reasons: Sequence[tuple[str, Mask]], places: Index | None, num_rows: int
) -> Sequence[tuple[str, Mask]]:
    """Returns reasons for the rows at `places` as reasons for all rows; reasons that share a mask still do."""
    if places is None:
        return reasons
    masks = {id(mask): mask for _, mask in reasons}
    of_all = {which: scattered(mask, places, num_rows) for which, mask in masks.items()}
    return [(reason, of_all[id(mask)]) for reason, mask in reasons]


def scattered(mask: Mask, places: Index | None, num_rows: int) -> Mask:
    """Returns (num_rows,) a mask over the rows at `places` as a mask over all rows; None means all of them."""
    if places is None:
        return mask
    scattered = np.zeros(num_rows, np.bool_)
    scattered[places[mask]] = True
    return scattered


def no_node_left(plugins: list[str]) -> fwk.Status:
    """Returns the status of a search that these PreFilter plugins, sorted by name, narrowed to no node."""
    if len(plugins) == 1:
        return fwk.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return fwk.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")


# Work that was put off.

# One thread, because every further one would take as much of the interpreter from the event loop. It is made when it is
# first needed.
_THREADS: Final[list[ThreadPoolExecutor]] = []
renewed_in_children(_THREADS.clear)


async def do_long_work(long: LongWork) -> None:
    """Does the deferred work in its turn; it ends early if the caller is cancelled."""
    if not _THREADS:
        _THREADS.append(ThreadPoolExecutor(1, "long-work"))
    (thread,) = _THREADS
    is_abandoned = threading.Event()
    try:
        await asyncio.get_running_loop().run_in_executor(thread, long.work, lambda: not is_abandoned.is_set())
    finally:
        is_abandoned.set()


async def with_long_work(attempt: Callable[[], Awaitable[T]]) -> T:
    """Returns the result of the attempt, which is repeated after each `LongWork` that it raises."""
    done: list[LongWork] = []
    while True:
        try:
            return await attempt()
        except LongWork as long:
            done.append(long.with_traceback(None))  # the frames of the cycle are not needed
        await do_long_work(done[-1])


def repeated_after_long_work(attempt: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:

    @wraps(attempt)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await with_long_work(partial(attempt, *args, **kwargs))

    return run

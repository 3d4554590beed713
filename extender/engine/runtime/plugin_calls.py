"""The one place where plugins are called. A call is timed, and an exception becomes a PluginError with the plugin's
name.

Upstream: pkg/scheduler/framework/runtime/framework.go, runFilterPlugin and its siblings (v1.36.2).
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from traceback import walk_tb
from typing import Final, TypeVar, TypeVarTuple, final

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.values.metrics import ObservePlugin

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

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
_CALLERS: Final = tuple(f"{_PROGRAM}{folder}/" for folder in ("engine/framework", "engine/runtime", "answers"))
"""What calls plugins, or stands between a call and the plugin."""


@final
class PluginError(Exception):
    """A plugin raised, or returned something that its extension point does not allow. It fails the pod's cycle and
    nothing else.

    The message is upstream's (`running "Name" filter plugin: ...`); what the plugin raised is chained.

    Attributes:
        plugin: the plugin's name.
        why: the message without upstream's words around it.
    """

    def __init__(self, plugin: str, point: str, why: str) -> None:
        super().__init__(_FAILED.get(point, _FAILED_ELSEWHERE).format(point=point, plugin=plugin, why=why))
        self.plugin = plugin
        self.why = why


def told(exc: BaseException) -> str:
    """Returns the message of what a plugin raised, and of a plugin from outside the tree its type and the place."""
    place = place_of(exc)
    return f"{exc} ({type(exc).__name__}, {place})" if place else str(exc)


def place_of(exc: BaseException) -> str:
    """Returns the file and line where a plugin from outside the tree raised; empty for one of the tree."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(exc.__traceback__)]
    file = next((each for each, _ in lines if not (each.startswith(_CALLERS) or "importlib" in each)), _PROGRAM)
    if file.startswith(_PROGRAM):
        return ""
    return f"{'/'.join(Path(file).parts[-2:])}, line {[line for each, line in lines if each == file][-1]}"


def call_plugin(observe: ObservePlugin | None, plugin: str, point: str, call: Callable[[*Ts], T], *args: *Ts) -> T:
    """Returns the result of the call.

    Arguments:
        observe: receives the seconds that the call took; None in a cycle that is not sampled.
        point: the extension point as metrics name it.

    Raises:
        LongWork: the answer takes long.
        PluginError: the plugin raised.
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

    Raises:
        LongWork: see `call_plugin`.
        PluginError: the plugin raised, or something that it waited for was cancelled.
        CancelledError: the current task is being cancelled.
    """
    status, began = str(fwk.Code.ERROR), perf_counter()
    try:
        answer = await call()
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
    status, began = str(fwk.Code.ERROR), perf_counter()
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
    """Returns the code of a result; of one about many rows, Success if any row passes."""
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

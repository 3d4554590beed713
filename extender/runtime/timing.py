"""How long plugins take, for those who want to know. In a cycle that nobody watches, none of this is called.

Upstream: pkg/scheduler/framework/runtime/framework.go, runFilterPlugin and its siblings (v1.36.2).
"""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import ParamSpec, TypeVar

from extender import framework as fwk
from extender.metrics import ObservePlugin

P = ParamSpec("P")
T = TypeVar("T")


def timed(observe: ObservePlugin, plugin: str, point: str, ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the plugin answers; `observe` is told how long that took, also if it raises."""
    status, began = str(fwk.Code.ERROR), perf_counter()
    try:
        answer = ask(*args, **kwargs)
        status = _status_of(answer)
        return answer
    finally:
        observe(perf_counter() - began, plugin, point, status)


async def timed_wait(observe: ObservePlugin | None, plugin: str, point: str, ask: Callable[[], Awaitable[T]]) -> T:
    """The same for a plugin that waits; None if nobody wants to know."""
    if observe is None:
        return await ask()
    status, began = str(fwk.Code.ERROR), perf_counter()
    try:
        answer = await ask()
        status = _status_of(answer)
        return answer
    finally:
        observe(perf_counter() - began, plugin, point, status)


def _status_of(answer: object) -> str:
    """The code of an answer; of one about many rows Success if any row passes."""
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

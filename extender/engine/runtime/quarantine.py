"""Quarantine: plugins from outside the tree that fail or overrun again and again are not called for a while.

Upstream has nothing like it, because its plugins are compiled into the scheduler.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import wraps
from time import perf_counter
from typing import Any, Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.runtime.plugin_calls import told
from extender.values import limits
from extender.values.klog.logger import Logger

MOST_FAILURES: Final = 5
"""The number of calls in a row that may fail or overrun."""
FIRST_PAUSE: Final = timedelta(seconds=10)
LONGEST_PAUSE: Final = timedelta(minutes=5)
"""The longest pause. Pauses double until a call succeeds again."""

QUARANTINED: Final = "the plugin is quarantined"
"""The beginning of the reason of such an error."""

_CALLED_IN_LOOP: Final = (
    "pre_enqueue", "pre_filter", "filter", "pre_score", "score", "normalize_score", "reserve", "permit",
    "pre_bind_pre_flight",
)  # fmt: skip
_AWAITED: Final = ("post_filter", "pre_bind", "bind", "post_bind")

_EACH_NODE: Final = (fwk.EachNodeFilterPlugin, fwk.EachNodeScorePlugin)

_LOG: Final = Logger(__name__)


class QuarantinedError(Exception):
    """The plugin is not called at the moment."""


@final
@dataclass(slots=True)
class Quarantine:
    """The recent calls of one plugin in all profiles."""

    plugin: str
    now: Callable[[], datetime]
    num_failures: int = 0
    """The number of failed calls in a row."""
    last_failure: str = ""
    times: int = 0
    """The number of quarantines."""
    _until: datetime | None = None
    _pause: timedelta = FIRST_PAUSE

    def reason(self) -> str:
        """Returns why the plugin is not called, until the pause is over; a failure after it begins the next."""
        if self._until is None or self.now() >= self._until:
            return ""
        return (
            f"{QUARANTINED} until {self._until:%H:%M:%S}, because {self.num_failures} calls in a row failed; "
            f"the last one: {self.last_failure}"
        )

    def succeeded(self) -> None:
        if self._until is not None:
            _LOG.info(0, "Plugin works again", plugin=self.plugin)
        self.num_failures, self._until, self._pause = 0, None, FIRST_PAUSE

    def failed(self, why: str) -> None:
        """Counts a failure, and begins a pause if there were too many."""
        self.num_failures += 1
        self.last_failure = why
        if self.num_failures >= MOST_FAILURES:
            self.times += 1
            self._until = self.now() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            _LOG.error(self.reason(), "Plugin is quarantined", plugin=self.plugin)


@final
@dataclass(slots=True)
class Quarantines:
    """The quarantines of all plugins from outside the tree."""

    now: Callable[[], datetime]
    by_plugin: dict[str, Quarantine] = field(default_factory=dict)

    def of(self, plugin: str) -> Quarantine:
        return self.by_plugin.setdefault(plugin, Quarantine(plugin, self.now))

    def reasons(self) -> list[str]:
        """Returns a line for each plugin that is not called at the moment."""
        return [f"{name}: {reason}" for name, of_plugin in self.by_plugin.items() if (reason := of_plugin.reason())]


QUARANTINES: Final = fwk.StateKey[Quarantines]("Quarantines")


def guard(plugin: fwk.Plugin, quarantine: Quarantine, *, holds_time: bool = False) -> None:
    """Has the quarantine watch all calls of the plugin but Unreserve, which only undoes and is always called.

    The wrapper of a plugin of one node is watched with it. With `holds_time` the plugin itself fails long calls.
    """
    for name in _CALLED_IN_LOOP:
        if hasattr(plugin, name) and not (isinstance(plugin, _EACH_NODE) and name in ("filter", "score")):
            setattr(plugin, name, _watched(getattr(plugin, name), name, quarantine, holds_time=holds_time))
    for name in _AWAITED:
        if hasattr(plugin, name):
            setattr(plugin, name, _watched_async(getattr(plugin, name), quarantine))


def unguard(plugin: fwk.Plugin) -> None:
    """Ends the watch over a plugin that is no longer called: the plugin and its watched calls refer to each other."""
    for name in (*_CALLED_IN_LOOP, *_AWAITED):
        vars(plugin).pop(name, None)


def _watched(call: Callable[..., Any], name: str, quarantine: Quarantine, *, holds_time: bool) -> Callable[..., Any]:
    left_out = _LEFT_OUT.get(name)

    @wraps(call)
    def watched(*args: Any) -> Any:
        reason = quarantine.reason()
        if reason:
            if left_out is not None:
                return left_out(*args)
            raise QuarantinedError(reason)
        began = perf_counter()
        try:
            answer = call(*args)
        except LongWork:
            raise
        except Exception as exc:
            quarantine.failed(f"{name}: {told(exc)}")
            raise
        seconds = perf_counter() - began
        status = getattr(answer, "status", answer)
        if seconds > limits.PLUGIN_SECONDS and not holds_time:
            quarantine.failed(f"{name} took {seconds:.1f} s, more than {limits.PLUGIN_SECONDS:g} s")
        elif isinstance(status, fwk.Status) and status.code == fwk.Code.ERROR:
            quarantine.failed(f"{name}: {status.message}")
        else:
            quarantine.succeeded()
        return answer

    return watched


def _watched_async(call: Callable[..., Awaitable[Any]], quarantine: Quarantine) -> Callable[..., Awaitable[Any]]:
    @wraps(call)
    async def watched(*args: Any) -> Any:
        reason = quarantine.reason()
        if reason:
            raise QuarantinedError(reason)
        try:
            async with asyncio.timeout(limits.PLUGIN_AWAITED_SECONDS):
                answer = await call(*args)
        except TimeoutError as exc:
            why = str(exc) or f"it took longer than {limits.PLUGIN_AWAITED_SECONDS:g} s"
            quarantine.failed(why)
            raise TimeoutError(why) from exc
        except LongWork:
            raise
        except Exception as exc:
            quarantine.failed(told(exc))
            raise
        quarantine.succeeded()
        return answer

    return watched


_LEFT_OUT: Final[dict[str, Callable[..., Any]]] = {
    "pre_score": lambda state, pod, rows: fwk.SKIP,
    "score": lambda state, pod, rows: np.zeros(len(rows), np.int64),
    "normalize_score": lambda state, pod, scores: scores,
}
"""The answers in place of a quarantined plugin that only scores."""

"""Traces of attempts and verb calls. Nothing is exported here; `api.otel_spans` does, where it is wanted.

The trace of what is under way is a context variable, which tasks that an attempt begins inherit. Without one, a cycle
only looks for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final


class Trace(ABC):
    """An attempt or a call that is traced."""

    @abstractmethod
    def timed(self, seconds: float, plugin: str, point: str, status: str) -> None:
        """Takes note of what has just ended: a plugin at a point, or the whole point without a plugin."""

    @abstractmethod
    def describe(self, **attributes: str | int) -> None:
        """Adds attributes. Dots in their names are written as two underscores."""

    @abstractmethod
    def goes_on(self) -> None:
        """Says that one more `end` is to come, since a task goes on with what was begun."""

    @abstractmethod
    def end(self) -> None:
        """Ends the trace, once for the beginning and once for each `goes_on`."""


class Tracer(ABC):
    """Decides what is traced."""

    @abstractmethod
    def attempt(self, began: float) -> Trace | None:
        """Returns the trace of an attempt that began then, by `perf_counter`; None if it is not sampled."""

    @abstractmethod
    def call(self, verb: str, headers: Mapping[str, str]) -> Trace | None:
        """Returns the trace of a verb's call that begins now, part of the one in the headers; None if not sampled."""


CURRENT: Final[ContextVar[Trace | None]] = ContextVar("trace", default=None)
"""The trace of the attempt or call that is under way; None if there is none."""

"""ReplayedWrites: the scheduler's writes are answered as they were answered when it was recorded."""

import asyncio
from collections import defaultdict, deque
from typing import Any, TypeVar, cast, final

from extender.engine import framework as fwk
from extender.lab.recordings.entries import Written, error_of, object_of
from extender.lab.recordings.recorder import is_answered, key_of_call

T = TypeVar("T")


@final
class ReplayedWrites(fwk.Dispatcher):
    """Answers writes as they were answered then, when the recording comes to that. State: answers without a call, and
    calls without one.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], deque[Written]] = defaultdict(deque)
        self._calls: dict[tuple[str, str], deque[asyncio.Future[Any]]] = defaultdict(deque)

    def answered(self, entry: Written) -> None:
        """Answers the call of which the entry speaks, or the next one like it."""
        key = entry.call, entry.key
        waiting = self._calls.pop(key, deque())
        while waiting:
            call = waiting.popleft()
            if not call.done():
                _answer(call, entry)
                if waiting:
                    self._calls[key] = waiting
                return
        self._answers[key].append(entry)

    async def perform(self, call: fwk.ApiCall[T]) -> T:
        return cast("T", await self._begun(call)) if is_answered(call) else cast("T", None)

    def submit(self, call: fwk.ApiCall[T]) -> "asyncio.Future[T | None]":
        if is_answered(call):
            return self._begun(call)
        done: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def _begun(self, call: fwk.ApiCall[Any]) -> "asyncio.Future[Any]":
        return self.answer_to(type(call).__name__, key_of_call(call))

    def answer_to(self, call: str, about: str) -> "asyncio.Future[Any]":
        """Returns the answer to a call of this name."""
        key = call, about
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if answers := self._answers.get(key):
            _answer(future, answers.popleft())
            if not answers:
                del self._answers[key]
        else:
            self._calls[key].append(future)
        return future


def _answer(call: "asyncio.Future[Any]", entry: Written) -> None:
    error = error_of(entry)
    if error is None:
        call.set_result(object_of(entry))
    else:
        call.set_exception(error)

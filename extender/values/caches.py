"""Caches of answers that expire; and of results computed from texts of pods, which tenants write and may be large."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar, final

P = ParamSpec("P")
R = TypeVar("R")

LARGE: Final = 8192
"""Bytes of a large text. What is worked out from one takes up to twenty times as much memory."""
LARGE_KEPT: Final = 8


def cached_by_size(max_results: int, size: Callable[[Any], int] = len) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keeps `max_results` as `lru_cache` does, and few of those whose first argument has a large `size` in bytes, so
    that texts of pods that are gone do not fill memory.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        small, large = lru_cache(max_results)(function), lru_cache(LARGE_KEPT)(function)

        @wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> R:
            return (small if size(args[0]) <= LARGE else large)(*args, **kwargs)  # type: ignore[arg-type]  # hashable

        return cached

    return decorated


@final
class ExpiringCache(Generic[R]):
    """Answers, none of which is None, for some seconds after they came; of too many the oldest is dropped."""

    def __init__(self, seconds: float, max_answers: int, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._max_answers = max_answers
        self._now = now
        self.answers: OrderedDict[Hashable, tuple[float, R]] = OrderedDict()
        """Question -> (when the answer expires, the answer)."""

    def get(self, question: Hashable) -> R | None:
        cached = self.answers.get(question)
        return None if cached is None or cached[0] <= self._now() else cached[1]

    def put(self, question: Hashable, answer: R) -> R:
        self.answers.pop(question, None)
        self.answers[question] = self._now() + self._seconds, answer
        if len(self.answers) > self._max_answers:
            self.answers.popitem(last=False)
        return answer

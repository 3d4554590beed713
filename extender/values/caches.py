"""Caches of results computed from texts of pods, which tenants write and which may be large."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, ParamSpec, TypeVar

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

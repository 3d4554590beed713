"""Parses of what pods demand, kept for equal pods within a bound: a pod may be a megabyte long, and one that is parsed several."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar, cast

SHORT_KEPT: Final = 1024
"""The number of short arguments whose answers are kept."""

LONG: Final = 4096
"""Bytes. The answers about longer arguments are kept in a place of their own."""

LONG_BYTES_KEPT: Final = 8 * 2**20
"""The bytes of all long arguments whose answers are kept. The last one is kept in any case."""

P = ParamSpec("P")
T = TypeVar("T")


def kept_for_equal(length: Callable[[Any], int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Returns a decorator that keeps a function's answers, as `functools.lru_cache` does, within a bound of bytes. Threads may share them.

    Arguments:
        length: returns about how many bytes the function's first argument has.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        of_short = cast(Callable[P, T], lru_cache(maxsize=SHORT_KEPT)(function))
        of_long: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        lock = Lock()

        @wraps(function)
        def kept(*args: P.args, **kwargs: P.kwargs) -> T:
            size = length(args[0])
            if size <= LONG:
                return of_short(*args, **kwargs)
            asked = (args, *kwargs.items())
            with lock:
                known = of_long.get(asked)
                if known is not None:
                    of_long.move_to_end(asked)
                    return known[0]
            answer = function(*args, **kwargs)
            with lock:
                of_long[asked] = answer, size
                held = sum(size for _, size in of_long.values())
                while held > LONG_BYTES_KEPT and len(of_long) > 1:
                    _, (_, dropped) = of_long.popitem(last=False)
                    held -= dropped
            return answer

        return kept

    return decorate

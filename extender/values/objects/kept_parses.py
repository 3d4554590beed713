"""Parses of what pods demand, kept for equal pods within a bound: a pod may be a megabyte long, and one that is parsed
several.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast, final
from weakref import WeakValueDictionary

SHORT_KEPT: Final = 1024
"""The number of short arguments whose answers are kept."""

LONG: Final = 4096
"""Bytes. The answers about longer arguments are kept in a place of their own."""

LONG_BYTES_KEPT: Final = 8 * 2**20
"""The bytes of all long arguments whose answers are kept. The last one is kept in any case, and so is one that somebody
holds.
"""

P = ParamSpec("P")
T = TypeVar("T")


@final
class KeptAnswer(Generic[T]):
    """An answer about a long argument. It is found again as long as this object is there."""

    __slots__ = ("__weakref__", "size", "value")

    def __init__(self, value: T, size: int) -> None:
        self.value: Final = value
        self.size: Final = size
        """The bytes of the argument."""


_HELD: Final[ContextVar[set[KeptAnswer[Any]] | None]] = ContextVar("held parses", default=None)


@final
class HeldParses:
    """Answers about long arguments, which are kept as long as this object is there. State: these."""

    __slots__ = ("__weakref__", "_answers")

    def __init__(self) -> None:
        self._answers: set[KeptAnswer[Any]] = set()

    @property
    def size(self) -> int:
        """The bytes of the arguments."""
        return sum(answer.size for answer in self._answers)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the answers that this thread asks for meanwhile."""
        token = _HELD.set(self._answers)
        try:
            yield
        finally:
            _HELD.reset(token)


def kept_for_equal(length: Callable[[Any], int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Returns a decorator that keeps a function's answers, as `functools.lru_cache` does, within a bound of bytes.
    Threads may share them.

    Arguments:
        length: returns about how many bytes the function's first argument has.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        of_short = cast(Callable[P, T], lru_cache(maxsize=SHORT_KEPT)(function))
        of_long: OrderedDict[Hashable, KeptAnswer[T]] = OrderedDict()
        in_use: WeakValueDictionary[Hashable, KeptAnswer[T]] = WeakValueDictionary()
        lock = Lock()

        def keep(asked: Hashable, answer: KeptAnswer[T]) -> None:
            with lock:
                in_use[asked] = of_long[asked] = answer
                of_long.move_to_end(asked)
                held = sum(each.size for each in of_long.values())
                while held > LONG_BYTES_KEPT and len(of_long) > 1:
                    held -= of_long.popitem(last=False)[1].size

        @wraps(function)
        def kept(*args: P.args, **kwargs: P.kwargs) -> T:
            size = length(args[0])
            if size <= LONG:
                return of_short(*args, **kwargs)
            asked = (args, *kwargs.items())
            with lock:
                answer = in_use.get(asked)
                if asked in of_long:
                    of_long.move_to_end(asked)
            if answer is None:
                answer = KeptAnswer(function(*args, **kwargs), size)
                keep(asked, answer)
            holder = _HELD.get()
            if holder is not None:
                holder.add(answer)
            return answer.value

        return kept

    return decorate

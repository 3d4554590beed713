"""How a row of the table of limits is held: what fills it through a public door, and what is seen at it and above it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final


@final
@dataclass(frozen=True)
class Filled:
    """`seen` takes a number, fills the row with so many, and returns (or, awaited, is) what is seen then.

    What `at` and `above` are compared with is of the limit's number and of one more. Callables take the number.
    """

    probe: Callable[[int], Any]
    at: Any = ""
    above: Any = None
    is_slow: bool = False
    lowered_to: int = 0
    """A number that stands for a limit that is far too large to be filled in a test, or that is no round one in it."""


@final
@dataclass(frozen=True)
class Kept:
    """Something has so many `units`, which is seen `whole` where the limit is that number, and `cut` where it is less.

    For limits that are far too large to be filled in a test.
    """

    units: int
    probe: Callable[[], Any]
    whole: Any
    cut: Any


@final
@dataclass(frozen=True)
class Page:
    """A page of the example cluster shows so many `units` that its HTML has the pattern for, and no more than the limit."""

    units: int
    path: str
    pattern: str


RECORDED = 7
"""So many attempts, preemptions and differences from a shadow does the service of the pages and the commands have."""


@final
@dataclass(frozen=True)
class Command:
    """A command prints of the example cluster so many `units` that it has the pattern for, and no more than the limit."""

    units: int
    words: tuple[str, ...]
    pattern: str


@final
@dataclass(frozen=True)
class Held:
    """Another test goes to the limit, and beyond it: `tests/FILE.py::test_name`."""

    by: str
    says: str = ""
    """What that file says, where it does not name the limit."""


def words(call: Callable[[], object], kind: type[Exception] = Exception) -> str:
    """Returns what a refusal says; empty if there is none."""
    try:
        call()
    except kind as exc:
        return str(exc)
    return ""

"""Work that nobody waits for any more ends."""

from collections.abc import Callable
from typing import final

IsWanted = Callable[[], bool]
"""Whether somebody still waits for the answer."""


@final
class AbandonedError(Exception):
    """Nobody waits for the answer any more, and so there is none."""


def always_wanted() -> bool:
    """Somebody waits until the end."""
    return True

"""FreedMemory: what a question took goes back to the system when it is answered.

The C library keeps what was freed for the next time, which may never come; a question about a large cluster takes as much as all else.
"""

import asyncio
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

_SOON: Final = 1.0
"""Seconds until the memory of a question is given back: by then its request has ended, and perhaps others, too."""


@final
class FreedMemory:
    """State: whether memory is to be given back soon."""

    def __init__(self) -> None:
        self._is_pending = False

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Gives back what was taken in the block, soon after its end."""
        try:
            yield
        finally:
            if not self._is_pending:
                self._is_pending = True
                asyncio.get_running_loop().call_later(_SOON, self._give_back)

    def _give_back(self) -> None:
        self._is_pending = False
        # In a thread: it goes through all that is free.
        asyncio.get_running_loop().run_in_executor(None, _trim)


def _trim() -> None:
    # Other C libraries have no such function, and do not keep as much.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

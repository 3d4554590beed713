"""FreedMemory: what a question took goes back to the system when it is answered.

The C library keeps what was freed for the next time, which may never come; a question about a large cluster takes as
much as all else.
"""

import asyncio
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

_SOON: Final = 1.0
"""Seconds until the memory of a question is given back: by then its request has ended, and perhaps others, too."""

_LARGE_BLOCK: Final = 2**20
"""The bytes from which a block, such as a body, is taken from the system and given back by itself. Arrays of a decision
are smaller.
"""
_M_MMAP_THRESHOLD: Final = -3


@final
class FreedMemory:
    """State: whether memory is to be given back soon."""

    def __init__(self) -> None:
        self._is_pending = False
        # Otherwise the C library keeps blocks as large as the largest that was freed among the small ones, where gaps
        # remain.
        _call("mallopt", _M_MMAP_THRESHOLD, _LARGE_BLOCK)

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
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Calls the C library. Other ones than glibc have no such functions, and do not keep as much."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)

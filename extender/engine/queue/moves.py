"""Moves of many waiting pods, made in portions so that they do not hold the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, final

from extender.engine.queue.queued_pod_info import QueuedPodInfo

Move = Callable[[QueuedPodInfo], object]
"""Moves a pod from one queue to another, if it is still where it was."""

MOVED_AT_ONCE: Final = 500
"""The number of pods: about five milliseconds of work."""


@final
class Moves:
    """Which pods are still to be moved, by what asks for it, oldest first.

    The first portion is moved at once if nothing is left of earlier moves, and the others in later turns of the event
    loop. Without a running loop there is nobody to wait for, and all are moved at once.
    """

    def __init__(self) -> None:
        self._left: deque[tuple[Iterator[QueuedPodInfo], Move]] = deque()

    def __bool__(self) -> bool:
        """Returns True if pods are still to be moved."""
        return bool(self._left)

    def add(self, pods: Iterable[QueuedPodInfo], move: Move) -> None:
        """Moves these pods after all that are to be moved already. They are asked for portion by portion."""
        self._left.append((iter(pods), move))
        if len(self._left) == 1:
            self._go_on()

    def finish(self) -> None:
        """Moves all that are left, now."""
        while self._left:
            self._next_portion()

    def _go_on(self) -> None:
        try:
            self._next_portion()
        finally:
            if self._left:
                self._follow_later()

    def _follow_later(self) -> None:
        try:
            asyncio.get_running_loop().call_soon(self._go_on)
        except RuntimeError:
            self.finish()

    def _next_portion(self) -> None:
        room = MOVED_AT_ONCE
        while self._left and room:
            pods, move = self._left[0]
            portion = list(islice(pods, room))
            for info in portion:
                move(info)
            room -= len(portion)
            if room:
                self._left.popleft()

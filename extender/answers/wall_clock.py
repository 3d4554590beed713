"""What a moment of the event loop is on the clock on the wall."""

from datetime import datetime, timedelta
from typing import final

from extender.golang.times import rfc3339


@final
class WallClock:
    """Both clocks, read at one moment."""

    def __init__(self, wall: datetime, loop_time: float) -> None:
        self._wall = wall
        self._loop_time = loop_time

    def text(self, loop_time: float) -> str:
        """RFC 3339, in UTC, to the second."""
        return rfc3339(self._wall + timedelta(seconds=loop_time - self._loop_time))

"""Where the log goes: lines on stderr, which nobody waits for.

A disk that is full, a pipe that is closed or that nobody reads, a terminal that was stopped: none of them keeps a pod waiting. What does
not get through is counted, and that is told as soon as lines get through again.
"""

import logging
import os
import select
from typing import Final, final

from extender.klog.logger import Said

_STDERR: Final = 2

_PATIENCE: Final = 100
"""Milliseconds for which a line may wait; nothing while the line before it has waited in vain."""


@final
class Outlet(logging.Handler):
    """Writes to a file descriptor. State: what did not get through."""

    def __init__(self, descriptor: int) -> None:
        """Nothing was lost yet."""
        super().__init__()
        self._descriptor = descriptor
        self._ready = select.poll()
        self._ready.register(descriptor, select.POLLOUT)
        self._dropped = 0
        self._untold = 0
        """Of these, how many nobody knows of yet."""
        self._is_torn = False
        """Whether a line has begun and has not ended."""

    def dropped(self) -> int:
        """How many lines did not get through, or only their beginning."""
        return self._dropped

    def emit(self, record: logging.LogRecord) -> None:
        """Write its line."""
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
        else:
            self.say(line)

    def say(self, line: str) -> None:
        """Write this line, or drop it."""
        self.acquire()
        try:
            lines = [self._notice(), line] if self._untold else [line]
            text = "".join(f"{each}\n" for each in lines).encode("utf-8", "backslashreplace")
            self._say(b"\n" + text if self._is_torn else text)
        finally:
            self.release()

    def _say(self, text: bytes) -> None:
        length = self._write(text)
        if length:
            self._is_torn = not text[:length].endswith(b"\n")
        if length == len(text):
            self._untold = 0
        else:
            self._untold += 1
            self._dropped += 1

    def _write(self, text: bytes) -> int:
        """How many bytes got through."""
        written = 0
        patience = 0 if self._untold else _PATIENCE
        while written < len(text):
            if not self._ready.poll(patience):
                break
            try:
                # A pipe that is ready takes so much without waiting.
                written += os.write(self._descriptor, text[written : written + select.PIPE_BUF])
            except OSError:
                break
        return written

    def _notice(self) -> str:
        said = Said("Lines of the log were dropped, as they could not be written", {"lines": self._untold})
        return self.format(logging.LogRecord(__name__, logging.WARNING, __file__, 0, said, None, None))


STDERR: Final = Outlet(_STDERR)


def fill_standard_descriptors() -> None:
    """What was closed before we began leads nowhere from now on: else some socket would be stderr, and be told what is meant for people."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)

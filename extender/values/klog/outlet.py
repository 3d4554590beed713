"""The destination of the log: lines on stderr, written without waiting.

A full disk, a closed or unread pipe, a stopped terminal: none of them delays a pod. Lines that cannot be written are
counted, and the count is written as soon as lines can be written again.
"""

import logging
import os
import select
from typing import Final, final

from extender.values.klog.logger import Message

_STDERR: Final = 2

_PATIENCE: Final = 100
"""Milliseconds for which a line may wait; none after a line that has waited in vain."""


@final
class Outlet(logging.Handler):
    """Writes to a file descriptor. State: the number of lines that were dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._ready = select.poll()
        self._ready.register(descriptor, select.POLLOUT)
        self._dropped = 0
        self._unreported = 0
        """Dropped lines that have not been reported."""
        self._is_cut_off = False
        """Whether the last line was cut off."""

    def dropped(self) -> int:
        """Returns how many lines were dropped or cut off."""
        return self._dropped

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
        else:
            self.write_line(line)

    def write_line(self, line: str) -> None:
        self.acquire()
        try:
            lines = [self._notice(), line] if self._unreported else [line]
            text = "".join(f"{each}\n" for each in lines).encode("utf-8", "backslashreplace")
            self._write_text(b"\n" + text if self._is_cut_off else text)
        finally:
            self.release()

    def _write_text(self, text: bytes) -> None:
        length = self._write(text)
        if length:
            self._is_cut_off = not text[:length].endswith(b"\n")
        if length == len(text):
            self._unreported = 0
        else:
            self._unreported += 1
            self._dropped += 1

    def _write(self, text: bytes) -> int:
        written = 0
        patience = 0 if self._unreported else _PATIENCE
        while written < len(text):
            if not self._ready.poll(patience):
                break
            try:
                # A pipe that is ready accepts PIPE_BUF bytes without blocking.
                written += os.write(self._descriptor, text[written : written + select.PIPE_BUF])
            except OSError:
                break
        return written

    def _notice(self) -> str:
        message = Message("Lines of the log were dropped, as they could not be written", {"lines": self._unreported})
        return self.format(logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, None, None))


STDERR: Final = Outlet(_STDERR)


def fill_standard_descriptors() -> None:
    """Opens closed standard descriptors on /dev/null, so that no socket becomes stderr and gets the log."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)

"""Programs that run for the duration of a test: started, waited for until they are ready, and stopped in any case."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, final

_POLL_SECONDS: Final = 0.05
_LAST_LINES: Final = 15


class ProcessError(RuntimeError):
    """A program did not start or become ready. The text contains the end of its output."""


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time that a process has used with all its threads, in ticks of the kernel of a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@final
class Process:
    """A running program. It runs in real time, so that waiting for it blocks."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        """Starts the program.

        Arguments:
            command: its path and its arguments.
            log: the file for its output, which is appended.

        Raises:
            ProcessError: there is no such program.
        """
        self.name = Path(command[0]).name
        self._log = log
        with log.open("ab") as output:
            try:
                self._popen = subprocess.Popen(
                    [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )
            except OSError as error:
                raise ProcessError(f"{command[0]} can not be run: {error.strerror}") from error

    def wait_until(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Returns when the program is ready; stops it if that takes too long.

        Raises:
            ProcessError: it has ended, or is not ready after this many seconds.
        """
        deadline = time.monotonic() + seconds
        while not is_ready():
            code = self._popen.poll()
            if code is not None:
                raise ProcessError(
                    f"{self.name} has ended with exit code {code} before it was ready:\n{self._end_of_log()}"
                )
            if time.monotonic() > deadline:
                self.stop(seconds)
                raise ProcessError(f"{self.name} was not ready after {seconds:g} s:\n{self._end_of_log()}")
            time.sleep(_POLL_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    @property
    def cpu_seconds(self) -> float:
        """See `cpu_seconds`."""
        return cpu_seconds(self._popen.pid)

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        """Ends the program at once."""
        self._popen.kill()
        self._popen.wait()

    def stop(self, seconds: float) -> bool:
        """Terminates the program, and kills it if it does not end within this many seconds. Returns whether it ended by
        itself.
        """
        self._popen.terminate()
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def _end_of_log(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_LAST_LINES:])

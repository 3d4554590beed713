"""Other programs for as long as a test needs them: started, waited for until they are ready, stopped whatever happens."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, final

_POLL_SECONDS: Final = 0.05
_LAST_LINES: Final = 15


class ProcessError(RuntimeError):
    """A program did not start, or did not stop; the text holds the end of what it wrote."""


@final
class Process:
    """One program. It runs in real time, so that waiting for it blocks."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        """Starts it.

        Arguments:
            command: its path and its arguments.
            log: where it writes; what is there stays.

        Raises:
            ProcessError: when there is no such program.
        """
        self.name = Path(command[0]).name
        self._log = log
        with log.open("ab") as output:
            try:
                self._popen = subprocess.Popen(  # noqa: S603 - whoever writes the test says what runs
                    [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )
            except OSError as error:
                raise ProcessError(f"{command[0]} can not be run: {error.strerror}") from error

    def wait_until(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Returns when it is ready; stops it when that does not happen.

        Raises:
            ProcessError: when it has ended, or is not ready after so many seconds.
        """
        deadline = time.monotonic() + seconds
        while not is_ready():
            code = self._popen.poll()
            if code is not None:
                raise ProcessError(f"{self.name} has ended with exit code {code} before it was ready:\n{self._last_words()}")
            if time.monotonic() > deadline:
                self.stop(seconds)
                raise ProcessError(f"{self.name} was not ready after {seconds:g} s:\n{self._last_words()}")
            time.sleep(_POLL_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def kill(self) -> None:
        """Ends it without a chance to tidy up."""
        self._popen.kill()
        self._popen.wait()

    def stop(self, seconds: float) -> bool:
        """Asks it to end, and ends it when it does not within so many seconds. Whether it has ended by itself."""
        self._popen.terminate()
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_LAST_LINES:])

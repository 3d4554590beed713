"""Journeys: commands that a person types one after the other, in an environment of its own, with the time that each
took.
"""

import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.installed.environment import Environment

DEADLINE = 180.0


@dataclass
class Journey:
    """A person's shell: its folder, and what was typed so far with its seconds."""

    environment: Environment
    folder: Path
    steps: list[tuple[str, float]] = field(default_factory=list)

    def type(
        self, command: str, *, fails: bool = False, says: str | None = None, also: Mapping[str, str] | None = None
    ) -> str:
        """What the command prints, on both outputs.

        Arguments:
            fails: it ends with an exit code other than 0.
            says: how the command reads in the list of steps; as it is by default.
            also: further variables of the environment.
        """
        began = time.monotonic()
        done = self.environment.run(command, cwd=self.folder, **(also or {}))
        self.steps.append((says or command, time.monotonic() - began))
        assert (done.returncode != 0) == fails, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def cd(self, folder: str) -> None:
        self.folder /= folder

    @contextmanager
    def beside(self, command: str) -> Iterator["Running"]:
        """A command that goes on in another window until the end of the block."""
        began = time.monotonic()
        with tempfile.NamedTemporaryFile("w", prefix="journey-", delete=False) as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.environment.variables(),
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        running = Running(process, Path(file.name))
        try:
            yield running
        finally:
            self.steps.append((command, running.ready_after - began if running.ready_after else 0.0))
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE)
            running.last = running.output.read_text()
            running.output.unlink()

    def report(self) -> str:
        """The steps, with the seconds that each took."""
        return "\n".join(f"{seconds:6.1f} s  {command}" for command, seconds in self.steps)


@dataclass
class Running:
    """A command in another window."""

    process: subprocess.Popen[bytes]
    output: Path
    ready_after: float = 0.0
    last: str = ""

    def until(self, pattern: str, times: int = 1) -> str:
        """Waits until the output has a match so many times, and returns the output."""
        ends = time.monotonic() + DEADLINE
        while len(re.findall(pattern, self.output.read_text())) < times:
            assert time.monotonic() < ends and self.process.poll() is None, self.output.read_text()
            time.sleep(0.05)
        self.ready_after = self.ready_after or time.monotonic()
        return self.output.read_text()

    def until_ready(self, url: str) -> None:
        """Waits until GET answers 200."""
        ends = time.monotonic() + DEADLINE
        while True:
            assert time.monotonic() < ends and self.process.poll() is None, self.output.read_text()
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        self.ready_after = self.ready_after or time.monotonic()

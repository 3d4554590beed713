"""Schedulers as processes: `reprieve serve`, started quickly, killed and told to end by real signals.

The command is imported once, by a process that does nothing but fork: what is forked from it is a scheduler.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, final

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 30


@final
class Scheduler:
    """One process."""

    def __init__(self, fork_server: "ForkServer", pid: int, log: Path) -> None:
        self.pid = pid
        self._fork_server = fork_server
        self._log = log
        self._code: int | None = None

    def told(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    async def ends(self) -> int:
        """Its exit code, or minus the signal that ended it, once it has ended."""
        if self._code is None:
            async with asyncio.timeout(SECONDS):
                self._code = await asyncio.to_thread(self._fork_server.wait_for, self.pid)
        return self._code

    def said(self) -> str:
        """All that it has written; nothing as long as it has not begun."""
        return self._log.read_text() if self._log.exists() else ""

    def says(self, words: str) -> Callable[[], Coroutine[Any, Any, bool]]:
        """Whether it has written this by now."""

        async def has_said() -> bool:
            return words in self.said()

        return has_said


@final
class ForkServer:
    """The process that forks."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def wait_for(self, pid: int) -> int:
        """The exit code of a child, once it has ended."""
        return int(self._ask({"wait": pid}))

    def fork(self, arguments: list[str], environment: dict[str, str], log: Path) -> int:
        """The pid of a new child, which is the command with these arguments."""
        return int(self._ask({"arguments": arguments, "environment": environment, "log": str(log)}))

    def _ask(self, what: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the command cannot be imported; see what was written to stderr"
        return json.loads(answer)


@contextmanager
def a_fork_server(
    plugins: dict[str, str], folder: Path, environment: dict[str, str] | None = None
) -> Iterator[ForkServer]:
    """Forks for as long as the block runs.

    Arguments:
        plugins: entry points: name -> module:class.
        folder: becomes a distribution that names them.
        environment: further variables of the process that forks, and of its children.
    """
    about = folder / "forked-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: forked\nVersion: 1\n")
    lines = "".join(f"{name} = {where}\n" for name, where in plugins.items())
    (about / "entry_points.txt").write_text(f"[extender.plugins]\n{lines}")
    environment = {"PATH": "", "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", **(environment or {})}
    command = [sys.executable, str(Path(__file__))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        yield ForkServer(process)


@asynccontextmanager
async def a_scheduler(
    fork_server: ForkServer, arguments: list[str], environment: dict[str, str], log: Path
) -> AsyncIterator[Scheduler]:
    """A process that has ended, one way or the other, at the end of the block."""
    pid = await asyncio.to_thread(fork_server.fork, arguments, environment, log)
    scheduler = Scheduler(fork_server, pid, log)
    try:
        yield scheduler
    finally:
        if scheduler._code is None:
            with suppress(ProcessLookupError):
                scheduler.told(signal.SIGKILL)
            await scheduler.ends()


def _fork_for_ever() -> None:
    """Each line asks for a child, or waits for one."""
    import api.cli.serve  # noqa: F401 - a command is imported when it runs, which is here once for all children
    from api.cli import main

    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            result = os.waitstatus_to_exitcode(status)
        else:
            result = os.fork()
            if result == 0:
                output = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                nothing = os.open(os.devnull, os.O_RDONLY)
                for source, target in ((nothing, 0), (output, 1), (output, 2)):
                    os.dup2(source, target)
                os.environ.update(request["environment"])
                sys.argv = ["reprieve", *request["arguments"]]
                main()
                return
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    _fork_for_ever()

"""What a command does while its answer takes time, in a line of a terminal that disappears with the answer."""

import sys
from types import TracebackType
from typing import final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


@final
class WaitingLine:
    """A line on standard error with what is being done, and for how many seconds. Nothing is printed where that is no
    terminal.
    """

    def __init__(self, text: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._line = Progress(
            *columns, console=Console(file=sys.stderr), transient=True, disable=not sys.stderr.isatty()
        )
        self._task: TaskID = self._line.add_task(text, total=None)

    def __enter__(self) -> "WaitingLine":
        self._line.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.stop()

    def hide(self) -> None:
        """Takes the line away for good."""
        self._line.stop()

    def show(self, text: str) -> None:
        """Says what is being done now."""
        self._line.update(self._task, description=text)

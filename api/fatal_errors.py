"""Errors that end the program. Each message is one line for an operator."""

from typing import ClassVar, Final, final

EXIT_CODES: Final = {
    0: "The question is answered; where it is about room, everything that was asked about finds some.",
    1: "The answer is no: there is no room for what is to be created or moved (`fits`, `victims`, `whatif`), no such "
    "pod (`why`), "
    "no such preemption (`who-preempted`); a rule does not hold (`verify`, `test`), decisions differ (`replay`, "
    "`simulate`, "
    "`shadow --at-least`), an extender is not well (`doctor`). `serve` ends so, too, when it cannot start, and other "
    "commands when a file "
    "cannot be read or written.",
    2: "What was given cannot be used: an option, a file with objects, a name, a context that does not exist.",
    3: "The source is away: the service or the cluster cannot be reached, is silent, or refuses to answer.",
}
"""The exit codes of commands."""


class _FatalError(Exception):
    exit_code: ClassVar[int] = 1
    """A key of EXIT_CODES."""

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))


class StartUpError(_FatalError):
    """A command cannot start, or has no answer. The message is one line that says what to do."""


@final
class MisuseError(StartUpError):
    """What the caller gave cannot be used: an argument, a file, a name. Another try with the same would end the
    same.
    """

    exit_code = 2


@final
class SourceAwayError(StartUpError):
    """The service or cluster that should answer cannot be asked."""

    exit_code = 3


@final
class ServiceOverError(_FatalError):
    """The service has nothing left to serve, or what it ended with could not be kept. The message is one line."""

"""Errors that end the program. Each message is one line for an operator."""

from typing import ClassVar, Final, final

from extender.values.reasons import InputError

EXIT_CODES: Final = {
    0: "Yes: the question is answered, and where it is about room, all that was asked about finds some.",
    1: "No: a pod finds no room (`fits`, `victims`, `whatif`, `plan`), there is no such pod (`why`) or preemption "
    "(`who-preempted`), a rule or a check does not hold (`verify`, `test`, `simulate`), nothing is better (`tune`), "
    "decisions differ (`replay`, `shadow --at-least`), an extender is not well (`doctor`), a plugin cannot be loaded "
    "(`plugins`). Also if nobody takes the answer, or the disk is full.",
    2: "What was given cannot be used: an option, a name, a file that cannot be read or holds something else, a "
    "configuration that does not load.",
    3: "The source is away: the service or the cluster cannot be reached, is silent, or refuses to answer; or "
    "what the answer hangs on may not be read.",
    4: "The service could not start, or ended without finishing: its port is taken, it has lost its lease, could not "
    "save its cluster, or got a second signal to end (`serve`); kube-scheduler has ended (`dev --kube-scheduler`).",
}
"""The exit codes of commands."""


class StartUpError(InputError):
    """A command cannot start with what it was given. The message is one line that says what to do."""

    exit_code: ClassVar[int] = 2
    """A key of EXIT_CODES."""

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))


@final
class NegativeError(StartUpError):
    """The answer is no, and there is nothing else to print."""

    exit_code = 1


@final
class SourceAwayError(StartUpError):
    """The service or cluster that should answer cannot be asked."""

    exit_code = 3


@final
class ServiceOverError(StartUpError):
    """The service cannot start, has nothing left to serve, or could not keep what it ended with."""

    exit_code = 4

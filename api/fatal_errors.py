"""Errors that end the program. Each message is one line for an operator; the exit code is 1."""


class _FatalError(Exception):
    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))


class StartUpError(_FatalError):
    """A command cannot start, or cannot be answered. The message is one line that says what to do."""


class ServiceOverError(_FatalError):
    """The service has nothing left to serve, or what it ended with could not be kept. The message is one line."""

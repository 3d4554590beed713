"""Why something could not be read or written, as an operator reads it."""


class InputError(Exception):
    """What somebody gave cannot be used: another try with the same would end the same. The message says why."""


class ReprieveError(Exception):
    """What was asked for cannot be done. The message says why, in one line; nothing has changed."""

    __module__ = "reprieve"  # where callers of the library find it

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))


def in_one_line(exc: BaseException) -> str:
    """Returns the message of an error in one line, without what only a developer of Python understands."""
    if isinstance(exc, UnicodeDecodeError):
        return f"not UTF-8 text: its byte {exc.start} belongs to no character"
    if isinstance(exc, RecursionError):
        return "nested too deeply"
    if isinstance(exc, OSError) and exc.strerror and not exc.strerror.startswith("["):  # as those of OpenSSL do
        return exc.strerror.lower()
    return " ".join(str(exc).split()) or type(exc).__name__


class ExtenderError(Exception):
    """An extender failed, or returned what cannot be used, in upstream's words; the caller knows if that matters."""

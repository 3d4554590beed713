"""Errors of expressions, apart from the interpreter, which is loaded when an expression is first compiled."""

from typing import final


class CelError(Exception):
    """The expression does not compile, or fails for a device; in upstream's words, but for the interpreter's."""


@final
class CompileError(CelError):
    """The expression is invalid for any device."""

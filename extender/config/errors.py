"""Why a configuration cannot be used, in upstream's words: one error a line, all at once."""

from collections.abc import Iterable
from typing import Final, Literal

from extender.golang.field_errors import FieldError, aggregate

Stage = Literal["load", "validation", "create"]
"""Where a configuration fails: while it is read, while its values are checked, while profiles and extenders are built of it."""


class ConfigErrors(Exception):  # noqa: N818  it carries all of them
    """The configuration cannot be used. Its text is upstream's aggregate of all errors."""

    def __init__(self, errors: Iterable[FieldError | str], stage: Stage = "validation") -> None:
        """Arguments: errors: a text is an error about the whole configuration."""
        self.errors: Final = tuple(FieldError("", detail=error) if isinstance(error, str) else error for error in errors)
        self.stage: Final = stage
        super().__init__(aggregate(self.errors))

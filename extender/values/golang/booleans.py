"""Booleans as Go's programs read them. Upstream: strconv.ParseBool."""

from typing import Final

_VALUES: Final = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)


def parse_bool(text: str) -> bool:
    """Returns what strconv.ParseBool makes of the text.

    Raises:
        ValueError: the text is neither true nor false; the message is Go's.
    """
    try:
        return _VALUES[text]
    except KeyError:
        raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax') from None

"""Texts in quotes as Go prints them with %q; and values and types of free-form JSON, as %v and %T print them.

Upstream: Go, strconv/quote.go; fmt/print.go.
"""

from collections.abc import Mapping
from typing import Final

_ESCAPES: Final = {
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_TYPES: Final[Mapping[type, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def quoted(text: str) -> str:
    """Returns the text in double quotes. Upstream: strconv.Quote."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = "".join(_escaped(character, '"') for character in text)
    return f'"{escaped}"'


def quoted_character(character: str) -> str:
    """Returns the character in single quotes. Upstream: strconv.QuoteRune."""
    escaped = _escaped(character, "'")
    return f"'{escaped}'"


def _escaped(character: str, quote: str) -> str:
    if character == quote:
        return f"\\{quote}"
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printed(value: object) -> str:
    """Returns a JSON value as %v prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{printed(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(printed, value)) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def printed_type(value: object) -> str:
    """Returns the type of a JSON value as %T prints it."""
    return _TYPES.get(type(value), "<nil>")

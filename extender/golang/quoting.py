"""Texts in quotes as Go prints them with %q.

Upstream: Go, strconv/quote.go.
"""

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


def quoted(text: str) -> str:
    """The text in double quotes. Upstream: strconv.Quote."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = "".join(_escaped(character, '"') for character in text)
    return f'"{escaped}"'


def quoted_character(character: str) -> str:
    """The character in single quotes. Upstream: strconv.QuoteRune."""
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

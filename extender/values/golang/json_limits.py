"""How deep, how long, how large JSON may be before anything is built of it: bounded time and memory for every body.

The grammar is the decoder's business; what is checked here is what a decoder would accept, or choke on.
"""

import re
from typing import Final

import numpy as np

from extender.values import limits
from extender.values.golang.json import JsonError, TooLargeError

_WINDOW: Final = 2**18
_STEPS: Final = bytes({0x7B: 1, 0x5B: 1, 0x7D: 255, 0x5D: 255}.get(byte, 0) for byte in range(256))
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"{}[]")
_STRINGS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ESCAPES: Final = re.compile(rb'\\[\\"]')
_FEW_ESCAPES: Final = 64
"""The least bytes for each escape: with few escapes, one search takes a third of the time of two replacements, with
many it takes more.
"""
_NUMBERS: Final = bytes(0x30 if byte in b"-+.0123456789eE" else 0x20 for byte in range(256))
_LONG_NUMBER: Final = b"0" * (limits.JSON_NUMBER + 1)
_LARGE_NUMBER: Final = re.compile(rb"[0-9.]+[eE]\+?[0-9]{3,}")


def check_json(document: bytes, depth: int = 0) -> None:
    """Checks that a document, which is `depth` levels inside another one, is within the limits and in UTF-8.

    The time is linear in the length, for text that is no JSON as well. Raises JsonError.
    """
    if not document.isascii():
        _check_utf8(document)
    if b"\\" in document:
        document = _without_escaped_quotes(document)
    position, inside = 0, False
    while position < len(document):
        # A window ends at a quote, so that it splits neither a string nor a number.
        end = document.find(b'"', position + _WINDOW) + 1 or len(document)
        parts = document[position:end].split(b'"')
        most = limits.JSON_STRING_BYTES
        if end - position > most and max(map(len, parts[not inside :: 2]), default=0) > most:
            raise JsonError(f"the body holds a string of more than {most} bytes")
        between = b"".join(parts[inside::2])
        _check_numbers(between)
        deepest, change = _depths(between)
        if deepest > 0 and depth + deepest > limits.JSON_DEPTH:
            raise JsonError(f"the body is nested more than {limits.JSON_DEPTH} levels deep")
        depth += change
        inside ^= len(parts) % 2 == 0
        position = end


def check_number_of_values(body: bytes, limit: int = limits.JSON_VALUES, what: str = "the body") -> None:
    """Checks that there are no more commas in the body than the limit. Raises TooLargeError, naming `what`."""
    characters = np.frombuffer(body, np.uint8)
    is_comma = np.empty(_WINDOW, np.bool_)
    commas = 0
    for start in range(0, len(characters), _WINDOW):
        window = characters[start : start + _WINDOW]
        commas += int(np.count_nonzero(np.equal(window, ord(","), out=is_comma[: len(window)])))
    if commas > limit:
        raise TooLargeError(f"{what} holds more than {limit} values")


def is_too_deep(document: bytes) -> bool:
    """Returns whether objects and arrays are nested more deeply than is allowed, wherever in the document."""
    return (
        document.count(b"{") + document.count(b"[") > limits.JSON_DEPTH
        and _depths(_STRINGS.sub(b"", document))[0] > limits.JSON_DEPTH
    )


def _without_escaped_quotes(document: bytes) -> bytes:
    """Returns the document without `\\\\` and `\\"`, so that each quote that is left begins or ends a string."""
    if document.count(b"\\") < len(document) // _FEW_ESCAPES:
        return _ESCAPES.sub(b"", document)
    # Escaped backslashes are removed first, so that a backslash that is left escapes the character after it.
    return document.replace(b"\\\\", b"").replace(b'\\"', b"")


def _check_utf8(document: bytes) -> None:
    try:
        document.decode()
    except UnicodeDecodeError as exc:
        raise JsonError("the body is not valid UTF-8") from exc


def _check_numbers(between: bytes) -> None:
    if _LONG_NUMBER in between.translate(_NUMBERS):
        raise JsonError(f"the body holds a number of more than {limits.JSON_NUMBER} characters")
    if b"e" not in between and b"E" not in between:
        return
    for number in _LARGE_NUMBER.findall(between):
        try:
            value = float(number)
        except ValueError:
            continue  # no number at all: the decoder says so better
        if value == float("inf"):
            raise JsonError("the body holds a number that is out of range")


def _depths(between: bytes) -> tuple[int, int]:
    """Returns the largest depth in a text without strings, and that after it, relative to that before."""
    steps = between.translate(_STEPS, _NO_BRACKETS)
    if not steps:
        return 0, 0
    depths = np.frombuffer(steps, np.int8).cumsum(dtype=np.int64)
    return int(depths.max()), int(depths[-1])

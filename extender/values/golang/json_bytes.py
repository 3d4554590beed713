"""JSON in bytes, read piece by piece as Go reads it: names in any case, null for an absent member, unknown members
ignored; and how deep and how large it may be before anything is built of it.

`read` and `members` are for bodies that are sent to us. `first_value` and the readers below it are for answers, and
read and refuse them as Go's decoder of a stream does: the first value counts, and integers have neither fraction nor
exponent.

Upstream: Go, encoding/json, Decoder.Decode.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec
import numpy as np
from msgspec import Raw

from extender.values import limits
from extender.values.golang.int64 import MAX_INT64, MIN_INT64
from extender.values.golang.json import JsonError, TooLargeError, cannot_unmarshal
from extender.values.near_names import field_meant

T = TypeVar("T")

Document = bytes | Raw

_NULL: Final = b"null"
_WHITESPACE: Final = " \t\r\n"
_WORDS: Final = {ord('"'): "string", ord("{"): "object", ord("["): "array", ord("t"): "bool", ord("f"): "bool"}
_DECODERS: Final[dict[object, msgspec.json.Decoder[Any]]] = {}


def read(kind: type[T], document: Document, what: str = "the body") -> T:
    """Returns the document as a value of this type. Raises JsonError, which names `what` and repeats nothing of it."""
    try:
        return _decoder(kind).decode(document)
    except msgspec.ValidationError as exc:
        raise JsonError(f"{what}: {exc}{field_meant(kind, str(exc))}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        # The decoder's message contains only the position, whereas that of UnicodeDecodeError would repeat the bytes.
        detail = "not valid UTF-8" if isinstance(exc, UnicodeDecodeError) else str(exc)
        raise JsonError(f"{what} is not JSON: {detail}") from exc
    except RecursionError as exc:
        raise JsonError(f"{what} is nested too deeply") from exc


def members(document: Mapping[str, Raw], *names: str) -> list[Raw | None]:
    """Returns the last member of each name, in any case; None for those that are missing or null."""
    values: dict[str, Raw | None] = dict.fromkeys(map(str.casefold, names))
    for name, value in document.items():
        folded = name.casefold()
        if folded in values:
            values[folded] = None if is_null(value) else value
    return list(values.values())


def is_null(document: Raw) -> bool:
    return len(document) == len(_NULL) and bytes(document) == _NULL


def first_value(body: bytes) -> Raw:
    """Returns the first JSON value of the body, in valid UTF-8; what follows it is not looked at. Raises JsonError."""
    if not body.isascii():
        # Go replaces what is not UTF-8 by U+FFFD.
        body = body.decode(errors="replace").encode()
    if is_too_deep(body):
        raise JsonError("exceeded max depth")
    try:
        return _decoder(Raw).decode(body)
    except msgspec.DecodeError as exc:
        return _first_of_several(body, exc)
    except RecursionError as exc:
        raise JsonError("exceeded max depth") from exc


def quickly(kind: type[T], document: Raw) -> T | None:
    """Returns the document if it is exactly of this type; None if it has to be read piece by piece."""
    try:
        return _decoder(kind).decode(document)
    except (msgspec.DecodeError, RecursionError):
        return None


def entries(document: Raw | None, what: str) -> dict[str, Raw]:
    """Returns the members of an object; none for null. Raises JsonError with `what`, the place and the type."""
    return _read(dict[str, Raw], document, what)


def items(document: Raw | None, what: str) -> list[Raw]:
    """Returns the items of a list; none for null. Raises as `entries`."""
    return _read(list[Raw], document, what)


def text(document: Raw | None, place: str) -> str:
    """Returns a string; empty for null. Raises as `entries`."""
    return _read(str, document, f"{place} of type string")


def int64(document: Raw | None, place: str) -> int:
    """Returns an integer that fits int64; 0 for null. Raises as `entries`."""
    number = _read(int, document, f"{place} of type int64")
    if not MIN_INT64 <= number <= MAX_INT64:
        raise JsonError(cannot_unmarshal("number", "int64", place))
    return number


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return decoder


def _read(kind: type[T], document: Raw | None, what: str) -> T:
    """Returns the document; the zero value of the type for null."""
    if document is None or is_null(document):
        return kind()
    try:
        return _decoder(kind).decode(document)
    except msgspec.DecodeError as exc:
        word = _WORDS.get(bytes(document)[0], "number")
        raise JsonError(f"json: cannot unmarshal {word} into Go struct field {what}") from exc


def _first_of_several(body: bytes, refusal: msgspec.DecodeError) -> Raw:
    """Returns the first value before further bytes, or with halves of surrogate pairs (U+FFFD to Go) in it."""
    text = body.decode()
    start = len(text) - len(text.lstrip(_WHITESPACE))
    if start == len(text):
        raise JsonError("EOF") from refusal
    try:
        value, _ = _TOLERANT.raw_decode(text, start)
    except (ValueError, RecursionError) as exc:
        # The decoder's message contains a position, and nothing of the document.
        raise JsonError("unexpected EOF" if "truncated" in str(refusal) else f"invalid character: {refusal}") from exc
    text = json.dumps(value, ensure_ascii=False)
    return Raw(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode())


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _large_as_float(digits: str) -> int | float:
    # No int64 has more digits than this. As a fraction the number is refused wherever an integer is expected.
    return int(digits) if len(digits) <= 20 else 0.5


_TOLERANT: Final = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_int=_large_as_float,
    parse_float=lambda literal: max(min(float(literal), 1e308), -1e308),
)


_WINDOW: Final = 2**18
_ESCAPES: Final = re.compile(rb'\\[\\"]')
_FEW_ESCAPES: Final = 64
"""The least bytes an escape: one search takes a third of two replacements for few, but more for many."""
_STEPS: Final = bytes({0x7B: 1, 0x5B: 1, 0x7D: 255, 0x5D: 255}.get(byte, 0) for byte in range(256))
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"{}[]")
_STRINGS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LARGE_NUMBER: Final = re.compile(rb"(?<![0-9.])[0-9.]++[eE]\+?[0-9]{3,}")


def check_json(document: bytes, depth: int = 0) -> None:
    """Checks in linear time that a document, `depth` levels inside another, is UTF-8 in limits. Raises JsonError."""
    if not document.isascii():
        try:
            document.decode()
        except UnicodeDecodeError as exc:
            raise JsonError("the body is not valid UTF-8") from exc
    if b"\\" in document:
        document = _without_escaped_quotes(document)
    position, inside = 0, False
    while position < len(document):
        # A window ends at a quote, so that it splits neither a string nor a number.
        end = document.find(b'"', position + _WINDOW) + 1 or len(document)
        parts = document[position:end].split(b'"')
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
    if body.count(b",") > limit:
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


def _check_numbers(between: bytes) -> None:
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

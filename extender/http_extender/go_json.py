"""JSON as Go's decoder reads it from a stream: the first value counts, names may be in any case, null means "not there", the last of
several members of a name wins, integers have neither fraction nor exponent.

Beyond that: no more than `MAX_DEPTH` levels.

Upstream: encoding/json, Decoder.Decode.
"""

import json
import re
from typing import Any, Final, NoReturn, TypeVar

import msgspec
import numpy as np
from msgspec import Raw

from extender.framework import ExtenderError
from extender.golang.int64 import MAX_INT64, MIN_INT64

T = TypeVar("T")

MAX_DEPTH: Final = 64
"""Objects and arrays inside each other. Go stops at 10000; an answer needs 5, and the nodes in it about 30."""

_NULL: Final = b"null"
_READ_ANY: Final = msgspec.json.Decoder(Raw)
_READ_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])
_READ_LIST: Final = msgspec.json.Decoder(list[Raw])
_READ_TEXT: Final = msgspec.json.Decoder(str)
_READ_INTEGER: Final = msgspec.json.Decoder(int)
_QUICK: Final[dict[object, msgspec.json.Decoder[Any]]] = {}
_WHITESPACE: Final = " \t\r\n"

_STRINGS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STEPS: Final = bytes({0x7B: 1, 0x5B: 1, 0x7D: 255, 0x5D: 255}.get(byte, 0) for byte in range(256))
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"{}[]")

_KINDS: Final = {ord('"'): "string", ord("{"): "object", ord("["): "array", ord("t"): "bool", ord("f"): "bool"}


def first_value(body: bytes) -> Raw:
    """The first JSON value of the body, in valid UTF-8; what comes after it is not looked at.

    Raises:
        ExtenderError: there is none.
    """
    if not body.isascii():
        # Go puts U+FFFD for what is no UTF-8.
        body = body.decode(errors="replace").encode()
    _check_depth(body)
    try:
        return _READ_ANY.decode(body)
    except msgspec.DecodeError as exc:
        return _first_of_several(body, exc)
    except RecursionError as exc:
        raise ExtenderError("exceeded max depth") from exc


def _first_of_several(body: bytes, refusal: msgspec.DecodeError) -> Raw:
    """Bytes after the value, and halves of surrogate pairs (U+FFFD, too), are nothing to Go. Everything else is."""
    text = body.decode()
    start = len(text) - len(text.lstrip(_WHITESPACE))
    if start == len(text):
        raise ExtenderError("EOF") from refusal
    try:
        value, _ = _TOLERANT.raw_decode(text, start)
    except (ValueError, RecursionError) as exc:
        # The text of the decoder tells a position, and nothing of what is there.
        raise ExtenderError("unexpected EOF" if "truncated" in str(refusal) else f"invalid character: {refusal}") from exc
    written = json.dumps(value, ensure_ascii=False)
    return Raw(written.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode())


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _large_as_float(digits: str) -> int | float:
    """No int64 has more digits than this; as a fraction it is refused wherever one is asked for."""
    return int(digits) if len(digits) <= 20 else 0.5


_TOLERANT: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_large_as_float, parse_float=lambda literal: max(min(float(literal), 1e308), -1e308)
)


def _check_depth(body: bytes) -> None:
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    steps = _STRINGS.sub(b"", body).translate(_STEPS, _NO_BRACKETS)
    if steps and int(np.frombuffer(steps, np.int8).cumsum(dtype=np.int64).max()) > MAX_DEPTH:
        raise ExtenderError("exceeded max depth")


def quickly(kind: type[T], document: Raw) -> T | None:
    """The document as a value of this type, if that is exactly what it is; None if Go might see it differently, so that it must be read
    piece by piece."""
    decoder = _QUICK.get(kind)
    if decoder is None:
        decoder = _QUICK[kind] = msgspec.json.Decoder(kind)
    try:
        value: T = decoder.decode(document)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value


def members(document: Raw, what: str, *names: str) -> list[Raw | None]:
    """The members of an object, in the order of the names; None for those that are missing or null, and for all of null.

    Raises:
        ExtenderError: it is something else.
    """
    found = dict.fromkeys(map(str.casefold, names))
    for name, value in _object(document, what).items():
        if name.casefold() in found:
            found[name.casefold()] = None if _is_null(value) else value
    return list(found.values())


def entries(document: Raw | None, what: str) -> dict[str, Raw]:
    """The members of an object that is a map; none for null.

    Raises:
        ExtenderError: it is something else.
    """
    return {} if document is None else _object(document, what)


def items(document: Raw | None, what: str) -> list[Raw]:
    """The items of a list; none for null.

    Raises:
        ExtenderError: it is something else.
    """
    if document is None or _is_null(document):
        return []
    try:
        return _READ_LIST.decode(document)
    except msgspec.ValidationError as exc:
        _wrong_kind(document, what, exc)


def text(document: Raw | None, what: str) -> str:
    """A string; empty for null.

    Raises:
        ExtenderError: it is something else.
    """
    if document is None or _is_null(document):
        return ""
    try:
        return _READ_TEXT.decode(document)
    except msgspec.ValidationError as exc:
        _wrong_kind(document, f"{what} of type string", exc)


def int64(document: Raw | None, what: str) -> int:
    """An integer that fits int64; 0 for null.

    Raises:
        ExtenderError: it is something else.
    """
    if document is None or _is_null(document):
        return 0
    try:
        number = _READ_INTEGER.decode(document)
    except msgspec.DecodeError as exc:
        _wrong_kind(document, f"{what} of type int64", exc)
    if not MIN_INT64 <= number <= MAX_INT64:
        raise ExtenderError(f"json: cannot unmarshal number into Go struct field {what} of type int64")
    return number


def _object(document: Raw, what: str) -> dict[str, Raw]:
    if _is_null(document):
        return {}
    try:
        return _READ_OBJECT.decode(document)
    except msgspec.ValidationError as exc:
        _wrong_kind(document, what, exc)


def _is_null(document: Raw) -> bool:
    return bytes(document).strip() == _NULL


def _wrong_kind(document: Raw, what: str, exc: Exception) -> NoReturn:
    kind = _KINDS.get(bytes(document).lstrip()[0], "number")
    raise ExtenderError(f"json: cannot unmarshal {kind} into Go struct field {what}") from exc

"""The meaning of YAML 1.1 scalars, as Go's yaml v2 reads them, in values that JSON can hold.

Upstream: go.yaml.in/yaml v2, resolve.go.
"""

import math
import re
from decimal import Decimal
from typing import Final

from extender.values.golang.int64 import MAX_INT64, MIN_INT64
from extender.values.golang.json import Number

Scalar = None | bool | int | Number | str

_PREFIX: Final = "tag:yaml.org,2002:"
STRING: Final = f"{_PREFIX}str"
BINARY: Final = f"{_PREFIX}binary"
MERGE: Final = f"{_PREFIX}merge"
_BOOL: Final = f"{_PREFIX}bool"
_INT: Final = f"{_PREFIX}int"
_FLOAT: Final = f"{_PREFIX}float"
_NULL: Final = f"{_PREFIX}null"
_TIMESTAMP: Final = f"{_PREFIX}timestamp"
_RESOLVABLE: Final = frozenset({"", STRING, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP})

_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_NOTHING: Final = ("", "~", "null", "Null", "NULL")
_WORDS: Final[dict[str, tuple[str, Scalar]]] = {
    **dict.fromkeys(_TRUE, (_BOOL, True)),
    **dict.fromkeys(_FALSE, (_BOOL, False)),
    **dict.fromkeys(_NOTHING, (_NULL, None)),
}
_NOT_FINITE: Final = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
}
_INTEGER: Final = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]{1,16})|0[bB]([01]{1,64})|0[oO]([0-7]{1,22})|0([0-7]{1,22})|([1-9][0-9]{0,19}|0))",
)
_BASES: Final = (16, 2, 8, 8, 10)
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAX_UINT64: Final = 2**64 - 1


class ScalarError(ValueError):
    """The scalar is not of its tag, or JSON cannot hold it."""


def resolve(tag: str, text: str) -> tuple[str, Scalar]:
    """Returns the tag and the value of a scalar that is plain or has a tag. Raises ScalarError."""
    if tag not in _RESOLVABLE:
        return tag, text
    plain_tag, value = (STRING, text) if tag == STRING else _resolve_plain(text)
    if tag in ("", STRING, plain_tag):
        return plain_tag, value
    if tag == _FLOAT and plain_tag == _INT:
        return _FLOAT, value
    raise ScalarError(f"cannot decode {_short(plain_tag)} `{text}` as a {_short(tag)}")


def member_name(key: Scalar) -> str:
    """Returns the name that a key becomes in JSON. Raises ScalarError for null."""
    if key is None:
        raise ScalarError("unsupported map key of type: null")
    if isinstance(key, bool):
        return "true" if key else "false"
    return key.text if isinstance(key, Number) else str(key)


def _resolve_plain(text: str) -> tuple[str, Scalar]:
    if text in _WORDS:
        return _WORDS[text]
    if text in _NOT_FINITE:
        raise ScalarError(f"unsupported value: {_NOT_FINITE[text]}")
    if text[0] == ".":
        return _float(text) or (STRING, text)
    if text[0] in "+-0123456789":
        # Dates begin with a digit, too; they stay text, and no number looks like one.
        digits = text.replace("_", "")
        integer = _integer(digits)
        return (_INT, integer) if integer is not None else _float(digits) or (STRING, text)
    return STRING, text


def _integer(digits: str) -> int | None:
    """Returns an integer in Go's base 0: decimal, or by prefix; a leading zero alone means octal."""
    match = _INTEGER.fullmatch(digits)
    if match is None:
        return None
    base, body = next(
        (base, group) for base, group in zip(_BASES, match.groups()[1:], strict=True) if group is not None
    )
    number = int(body, base)
    if match[1]:
        number = -number if match[1] == "-" else number
        return number if MIN_INT64 <= number <= MAX_INT64 else None
    return number if number <= _MAX_UINT64 else None


def _float(digits: str) -> tuple[str, Scalar] | None:
    if _DECIMAL.fullmatch(digits) is None:
        return None
    number = float(digits)
    return None if math.isinf(number) else (_FLOAT, _as_marshalled(number))


def _as_marshalled(number: float) -> int | Number:
    """Returns the number as Go prints it into JSON: without a useless point, extreme ones with an exponent."""
    size = abs(number)
    if size != 0 and not 1e-6 <= size < 1e21:
        mantissa, _, exponent = repr(number).partition("e")
        return Number(f"{mantissa}e{exponent[0]}{int(exponent[1:])}")
    text = format(Decimal(repr(number)), "f")
    return int(Decimal(text)) if number == int(number) else Number(text)


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_PREFIX)}"

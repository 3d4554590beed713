"""JSON as Go reads and prints it: repeated names, numbers as written, Go's words for errors, texts safe for HTML.

Upstream: Go, encoding/json, scanner.go, decode.go, encode.go.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, final

from extender.values import limits
from extender.values.golang.quoting import quoted_character


@final
class Number(float):
    """A number that is no int64 in plain digits, with the text it was written as."""

    text: str

    def __new__(cls, text: str) -> "Number":
        """Returns the number that `text` spells; infinity where a double cannot hold it."""
        number = super().__new__(cls, text)
        number.text = text
        return number


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A JSON value. Objects with names that repeat are `Repeating`, numbers that are no int64 are `Number`."""


@final
class Repeating(dict[str, Json]):
    """A JSON object with repeated names: `all_members` as they were written, and as a dict the last of each name."""

    def __init__(self, all_members: Iterable[tuple[str, Json]]) -> None:
        self.all_members = tuple(all_members)
        super().__init__(self.all_members)


class JsonError(ValueError):
    """The text is no JSON, or a value in it is not of the type that is asked for. The message is Go's."""


class TooLargeError(JsonError):
    """The body is larger than it may be; what is in it does not matter."""


_INT64_CHARACTERS: Final = 20
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
"""Matches brackets, and strings as a whole, so that brackets in strings do not count."""

_UNSAFE_IN_HTML: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_LITERALS: Final = {"n": "null", "t": "true", "f": "false"}
_GO_WORDS: Final = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}
"""The beginning of a message of Python's decoder -> Go's message."""


def parse_json(text: str, *, max_depth: int = limits.CONFIGURATION_DEPTH, keep_digits: bool = True) -> Json:
    """Returns the value that `text` holds. With `keep_digits`, numbers that are no plain int64 become `Number`, else
    floats.

    Raises JsonError if it is no JSON, nested too deeply, or a number that no float holds where digits are not kept.
    """
    try:
        value: Json = (_DIGITS_DECODER if keep_digits else _FLOAT_DECODER).decode(text)
    except json.JSONDecodeError as exc:
        raise JsonError(go_words(exc)) from exc
    except RecursionError as exc:
        raise JsonError("exceeded max depth") from exc
    if text.count("{") + text.count("[") > max_depth:
        _check_depth(value, max_depth)
    return _without_surrogates(value) if _ESCAPED_SURROGATE.search(text) else value


def members(value: Mapping[str, Json]) -> Iterable[tuple[str, Json]]:
    """Returns the members of an object in the order in which they were written, repeated names included."""
    return value.all_members if isinstance(value, Repeating) else value.items()


def plain(value: Json) -> Any:
    """Returns the same value in dicts, lists and Python's own scalars; of members of one name the last one counts."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, Number) else value


def marshal(value: object) -> str:
    """Returns compact JSON as Go's json.Marshal writes it, of `Json` or of plain values; members keep their order."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).translate(_UNSAFE_IN_HTML)
    if isinstance(value, Number):
        return value.text
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{marshal(name)}:{marshal(member)}" for name, member in members(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(marshal, value)) + "]"
    return json.dumps(value)


def type_word(value: object) -> str:
    """Returns what Go calls the JSON type of a value of the wrong type (UnmarshalTypeError.Value)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def cannot_unmarshal(word: str, go_type: str, place: str = "") -> str:
    """Returns what Go says of a value of the wrong type (UnmarshalTypeError.Error).

    `place` is the struct and the names of the fields down to the value, such as `Pod.spec.nodeName`; empty outside of
    structs. For `word` see `type_word`.
    """
    return f"json: cannot unmarshal {word} into Go {f'struct field {place}' if place else 'value'} of type {go_type}"


def go_words(error: json.JSONDecodeError) -> str:
    """Returns Go's message for the message `error` of Python's decoder. Upstream: scanner.go."""
    text, place = error.doc, error.pos
    if place >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    words = next((words for prefix, words in _GO_WORDS.items() if error.msg.startswith(prefix)), "")
    if error.msg.startswith("Expecting ',' delimiter"):
        words = "after object key:value pair" if _is_in_object(text[:place]) else "after array element"
    elif error.msg == "Expecting value" and text[place] in _LITERALS:
        literal = _LITERALS[text[place]]
        wrong = next(
            step
            for step in range(1, len(literal) + 1)
            if text[place + step : place + step + 1] != literal[step : step + 1]
        )
        if place + wrong >= len(text):
            return "unexpected end of JSON input"
        place, words = place + wrong, f"in literal {literal} (expecting '{literal[wrong]}')"
    return f"invalid character {quoted_character(text[place])} {words}".rstrip()


def _is_in_object(text: str) -> bool:
    """Returns whether the innermost bracket that is still open is a brace."""
    opened = []
    for match in BRACKETS.finditer(text):
        bracket = match[0]
        if bracket in ("[", "{"):
            opened.append(bracket)
        elif bracket in ("]", "}") and opened:
            opened.pop()
    return opened[-1:] == ["{"]


def _check_depth(value: Json, max_depth: int) -> None:
    level = [value]
    for _ in range(max_depth + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise JsonError("exceeded max depth")


def _children(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return [member for _, member in members(value)]
    return value if isinstance(value, list) else ()


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else Repeating(pairs)


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= _INT64_CHARACTERS else Number(text)


def _integer_or_float(text: str) -> int | float:
    number = int(text) if len(text) <= _INT64_CHARACTERS else _finite(text)
    return number if -(2**63) <= number < 2**64 else float(number)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError(cannot_unmarshal("number", "float64"))
    return number


def _refuse_constant(name: str) -> Json:
    # Python reads NaN and the infinities, which JSON does not know.
    raise JsonError(f"invalid character {quoted_character(name.lstrip('-')[0])} looking for beginning of value")


def _without_surrogates(value: Json) -> Json:
    """Returns the value with the replacement character for escaped halves of surrogate pairs, as Go does."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return _object(
            [(_LONE_SURROGATE.sub("\ufffd", name), _without_surrogates(member)) for name, member in members(value)]
        )
    return value


_DIGITS_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=Number, parse_int=_integer, parse_constant=_refuse_constant
)
_FLOAT_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_int=_integer_or_float, parse_constant=_refuse_constant
)

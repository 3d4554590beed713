"""JSON as Go reads and prints it: members in order, twice where they are twice, numbers as written, Go's words for what is wrong."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from extender.objects.field_errors import quoted


class Number(float):
    """A number that is no int64 in plain digits, with the text it was written as."""

    text: str

    def __new__(cls, text: str) -> "Number":
        """The number that `text` spells; infinite where a double cannot hold it."""
        number = super().__new__(cls, text)
        number.text = text
        return number


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object: its members as they were written, duplicates included."""

    members: tuple[tuple[str, "Json"], ...] = ()


Json: TypeAlias = "bool | int | Number | str | list[Json] | Object | None"
"""A JSON value."""


class JsonError(ValueError):
    """The text is no JSON. The message is the one Go has for it."""


MAX_DEPTH: Final = 100
"""Lists and objects may not be nested more deeply. A configuration needs a dozen levels."""

MAX_INT_DIGITS: Final = 20
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
"""And texts, so that brackets in them do not count."""
_LITERALS: Final = {"n": "null", "t": "true", "f": "false"}
_NOT_GO: Final = {
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


def parse_json(text: str) -> Json:
    """The value that `text` holds.

    Raises:
        JsonError: no JSON, or nested too deeply.
    """
    try:
        value: Json = _decoder.decode(text)
    except json.JSONDecodeError as exc:
        raise JsonError(go_words(exc)) from exc
    except RecursionError as exc:
        raise JsonError("exceeded max depth") from exc
    _check_depth(value)
    # Go puts the replacement character where half a surrogate pair is escaped.
    return _without_surrogates(value) if re.search(r"\\u[dD][89a-fA-F]", text) else value


def plain(value: Json) -> object:
    """The same value in dicts, lists and scalars; of a duplicated member the last one counts."""
    if isinstance(value, Object):
        return {key: plain(member) for key, member in value.members}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, Number) else value


def as_json(value: object) -> str:
    """Compact JSON with the escapes of Go's json.Marshal, of `Json` or of plain values."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        for character in "<>&\u2028\u2029":
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text
    if isinstance(value, Number):
        return value.text
    if isinstance(value, Object):
        return _object(value.members)
    if isinstance(value, Mapping):
        return _object(value.items())
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(as_json, value)) + "]"
    return json.dumps(value)


def _object(members: Iterable[tuple[object, object]]) -> str:
    return "{" + ",".join(f"{as_json(key)}:{as_json(member)}" for key, member in members) + "}"


def _check_depth(value: Json) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise JsonError("exceeded max depth")


def _children(value: Json) -> list[Json]:
    if isinstance(value, Object):
        return [member for _, member in value.members]
    return value if isinstance(value, list) else []


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= MAX_INT_DIGITS else Number(text)


def _reject_constant(name: str) -> Json:
    # Python reads NaN and the infinities, which JSON does not know.
    raise JsonError(f"invalid character '{name.lstrip('-')[0]}' looking for beginning of value")


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, Object):
        return Object(tuple((_LONE_SURROGATE.sub("\ufffd", key), _without_surrogates(member)) for key, member in value.members))
    return value


def go_words(error: json.JSONDecodeError) -> str:
    """What Go says where Python says `error`.

    Upstream: Go, encoding/json, scanner.go.
    """
    text, place = error.doc, error.pos
    if place >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    words = next((said for prefix, said in _NOT_GO.items() if error.msg.startswith(prefix)), "")
    if error.msg.startswith("Expecting ',' delimiter"):
        words = "after object key:value pair" if _is_in_object(text[:place]) else "after array element"
    elif error.msg == "Expecting value" and text[place] in _LITERALS:
        literal = _LITERALS[text[place]]
        wrong = next(step for step in range(1, len(literal) + 1) if text[place + step : place + step + 1] != literal[step : step + 1])
        if place + wrong >= len(text):
            return "unexpected end of JSON input"
        place, words = place + wrong, f"in literal {literal} (expecting '{literal[wrong]}')"
    character = text[place]
    shown = {"'": r"'\''", '"': "'\"'"}.get(character) or f"'{quoted(character)[1:-1]}'"
    return f"invalid character {shown} {words}".rstrip()


def _is_in_object(text: str) -> bool:
    """Whether the innermost bracket that is still open is a brace."""
    opened = []
    for found in BRACKETS.finditer(text):
        bracket = found[0]
        if bracket in ("[", "{"):
            opened.append(bracket)
        elif bracket in ("]", "}") and opened:
            opened.pop()
    return opened[-1:] == ["{"]


_decoder: Final = json.JSONDecoder(
    object_pairs_hook=lambda pairs: Object(tuple(pairs)), parse_float=Number, parse_int=_integer, parse_constant=_reject_constant
)

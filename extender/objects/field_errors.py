"""How upstream words an error about a field: its path, the value, what is wrong, and several errors as one text.

A path is plain text: `child("", "spec")`, `index(path, 0)`; the empty path is the root.

Upstream: apimachinery/pkg/util/validation/field, errors.go, path.go; util/errors (v1.36.2).
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
# encoding/json keeps texts safe to put into HTML and JavaScript.
_JSON_ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def child(path: str, name: str) -> str:
    """The path of a member."""
    return f"{path}.{name}" if path else name


def index(path: str, key: int | str) -> str:
    """The path of a list element or of a value in a map."""
    return f"{path}[{key}]"


def invalid(path: str, value: str | Sequence[str], detail: str) -> str:
    """`value` cannot stand at `path`. Upstream: field.Invalid."""
    shown = quoted(value) if isinstance(value, str) else _as_json(value)
    return f"{path}: Invalid value: {shown}: {detail}"


def not_supported(path: str, value: str, supported: Iterable[str]) -> str:
    """`value` is none of those that are known. Upstream: field.NotSupported."""
    return f"{path}: Unsupported value: {quoted(value)}: supported values: {', '.join(map(quoted, supported))}"


def aggregate(errors: Iterable[str]) -> str:
    """All the errors as one text, each of them once. Upstream: errors.NewAggregate, Flatten."""
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def quoted(text: str) -> str:
    """The text in double quotes as Go's %q prints it. Upstream: Go, strconv.Quote."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _as_json(values: Sequence[str]) -> str:
    """A list of texts as Go's encoding/json writes it; one without elements is a nil slice, as decoding an absent list leaves it."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES) if values else "null"

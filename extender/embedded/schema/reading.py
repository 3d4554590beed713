"""JSON values into objects of a kind: as if Go had decoded them into its types and encoded them again.

Upstream: sigs.k8s.io/json, UnmarshalStrict; Go, encoding/json; apimachinery/pkg/runtime/serializer/json (v1.36.2).
"""

import base64
import binascii
import copy
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, final

from extender.embedded.resources import Resource
from extender.embedded.schema.kinds import type_of
from extender.embedded.schema.types import BOUNDS, Kind, ListOf, MapOf, Presence, Scalar, Struct, Type
from extender.golang.quoting import quoted
from extender.golang.times import TimeError, read_micro_time, read_time
from extender.objects.quantity import QuantityError, quantity_of

MAX_PROBLEMS: Final = 100
"""More strict problems than this are not told."""

_NO_KIND: Final = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


class WrongType(ValueError):  # noqa: N818 - what upstream answers with a 400
    """A value is not of the type of its field. The message is Go's."""


@final
class _Repeating(dict[str, Any]):
    """A JSON object that named some of its members more than once; the last of them counts."""

    repeated: tuple[str, ...] = ()


def parse(body: bytes | str) -> Any:
    """The JSON value of a body. Objects remember which members they name twice, so that `read` can tell.

    Raises:
        ValueError: no JSON.
    """
    return json.loads(body, object_pairs_hook=_object_of, parse_constant=_refuse)


def kind_of(value: Any) -> tuple[str, str]:
    """The apiVersion and the kind that a JSON value claims, empty if it does not.

    Raises:
        WrongType: it is no object, or they are no texts.

    Upstream: runtime/serializer/json/meta.go, Interpret.
    """
    prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if value is None:
        return "", ""
    if not isinstance(value, dict):
        raise WrongType(f"{prefix} {_word(value)} into Go value of type {_NO_KIND}")
    for name in value:
        if name in ("apiVersion", "kind") and value[name] is not None and not isinstance(value[name], str):
            # The Go struct has no name here: the dot stands alone.
            raise WrongType(f"{prefix} {_word(value[name])} into Go struct field .{name} of type string")
    return value.get("apiVersion") or "", value.get("kind") or ""


def read(resource: Resource, obj: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The object as the API keeps it, and what a strict reader objects to.

    Arguments:
        obj: JSON values, left alone. From `parse` if fields given twice are to be found.

    Returns:
        A new object: known fields only, in upstream's order, quantities and times in canonical form, empty fields left out or
        filled in as Go does; and texts such as `unknown field "spec.foo"`.

    Raises:
        WrongType: some value does not fit its field.
    """
    return read_as(type_of(resource), obj)


def read_as(struct: Struct, obj: Any) -> tuple[dict[str, Any], list[str]]:
    """As `read`, for a kind that is no resource, such as a Binding or DeleteOptions."""
    reader = _Reader()
    result = reader.value(struct, obj)
    if reader.wrong is not None:
        raise WrongType(reader.wrong)
    return result, list(reader.problems)


def empty(of: Type) -> Any:
    """The value of a field that is always written but was not given: Go's zero value."""
    return copy.deepcopy(_empty(of))


@final
class _Reader:
    """One pass over an object. Goes on after a wrong type, as Go does, and remembers the first."""

    def __init__(self) -> None:
        self.problems: dict[str, None] = {}
        self.wrong: str | None = None
        # Where we are: the Go struct and the JSON names down to here, and the same with list indices and map keys.
        self._struct = ""
        self._fields: list[str] = []
        self._path: list[str] = []

    def value(self, of: Type, raw: Any) -> Any:
        if isinstance(of, Scalar):
            return _empty(of) if raw is None else self._scalar(of, raw)
        if isinstance(of, Struct):
            return self._object(of, raw)
        if isinstance(of, ListOf):
            return self._list(of, raw)
        if isinstance(of, MapOf):
            return self._map(of, raw)
        return raw

    def _object(self, struct: Struct, raw: Any) -> Any:
        if raw is None:
            return empty(struct)
        if not isinstance(raw, dict):
            return self._refuse(raw, struct)
        if isinstance(raw, _Repeating):
            self._repeated(raw)
        fields, here, outer, found = struct.fields, struct.short_name, self._struct, {}
        for name, member in raw.items():
            field = fields.get(name)
            if field is None:
                self._problem("unknown field", name)
                continue
            self._struct = here
            self._fields.append(name)
            self._path.append(f".{name}")
            if member is not None:
                found[name] = self.value(field.type, member)
            self._path.pop()
            self._fields.pop()
            self._struct = outer
        return _written(struct, found)

    def _list(self, of: ListOf, raw: Any) -> Any:
        if raw is None:
            return None
        if not isinstance(raw, list):
            return self._refuse(raw, of)
        items = []
        for place, item in enumerate(raw):
            self._path.append(f"[{place}]")
            items.append(self.value(of.item, item))
            self._path.pop()
        return items

    def _map(self, of: MapOf, raw: Any) -> Any:
        if raw is None:
            return None
        if not isinstance(raw, dict):
            return self._refuse(raw, of)
        if isinstance(raw, _Repeating):
            self._repeated(raw)
        values = {}
        for key in sorted(raw):
            self._path.append(f".{key}")
            values[key] = self.value(of.value, raw[key])
            self._path.pop()
        return values

    def _scalar(self, of: Scalar, raw: Any) -> Any:
        kind = of.kind
        if kind is Kind.STRING:
            return raw if isinstance(raw, str) else self._refuse(raw, of)
        if kind is Kind.BOOL:
            return raw if isinstance(raw, bool) else self._refuse(raw, of)
        if kind in BOUNDS:
            return self._integer(kind, raw, of)
        if kind is Kind.QUANTITY:
            return self._quantity(raw)
        if kind is Kind.INT_OR_STRING:
            if isinstance(raw, str):
                return raw
            return self._number_or_give_up(raw)
        if kind is Kind.FLOAT64:
            return raw if isinstance(raw, int | float) and not isinstance(raw, bool) else self._refuse(raw, of)
        if not isinstance(raw, str):
            return self._unreadable(raw, of)
        if kind is Kind.BYTES:
            return self._bytes(raw)
        if kind is Kind.DURATION:
            return raw
        try:
            return read_micro_time(raw) if kind is Kind.MICRO_TIME else read_time(raw)
        except TimeError as exc:
            raise WrongType(str(exc)) from exc

    def _integer(self, kind: Kind, raw: Any, of: Scalar) -> Any:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            return self._refuse(raw, of)
        least, largest = BOUNDS[kind]
        if isinstance(raw, float) or not least <= raw <= largest:
            return self._refuse(raw, of, f"number {raw!r}")
        return raw

    def _number_or_give_up(self, raw: Any) -> int:
        """An IntOrString reads itself: it gives up at once."""
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            raise WrongType(self._type_error(_word(raw), "int32"))
        least, largest = BOUNDS[Kind.INT32]
        if isinstance(raw, float) or not least <= raw <= largest:
            raise WrongType(self._type_error(f"number {raw!r}", "int32"))
        return raw

    def _quantity(self, raw: Any) -> Any:
        try:
            if isinstance(raw, str | int | float) and not isinstance(raw, bool):
                return _canonical(raw)
            return _canonical(json.dumps(raw, separators=(",", ":")))
        except QuantityError as exc:
            raise WrongType(str(exc)) from exc

    def _bytes(self, raw: str) -> str:
        try:
            base64.b64decode(raw, validate=True)
        except binascii.Error:
            valid = len(raw) - len(raw.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
            self.wrong = self.wrong or f"illegal base64 data at input byte {valid}"
        return raw

    def _unreadable(self, raw: Any, of: Scalar) -> Any:
        """A type that reads itself gives up at once; a list of bytes does not."""
        if of.kind is Kind.BYTES:
            return self._refuse(raw, of)
        raise WrongType(self._type_error(_word(raw), "string"))

    def _refuse(self, raw: Any, of: Type, word: str = "") -> None:
        if self.wrong is None:
            self.wrong = self._type_error(word or _word(raw), go_type(of))

    def _type_error(self, word: str, go: str) -> str:
        place = f"struct field {self._struct}.{'.'.join(self._fields)}" if self._fields else "value"
        return f"json: cannot unmarshal {word} into Go {place} of type {go}"

    def _repeated(self, raw: _Repeating) -> None:
        for name in raw.repeated:
            self._problem("duplicate field", name)

    def _problem(self, what: str, name: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            path = f"{''.join(self._path)}.{name}".removeprefix(".")
            self.problems[f"{what} {quoted(path)}"] = None


def go_type(of: Type) -> str:
    """What Go calls a type in its errors: `[]v1.Container`."""
    if isinstance(of, Scalar):
        return of.go_type or of.kind.value
    if isinstance(of, Struct):
        return f"v1.{of.short_name}"
    if isinstance(of, ListOf):
        return f"[]{go_type(of.item)}"
    if isinstance(of, MapOf):
        return of.go_type or f"map[string]{go_type(of.value)}"
    return of.go_type


@lru_cache(maxsize=32768)
def _canonical(raw: str | int | float) -> str:
    return str(quantity_of(raw))


def _written(struct: Struct, found: dict[str, Any]) -> dict[str, Any]:
    """What Go writes of the fields that were found, in order."""
    result = {}
    for name, field in struct.fields.items():
        if name in found:
            member = found[name]
            if field.presence is not Presence.OMIT or (member is not None and member is not False and member not in (0, "", [], {})):
                result[name] = member
        elif field.presence is Presence.ZERO:
            result[name] = empty(field.type)
        elif field.presence is Presence.NULL:
            result[name] = None
    return result


def _empty(of: Type) -> Any:
    if isinstance(of, Struct):
        return _written(of, {})
    if isinstance(of, Scalar):
        return _EMPTY_SCALARS[of.kind]
    return None


_EMPTY_SCALARS: Final[Mapping[Kind, Any]] = {
    Kind.STRING: "",
    Kind.BOOL: False,
    Kind.INT32: 0,
    Kind.INT64: 0,
    Kind.UINT32: 0,
    Kind.FLOAT64: 0,
    Kind.BYTES: None,
    Kind.QUANTITY: "0",
    Kind.TIME: None,
    Kind.MICRO_TIME: None,
    Kind.DURATION: "0s",
    Kind.INT_OR_STRING: 0,
}


def _word(raw: Any) -> str:
    """What Go calls a JSON value of the wrong type."""
    if isinstance(raw, bool):
        return "bool"
    if isinstance(raw, str):
        return "string"
    if isinstance(raw, list):
        return "array"
    return "object" if isinstance(raw, dict) else "number"


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    repeating = _Repeating(result)
    seen: set[str] = set()
    repeating.repeated = tuple(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return repeating


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")

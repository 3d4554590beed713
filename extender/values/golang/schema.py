"""Go's types as values: how each is read from JSON, Go's words for what does not fit, what Kubernetes says of it.

Reading is strict. It knows three sorts of trouble: what stops it at once (types that read themselves, such as times and
durations), what makes the document unreadable (a value of the wrong type; the first one is reported), and what is only
forbidden (unknown and repeated fields; all are reported). A struct with a `make` becomes a value of Python; any other
is read as the API keeps it: known fields only, in order, empty ones left out or filled in as Go writes them.

Upstream: sigs.k8s.io/json, UnmarshalStrict; Go, encoding/json, decode.go and encode.go; the struct tags of k8s.io/api.
"""

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, final

import msgspec

from extender.values.golang.json import Json, JsonError, Number, Repeating, cannot_unmarshal, members, plain, type_word
from extender.values.golang.quoting import quoted
from extender.values.golang.times import TimeError, read_micro_time, read_time

MAX_STRICT_ERRORS: Final = 100
"""The most unknown and repeated fields that are reported. Upstream: sigs.k8s.io/json, maxStrictErrors."""


@final
class Kind(Enum):
    """What a JSON scalar stands for. The values are what Go calls the types."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BYTES = "[]uint8"
    """Base64 in JSON."""
    QUANTITY = "resource.Quantity"
    TIME = "v1.Time"
    """RFC 3339 with whole seconds, in UTC when written."""
    MICRO_TIME = "v1.MicroTime"
    """RFC 3339 with six digits of a second."""
    DURATION = "v1.Duration"
    INT_OR_STRING = "intstr.IntOrString"


BOUNDS: Final[Mapping[Kind, tuple[int, int]]] = {
    Kind.INT32: (-(1 << 31), (1 << 31) - 1),
    Kind.INT64: (-(1 << 63), (1 << 63) - 1),
    Kind.UINT32: (0, (1 << 32) - 1),
}
"""The least and the largest number of the integer kinds."""

_ZEROS: Final[Mapping[Kind, Any]] = {
    Kind.STRING: "",
    Kind.BOOL: False,
    Kind.INT32: 0,
    Kind.INT64: 0,
    Kind.UINT32: 0,
    Kind.FLOAT32: 0.0,
    Kind.FLOAT64: 0,
    Kind.BYTES: None,
    Kind.QUANTITY: "0",
    Kind.TIME: None,
    Kind.MICRO_TIME: None,
    Kind.DURATION: "0s",
    Kind.INT_OR_STRING: 0,
}


@final
class Presence(Enum):
    """What is written of a field that is empty."""

    OMIT = "omit"
    """Nothing: an empty text, list or map, zero and false are as good as absent."""
    KEEP = "keep"
    """What was given, even if it is empty; nothing if nothing was."""
    ZERO = "zero"
    """The empty value of its type: 0, "", {}, with the fields of a Struct filled in likewise."""
    NULL = "null"
    """null; an empty list that was written stays one."""


@final
class Reading:
    """One pass over a document: the first `mismatch` that makes it unreadable, or empty, and where it is.

    `problems` are texts such as `unknown field "spec.foo"`, in the order in which they were found.
    """

    __slots__ = ("_fields", "_path", "_struct", "mismatch", "problems")

    def __init__(self) -> None:
        self.mismatch = ""
        self.problems: dict[str, None] = {}
        # The Go struct and the names of fields down to here; and the same path with indices of lists and keys of maps.
        self._struct = ""
        self._fields: list[str] = []
        self._path: list[str] = []

    def type_error(self, word: str, go_type: str) -> str:
        """Returns what Go says of a value of the wrong type at this place."""
        return cannot_unmarshal(word, go_type, f"{self._struct}.{'.'.join(self._fields)}" if self._fields else "")

    def does_not_fit(self, word: str, go_type: str) -> None:
        self.cannot_use(self.type_error(word, go_type))

    def cannot_use(self, reason: str) -> None:
        """Notes a value that has the right type and is wrong all the same."""
        self.mismatch = self.mismatch or reason

    def forbid(self, sort: str, name: str) -> None:
        """Notes an unknown or repeated field of the object that is being read."""
        if len(self.problems) < MAX_STRICT_ERRORS:
            path = "".join((*self._path, ".", name)).removeprefix(".")
            self.problems[f"{sort} field {quoted(path)}"] = None

    def field(self, go_type: "GoType", value: Json, struct: str, name: str) -> Any:
        outer, self._struct = self._struct, struct
        self._fields.append(name)
        result = self.part(go_type, value, f".{name}")
        self._fields.pop()
        self._struct = outer
        return result

    def part(self, go_type: "GoType", value: Json, step: str) -> Any:
        """Reads an item of a list or a value of a map, which is one step further down the path."""
        self._path.append(step)
        result = go_type.read(value, self)
        self._path.pop()
        return result


class GoType(ABC):
    """How values of a Go type are read and written. Null is as if nothing were there, but where it `reads_null`."""

    __slots__ = ()
    reads_null: bool = False

    @property
    @abstractmethod
    def go_name(self) -> str:
        """The type as Go's errors call it, such as `[]v1.Container`."""

    @abstractmethod
    def zero(self) -> Any:
        """Returns the value of an absent field."""

    @abstractmethod
    def read(self, value: Json, reading: Reading) -> Any:
        """Returns the value; notes errors in `reading`, and then returns anything."""

    def write(self, value: Any) -> Any:
        """Returns a value of Python in dicts, lists and scalars."""
        return value


@dataclass(frozen=True, slots=True)
class Scalar(GoType):
    """A text, number, truth value or one of Kubernetes' own; `go_type` is what Go calls a named one in errors."""

    kind: Kind
    go_type: str = ""

    @property
    def go_name(self) -> str:
        return self.go_type or self.kind.value

    def zero(self) -> Any:
        return _ZEROS[self.kind]

    def read(self, value: Json, reading: Reading) -> Any:
        kind = self.kind
        if kind is Kind.STRING or kind is Kind.BOOL:
            return value if isinstance(value, str if kind is Kind.STRING else bool) else self._refuse(value, reading)
        if kind in BOUNDS:
            return value if _fits(value, kind) else self._refuse(value, reading, with_digits=True)
        if kind is Kind.FLOAT64:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else self._refuse(value, reading)
        if kind is Kind.BYTES:
            return _base64(value, reading) if isinstance(value, str) else self._refuse(value, reading)
        return _read_itself(kind, value, reading)

    def _refuse(self, value: Json, reading: Reading, *, with_digits: bool = False) -> None:
        reading.does_not_fit(number_word(value) if with_digits else type_word(value), self.go_name)


@final
@dataclass(frozen=True, slots=True)
class Preserve(GoType):
    """JSON that is kept unchanged, and owned and applied as one value."""

    go_type: str = "runtime.RawExtension"

    @property
    def go_name(self) -> str:
        return self.go_type

    def zero(self) -> Any:
        return None

    def read(self, value: Json, reading: Reading) -> Json:
        return value

    def write(self, value: Json) -> object:
        return plain(value)


@final
@dataclass(frozen=True, slots=True)
class ListOf(GoType):
    """A slice; null items are zero values. `keys` tell items of a `map` list apart; `make` builds a value of Python."""

    item: GoType
    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    make: Callable[[Iterable[Any]], Any] | None = None

    @property
    def go_name(self) -> str:
        return f"[]{self.item.go_name}"

    def zero(self) -> Any:
        return self.make(()) if self.make is not None else None

    def read(self, value: Json, reading: Reading) -> Any:
        if not isinstance(value, list):
            reading.does_not_fit(type_word(value), self.go_name)
            return self.zero()
        kind, items = self.item, []
        for place, item in enumerate(value):
            items.append(
                kind.zero() if item is None and not kind.reads_null else reading.part(kind, item, f"[{place}]")
            )
        return items if self.make is None else self.make(items)

    def write(self, value: Sequence[Any]) -> Any:
        return [self.item.write(item) for item in value]


@final
@dataclass(frozen=True, slots=True)
class MapOf(GoType):
    """A map with any text as key, sorted by key as Go writes it. Null values are zero values."""

    value: GoType
    atomic: bool = False
    go_type: str = ""
    """As for a Scalar: `v1.ResourceList`."""

    @property
    def go_name(self) -> str:
        return self.go_type or f"map[string]{self.value.go_name}"

    def zero(self) -> Any:
        return None

    def read(self, value: Json, reading: Reading) -> Any:
        if not isinstance(value, dict):
            reading.does_not_fit(type_word(value), self.go_name)
            return {}
        value_type, values = self.value, {}
        for key, member in members(value):
            if key in values:
                reading.forbid("duplicate", key)
            values[key] = value_type.zero() if member is None else reading.part(value_type, member, f".{key}")
        return {key: values[key] for key in sorted(values)}

    def write(self, value: Mapping[str, Any]) -> Any:
        return {key: self.value.write(member) for key, member in value.items()}


@final
class Field(msgspec.Struct, frozen=True):
    """One field of a Struct, as its tags in Go describe it.

    Attributes:
        patch_key: what strategic merge tells the items of this list apart by.
        patch_strategy: `merge`, `replace`, `retainKeys`, `merge,retainKeys` or empty.
        default: what OpenAPI says and server-side apply assumes for an absent key of a list item; None: no default.
        protobuf: its number; numbers of messages that JSON does not show stand before it. Empty: it is in no message.
        attribute: of the value of Python that holds it; empty for its name in JSON.
        zero_is_default: a zero value is as if the field were not there.
    """

    type: GoType
    patch_key: str | None = None
    patch_strategy: str = ""
    required: bool = False
    presence: Presence = Presence.OMIT
    default: str | int | bool | None = None
    protobuf: tuple[int, ...] = ()
    attribute: str = ""
    zero_is_default: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Struct(GoType):
    """An object with known fields, in the order in which they are written. Compared by identity.

    Attributes:
        name: ends with package and type, such as `v1.Pod`; in full it is what OpenAPI calls the type:
            `io.k8s.api.core.v1.Pod`.
        fields: by JSON name.
        atomic: owned and applied as one value.
        others: what holds of members that are not among the fields; None: they are unknown, and dropped.
        make: builds a value of Python of the fields that were there, by attribute; None to keep JSON.
        get: takes an attribute out of such a value again.
    """

    name: str
    fields: Mapping[str, Field]
    atomic: bool = False
    rest: Field | None = None
    make: Callable[..., Any] | None = None
    get: Callable[[Any, str], Any] = getattr
    short_name: str = field(init=False)
    """The name without its package: `Pod`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "short_name", self.name.rpartition(".")[2])

    @property
    def go_name(self) -> str:
        return ".".join(self.name.split(".")[-2:])

    def field(self, name: str) -> Field | None:
        """Returns what holds of a member; None if it is unknown."""
        return self.fields.get(name, self.rest)

    def zero(self) -> Any:
        return self._made({})

    def read(self, value: Json, reading: Reading) -> Any:
        if not isinstance(value, dict):
            reading.does_not_fit(type_word(value), self.go_name)
            return self.zero()
        fields, rest, short_name = self.fields, self.rest, self.short_name
        parts: dict[str, Any] = {}
        names: set[str] | None = set() if isinstance(value, Repeating) else None
        for name, member in members(value):
            member_field = fields.get(name, rest)
            if member_field is None:
                reading.forbid("unknown", name)
                continue
            if names is not None:
                if name in names:
                    reading.forbid("duplicate", name)
                names.add(name)
            if member is None and not member_field.type.reads_null:
                continue
            part = reading.field(member_field.type, member, short_name, name)
            if member_field.zero_is_default and part == member_field.type.zero():
                # Of repeated fields the last one counts, so that a zero value drops the value of an earlier one.
                parts.pop(member_field.attribute or name, None)
            else:
                parts[member_field.attribute or name] = part
        return self._made(parts)

    def write(self, value: Any) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for name, member_field in self.fields.items():
            part = self.get(value, member_field.attribute or name)
            if part is None or (member_field.presence is Presence.NULL and written_or_null(part) is None):
                if member_field.presence not in (Presence.OMIT, Presence.KEEP):
                    document[name] = None
            elif part or member_field.presence is not Presence.OMIT:
                document[name] = member_field.type.write(part)
        return document

    def _made(self, parts: dict[str, Any]) -> Any:
        if self.make is not None:
            return self.make(**parts)
        document: dict[str, Any] = {}
        for name, member_field in self.fields.items():
            if name in parts:
                if parts[name] or member_field.presence is not Presence.OMIT:
                    document[name] = parts[name]
            elif member_field.presence is Presence.ZERO:
                document[name] = member_field.type.zero()
            elif member_field.presence is Presence.NULL:
                document[name] = None
        if self.rest is not None:
            document |= {name: part for name, part in parts.items() if name not in self.fields}
        return document


def read_as(go_type: GoType, value: Json) -> tuple[Any, list[str]]:
    """Returns the value of a document, new in all its parts, and what a strict reader objects to. Raises JsonError."""
    reading = Reading()
    part = go_type.zero() if value is None else go_type.read(value, reading)
    if reading.mismatch:
        raise JsonError(reading.mismatch)
    return part, list(reading.problems)


_TYPE_META: Final = (
    r"""struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""
)
NO_TYPE_META: Final = "couldn't get version/kind; json parse error: "


def type_meta(value: Json) -> tuple[str, str]:
    """Returns the apiVersion and the kind of a document, empty where it names none. Raises JsonError.

    Upstream: apimachinery, runtime/serializer/json/meta.go, SimpleMetaFactory.Interpret.
    """
    meta = {"apiVersion": "", "kind": ""}
    if value is None:
        return "", ""
    if not isinstance(value, dict):
        raise JsonError(NO_TYPE_META + cannot_unmarshal(type_word(value), _TYPE_META))
    # Names are matched in any case here, unlike in the strict reading that follows, because upstream uses encoding/json
    # for this.
    names = {name.casefold(): name for name in meta}
    for key, member in members(value):
        name = names.get(key.casefold())
        if name is None or member is None:
            continue
        if not isinstance(member, str):
            # The Go struct is anonymous, so that there is nothing before the dot.
            raise JsonError(NO_TYPE_META + cannot_unmarshal(type_word(member), "string", f".{name}"))
        meta[name] = member
    return meta["apiVersion"], meta["kind"]


class WrittenEmpty(list[Any]):
    """A list that was written, though empty: Go tells it from one that is not there."""


def written_list(items: Iterable[Any]) -> list[Any]:
    """Returns a list that remembers that it was written, should it be empty."""
    return list(items) or WrittenEmpty()


def written_or_null(items: Sequence[Any]) -> Sequence[Any] | None:
    """Returns the list as Go writes it: an empty one that was not written is a nil slice, and null."""
    return items if items or isinstance(items, WrittenEmpty) else None


def number_word(value: Json) -> str:
    """Returns Go's word for a value of the wrong type where it shows the digits of numbers."""
    if isinstance(value, Number):
        return f"number {value.text}"
    return f"number {value!r}" if isinstance(value, int | float) and not isinstance(value, bool) else type_word(value)


def _fits(value: Json, kind: Kind) -> bool:
    smallest, largest = BOUNDS[kind]
    return isinstance(value, int) and not isinstance(value, bool) and smallest <= value <= largest


def _base64(value: str, reading: Reading) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        valid = len(value) - len(value.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
        reading.cannot_use(f"illegal base64 data at input byte {valid}")
    return value


def _read_itself(kind: Kind, value: Json, reading: Reading) -> Any:
    """Returns a value of a type that reads itself, and ends the reading where it cannot."""
    if kind is Kind.INT_OR_STRING and not isinstance(value, str):
        if not _fits(value, Kind.INT32):
            raise JsonError(reading.type_error(number_word(value), "int32"))
        return value
    if not isinstance(value, str):
        raise JsonError(reading.type_error(type_word(value), "string"))
    if kind in (Kind.INT_OR_STRING, Kind.DURATION):
        return value
    try:
        return read_micro_time(value) if kind is Kind.MICRO_TIME else read_time(value)
    except TimeError as exc:
        raise JsonError(str(exc)) from exc


STRING: Final = Scalar(Kind.STRING)
BOOL: Final = Scalar(Kind.BOOL)
INT32: Final = Scalar(Kind.INT32)
INT64: Final = Scalar(Kind.INT64)

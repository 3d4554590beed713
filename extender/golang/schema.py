"""Go's types as values: how each is read from JSON, with Go's words for what does not fit, and written again.

Reading is strict. It knows three sorts of trouble: what stops it at once (a duration that is none), what makes the document unreadable (a
value of the wrong type; the first one is reported), and what is only forbidden (unknown and repeated fields; all are reported).

`struct_of(cls, name)` makes the type of a dataclass whose fields say in their metadata (`wire(...)`) how they look in JSON, so that a
default stands beside the name and the type of what it fills.

Upstream: sigs.k8s.io/json, UnmarshalStrict; Go, encoding/json, decode.go and encode.go.
"""

import base64
import binascii
import dataclasses
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from extender.golang.durations import Duration, DurationError
from extender.golang.json import Json, JsonError, Number, cannot_unmarshal, members, plain, type_word
from extender.golang.quoting import quoted

MAX_PROBLEMS: Final = 100
"""No more unknown and repeated fields than this are reported. Upstream: sigs.k8s.io/json, maxStrictErrors."""


@final
class Reading:
    """One pass over a document: what it has found so far, and where it is.

    Attributes:
        mismatch: the first error that makes the document unreadable; empty if there is none.
        problems: texts such as `unknown field "spec.foo"`, in the order in which they were found.
    """

    __slots__ = ("_fields", "_path", "_struct", "mismatch", "problems")

    def __init__(self) -> None:
        self.mismatch = ""
        self.problems: dict[str, None] = {}
        # The Go struct and the names of fields down to here, and the same path with the indices of lists.
        self._struct = ""
        self._fields: list[str] = []
        self._path: list[str] = []

    def does_not_fit(self, word: str, go_type: str) -> None:
        """Notes a value of the wrong type."""
        if not self.mismatch:
            self.mismatch = cannot_unmarshal(word, go_type, f"{self._struct}.{'.'.join(self._fields)}" if self._fields else "")

    def cannot_use(self, reason: str) -> None:
        """Notes a value that has the right type and is wrong all the same."""
        self.mismatch = self.mismatch or reason

    def forbid(self, sort: str, name: str) -> None:
        """Notes an unknown or repeated field of the object that is being read."""
        if len(self.problems) < MAX_PROBLEMS:
            path = "".join((*self._path, ".", name)).removeprefix(".")
            self.problems[f"{sort} field {quoted(path)}"] = None

    def field(self, of: "GoType", value: Json, struct: str, name: str) -> Any:
        """Reads the value of a field of a struct."""
        outer, self._struct = self._struct, struct
        self._fields.append(name)
        self._path.append(f".{name}")
        result = of.read(value, self)
        self._path.pop()
        self._fields.pop()
        self._struct = outer
        return result

    def item(self, of: "GoType", value: Json, index: int) -> Any:
        """Reads an item of a list."""
        self._path.append(f"[{index}]")
        result = of.read(value, self)
        self._path.pop()
        return result


class GoType(ABC):
    """How the values of a Go type are read and written.

    Attributes:
        name: the type as Go's errors call it, such as `[]v1.Container`.
        zero: the value of a field that is not there.
        reads_null: whether null is read; everywhere else it is as if the field were not there.
    """

    reads_null = False

    def __init__(self, name: str, zero: object) -> None:
        self.name = name
        self.zero = zero

    @abstractmethod
    def read(self, value: Json, reading: Reading) -> Any:
        """Returns the value, or `zero` after noting in `reading` what is wrong."""

    def write(self, value: Any) -> Any:
        """Returns the value in dicts, lists and scalars."""
        return value


@final
class Scalar(GoType):
    """string, bool, and named types of these."""

    def __init__(self, name: str, python_type: type) -> None:
        super().__init__(name, python_type())
        self._type = python_type

    def read(self, value: Json, reading: Reading) -> Any:
        if type(value) is self._type:
            return value
        reading.does_not_fit(type_word(value), self.name)
        return self.zero


@final
class Integer(GoType):
    """int32 and int64: plain digits, within the range."""

    def __init__(self, name: str, maximum: int) -> None:
        super().__init__(name, 0)
        self._maximum = maximum

    def read(self, value: Json, reading: Reading) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and -self._maximum - 1 <= value <= self._maximum:
            return value
        reading.does_not_fit(_with_digits(value), self.name)
        return 0


@final
class Float32(GoType):
    """float32, kept as the shortest decimal that means the same float32."""

    def __init__(self) -> None:
        super().__init__("float32", 0.0)

    def read(self, value: Json, reading: Reading) -> float:
        number = None
        if isinstance(value, int | float) and not isinstance(value, bool) and not math.isinf(value):
            number = _shortest_float32(float(value))
        if number is None:
            reading.does_not_fit(_with_digits(value), self.name)
            return 0.0
        return number

    def write(self, value: float) -> float:
        # Go writes whole numbers without a point.
        return int(value) if value == int(value) else value


@final
class DurationType(GoType):
    """metav1.Duration; a pointer to one takes null for an absent field."""

    def __init__(self, *, is_pointer: bool) -> None:
        super().__init__("v1.Duration", Duration())
        self.reads_null = not is_pointer

    def read(self, value: Json, reading: Reading) -> Duration:
        # Anything but a duration ends the reading: upstream's type reads itself.
        if value is not None and not isinstance(value, str):
            raise JsonError(cannot_unmarshal(type_word(value), "string"))
        try:
            return Duration.parse(value or "")
        except DurationError as exc:
            raise JsonError(str(exc)) from exc

    def write(self, value: Duration) -> str:
        return str(value)


@final
class Bytes(GoType):
    """[]byte, which is base64 in JSON."""

    def __init__(self) -> None:
        super().__init__("[]uint8", b"")

    def read(self, value: Json, reading: Reading) -> bytes:
        if not isinstance(value, str):
            reading.does_not_fit(type_word(value), self.name)
            return b""
        try:
            return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError) as exc:
            reading.cannot_use(f"illegal base64 data: {exc}")
            return b""

    def write(self, value: bytes) -> str:
        return base64.b64encode(value).decode()


@final
class RawExtension(GoType):
    """runtime.RawExtension: JSON that is kept as it is, to be read later."""

    def __init__(self) -> None:
        super().__init__("runtime.RawExtension", None)

    def read(self, value: Json, reading: Reading) -> Json:
        return value

    def write(self, value: Json) -> object:
        return plain(value)


@final
class MapOf(GoType):
    """A map from strings to values of one type."""

    def __init__(self, value: GoType) -> None:
        super().__init__(f"map[string]{value.name}", {})
        self._value = value

    def read(self, value: Json, reading: Reading) -> dict[str, Any]:
        if not isinstance(value, dict):
            reading.does_not_fit(type_word(value), self.name)
            return {}
        found: dict[str, Any] = {}
        for key, member in members(value):
            if key in found:
                reading.forbid("duplicate", key)
            found[key] = self._value.read(member, reading) if member is not None else self._value.zero
        return found


class WrittenEmpty(list[Any]):
    """A list that was written, though empty: Go tells it from one that is not there, in error texts and in what it writes."""


def written_list(items: Iterable[Any]) -> list[Any]:
    """Returns a list that remembers that it was written, should it be empty."""
    return list(items) or WrittenEmpty()


def written_or_null(items: Sequence[Any]) -> Sequence[Any] | None:
    """Returns the list as Go writes it: an empty one that was not written is a nil slice, and null."""
    return items if items or isinstance(items, WrittenEmpty) else None


class ListOf(GoType):
    """A slice. `make` builds the value of the items that were read; null items are zero values."""

    def __init__(self, item: GoType, make: Callable[[Iterable[Any]], Any] = tuple, zero: object = ()) -> None:
        super().__init__(f"[]{item.name}", zero)
        self._item = item
        self._make = make

    def read(self, value: Json, reading: Reading) -> Any:
        if not isinstance(value, list):
            reading.does_not_fit(type_word(value), self.name)
            return self.zero
        of = self._item
        return self._make(
            reading.item(of, item, index) if item is not None or of.reads_null else of.zero for index, item in enumerate(value)
        )

    def write(self, value: Sequence[Any]) -> Any:
        return [self._item.write(item) for item in value]


@final
class ListOrNull(ListOf):
    """A slice that is always written, as null if it was not there. Its values are made by `written_list`."""

    def __init__(self, item: GoType) -> None:
        super().__init__(item, written_list, [])

    def write(self, value: Sequence[Any]) -> Any:
        return None if written_or_null(value) is None else super().write(value)


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct: its name in JSON, the attribute that holds it, and when it is left out of what is written.

    Attributes:
        zero_is_default: a zero value is as if the field were not there.
        omit_empty: zero, empty and absent values are not written.
        omit_none: absent values are not written, though zero ones are.
    """

    name: str
    attribute: str
    type: GoType
    zero_is_default: bool = False
    omit_empty: bool = False
    omit_none: bool = False


@final
class Struct(GoType):
    """A struct. `make` builds the value of the fields that were there, `get` takes one out again."""

    def __init__(self, name: str, fields: Iterable[Field], make: Callable[..., Any], get: Callable[[Any, str], Any] = getattr) -> None:
        super().__init__(name, make())
        self.fields = tuple(fields)
        self._by_name = {field.name: field for field in self.fields}
        self._short_name = name.rpartition(".")[2]
        self._make = make
        self._get = get

    def read(self, value: Json, reading: Reading) -> Any:
        if not isinstance(value, dict):
            reading.does_not_fit(type_word(value), self.name)
            return self.zero
        seen: set[str] = set()
        found: dict[str, Any] = {}
        for name, member in members(value):
            field = self._by_name.get(name)
            if field is None:
                reading.forbid("unknown", name)
                continue
            if name in seen:
                reading.forbid("duplicate", name)
            seen.add(name)
            if member is None and not field.type.reads_null:
                continue
            part = reading.field(field.type, member, self._short_name, name)
            if field.zero_is_default and part == field.type.zero:
                # The last field of a name counts, here to take back what an earlier one said.
                found.pop(field.attribute, None)
            else:
                found[field.attribute] = part
        return self._make(**found)

    def write(self, value: Any) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for field in self.fields:
            part = self._get(value, field.attribute)
            if (field.omit_none and part is None) or (field.omit_empty and part == field.type.zero):
                continue
            written[field.name] = None if part is None else field.type.write(part)
        return written


def read(of: GoType, value: Json) -> tuple[Any, list[str]]:
    """Returns the value of a document, and what is forbidden in it.

    Raises:
        JsonError: something has the wrong type.
    """
    reading = Reading()
    found = of.read(value, reading)
    if reading.mismatch:
        raise JsonError(reading.mismatch)
    return found, list(reading.problems)


def wire(
    of: GoType, *, name: str = "", zero_is_default: bool = False, omit_empty: bool = False, omit_none: bool = False
) -> Mapping[str, Any]:
    """Returns the metadata of a dataclass field; the name in JSON is the attribute's in camelCase if not given."""
    return {"type": of, "name": name, "zero_is_default": zero_is_default, "omit_empty": omit_empty, "omit_none": omit_none}


def struct_of(cls: Any, name: str) -> Struct:
    """Returns the type of a dataclass: its fields with metadata from `wire`, in order."""
    return Struct(name, fields_of(cls), cls)


def fields_of(cls: Any) -> list[Field]:
    """Returns the fields that a dataclass declares with `wire`."""
    fields = []
    for declared in dataclasses.fields(cls):
        options = dict(declared.metadata)
        if options:
            name = options.pop("name") or _camel(declared.name)
            fields.append(Field(name, declared.name, **options))
    return fields


def _camel(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _with_digits(value: Json) -> str:
    """Returns the word for a value of the wrong type, numbers with their digits."""
    if isinstance(value, Number):
        return f"number {value.text}"
    return f"number {value}" if isinstance(value, int) and not isinstance(value, bool) else type_word(value)


def _shortest_float32(number: float) -> float | None:
    """Returns the shortest decimal that means the same float32; None if there is none."""
    try:
        narrow: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return None
    shorter = (float(f"{narrow:.{digits}g}") for digits in range(1, 9))
    return next((decimal for decimal in shorter if struct.unpack("<f", struct.pack("<f", decimal))[0] == narrow), narrow)


STRING: Final = Scalar("string", str)
BOOL: Final = Scalar("bool", bool)
INT32: Final = Integer("int32", 2**31 - 1)
INT64: Final = Integer("int64", 2**63 - 1)
FLOAT32: Final = Float32()
DURATION: Final = DurationType(is_pointer=False)
DURATION_POINTER: Final = DurationType(is_pointer=True)
BYTES: Final = Bytes()
RAW: Final = RawExtension()
MAP_OF_STRINGS: Final = MapOf(STRING)

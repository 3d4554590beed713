"""How the fields of configuration values look in JSON: declarations, and types that `golang.schema` does not have.

`struct_of(cls)` makes the type of a dataclass whose fields say in their metadata (`wire(...)`) how they look in
JSON, so that a default stands beside the name and the type of what it fills. For any other class the fields are
declared in the call.
"""

import base64
import binascii
import dataclasses
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import msgspec

from extender.values.golang import schema
from extender.values.golang.json import Json, JsonError, cannot_unmarshal, type_word
from extender.values.golang.times import Duration, DurationError


@final
class Float32(schema.Scalar):
    """float32, kept as the shortest decimal that means the same float32."""

    def read(self, value: Json, reading: schema.Reading) -> float:
        number = None
        if isinstance(value, int | float) and not isinstance(value, bool) and not math.isinf(value):
            number = _shortest_float32(float(value))
        if number is None:
            reading.does_not_fit(schema.number_word(value), self.go_name)
            return 0.0
        return number

    def write(self, value: float) -> float:
        # Go writes whole numbers without a point.
        return int(value) if value == int(value) else value


@final
@dataclass(frozen=True, slots=True)
class DurationType(schema.GoType):
    """metav1.Duration, as a `Duration`; a pointer to one takes null for an absent field."""

    reads_null: bool

    @property
    def go_name(self) -> str:
        return "v1.Duration"

    def zero(self) -> Duration:
        return Duration()

    def read(self, value: Json, reading: schema.Reading) -> Duration:
        # Anything but a duration ends the reading, because upstream's type unmarshals itself.
        if value is not None and not isinstance(value, str):
            raise JsonError(cannot_unmarshal(type_word(value), "string"))
        try:
            return Duration.parse(value or "")
        except DurationError as exc:
            raise JsonError(str(exc)) from exc

    def write(self, value: Duration) -> str:
        return str(value)


@final
class Bytes(schema.Scalar):
    """[]byte, as bytes; base64 in JSON."""

    def zero(self) -> bytes:
        return b""

    def read(self, value: Json, reading: schema.Reading) -> bytes:
        if not isinstance(value, str):
            reading.does_not_fit(type_word(value), self.go_name)
            return b""
        try:
            return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError) as exc:
            reading.cannot_use(f"illegal base64 data: {exc}")
            return b""

    def write(self, value: bytes) -> str:
        return base64.b64encode(value).decode()


FLOAT32: Final = Float32(schema.Kind.FLOAT32)
DURATION: Final = DurationType(reads_null=True)
DURATION_POINTER: Final = DurationType(reads_null=False)
BYTES: Final = Bytes(schema.Kind.BYTES)
RAW: Final = schema.Preserve()
STRINGS: Final = schema.ListOf(schema.STRING, make=tuple)


def wire(
    go_type: schema.GoType,
    presence: schema.Presence = schema.Presence.ZERO,
    *,
    name: str = "",
    zero_is_default: bool = False,
) -> Mapping[str, Any]:
    """Returns the metadata of a dataclass field.

    Arguments:
        name: in JSON; the attribute's in camelCase if not given.
        zero_is_default: a zero value is as if the field were not there.
    """
    return {"name": name, "field": schema.Field(go_type, presence=presence, zero_is_default=zero_is_default)}


def struct_of(cls: Any, name: str = "", /, **declared: Mapping[str, Any]) -> schema.Struct:
    """Returns the type of a class: its fields in order, with metadata from `wire`, here or declared in the call.

    Upstream's type is called `name`; without one it is in v1, and called like the class.
    """
    return schema.Struct(name or f"v1.{cls.__name__}", fields_of(cls, **declared), make=cls)


def fields_of(cls: Any, **declared: Mapping[str, Any]) -> dict[str, schema.Field]:
    """Returns the fields of a class, see `struct_of`, by their names in JSON."""
    declared = declared or {field.name: field.metadata for field in dataclasses.fields(cls) if field.metadata}
    return {
        metadata["name"] or _camel(attribute): msgspec.structs.replace(metadata["field"], attribute=attribute)
        for attribute, metadata in declared.items()
    }


def _camel(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _shortest_float32(number: float) -> float | None:
    try:
        narrow: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return None
    shorter = (float(f"{narrow:.{digits}g}") for digits in range(1, 9))
    return next(
        (decimal for decimal in shorter if struct.unpack("<f", struct.pack("<f", decimal))[0] == narrow), narrow
    )

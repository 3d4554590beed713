"""The published API types: the fields of each kind in order, with their properties, from a generated table.

`make schema TYPES=...` writes the table; `tools/generate_schema.py` says how. It is read at first use.

Upstream: the types.go files of k8s.io/api and of apimachinery/pkg/apis/meta/v1.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Literal, final

import msgspec

from extender.rules.api_resources import RESOURCES, Resource
from extender.values.golang.json import Json, JsonError, marshal
from extender.values.golang.schema import (
    Field,
    GoType,
    Kind,
    ListOf,
    MapOf,
    Presence,
    Preserve,
    Reading,
    Scalar,
    Struct,
    read_as,
)
from extender.values.objects.quantity import QuantityError, quantity_of

TABLE: Final = Path(__file__).with_name("kubernetes-1.36.json")


@final
class QuantityType(Scalar):
    """resource.Quantity, which is kept as its canonical text."""

    def read(self, value: Json, reading: Reading) -> str:
        # The type reads itself: anything but a quantity ends the reading.
        try:
            return _canonical(
                value if isinstance(value, str | int | float) and not isinstance(value, bool) else marshal(value)
            )
        except QuantityError as exc:
            raise JsonError(str(exc)) from exc


@lru_cache(maxsize=32768)
def _canonical(raw: str | int | float) -> str:
    return str(quantity_of(raw))


_PACKAGES: Final = {resource.group: resource.group.partition(".")[0] or "core" for resource in RESOURCES}
"""The packages of k8s.io/api, by the API group that each defines; the table has no types of other groups."""

_META: Final = "meta/v1"
_TYPE_META: Final = ("kind", "apiVersion")
_META_KINDS: Final = frozenset({"DeleteOptions", "Status"})
_SCALARS: Final[Mapping[str, GoType]] = {
    **{
        kind.value: Scalar(kind) for kind in (Kind.STRING, Kind.BOOL, Kind.INT32, Kind.INT64, Kind.UINT32, Kind.FLOAT64)
    },
    "[]byte": Scalar(Kind.BYTES),
    "resource.Quantity": QuantityType(Kind.QUANTITY),
    "intstr.IntOrString": Scalar(Kind.INT_OR_STRING),
    "meta/v1.Time": Scalar(Kind.TIME),
    "meta/v1.MicroTime": Scalar(Kind.MICRO_TIME),
    "meta/v1.Duration": Scalar(Kind.DURATION),
    "runtime.RawExtension": Preserve(),
    "meta/v1.FieldsV1": Preserve("v1.FieldsV1"),
}


def type_of(resource: Resource) -> Struct:
    return lookup(resource.group, resource.version, resource.kind)


def read(resource: Resource, obj: Json) -> tuple[dict[str, Any], list[str]]:
    """Returns the object as the API stores it, and the problems for a strict reader: `unknown field "spec.foo"`.

    The object has known fields only, in upstream's order, quantities and times in canonical form, and empty fields left
    out or filled in as Go does. Raises JsonError if a value does not fit its field.
    """
    return read_as(type_of(resource), obj)


def lookup(group: str, version: str, kind: str) -> Struct:
    """Returns the type of a kind. A kind outside the table has metadata and any other fields."""
    struct = _types().get(type_name(group, version, kind)) if group in _PACKAGES else None
    return struct or _open_type(group, version, kind)


@lru_cache(maxsize=1024)
def _open_type(group: str, version: str, kind: str) -> Struct:
    of_any = _types()["core/v1.ConfigMap"].fields
    fields = {name: of_any[name] for name in (*_TYPE_META, "metadata")}
    return Struct(".".join((*reversed(group.split(".")), version, kind)), fields, rest=Field(Preserve()))


def find(group: str, version: str, kind: str) -> Struct | None:
    """Returns the type of a kind; None if the table lacks it, or has it as a part of objects only."""
    struct = _types().get(type_name(group, version, kind)) if group in _PACKAGES else None
    return struct if struct is not None and tuple(struct.fields)[:2] == _TYPE_META else None


def type_name(group: str, version: str, kind: str) -> str:
    """Returns the name of a type in the table: `core/v1.Pod`. Raises KeyError if it has no types of the group."""
    package = _META if kind in _META_KINDS and not group else f"{_PACKAGES[group]}/{version}"
    return f"{package}.{kind}"


@final
class _FieldRow(msgspec.Struct, rename="camel"):
    """A row of the table for a field. Defaults apply to properties that the table leaves out."""

    name: str
    type: str
    protobuf: tuple[int, ...] = ()
    presence: Presence = Presence.OMIT
    required: bool = False
    default: str | int | bool | None = None
    list_type: Literal["atomic", "set", "map"] = "atomic"
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    patch_strategy: str = ""
    patch_key: str | None = None


@final
class _StructRow(msgspec.Struct):
    fields: list[_FieldRow]
    atomic: bool = False


@final
class _Table(msgspec.Struct):
    aliases: dict[str, str]
    structs: dict[str, _StructRow]


@cache
def _types() -> Mapping[str, Struct]:
    table = msgspec.json.decode(TABLE.read_bytes(), type=_Table)
    loader = _Loader(table)
    return {name: loader.struct(name) for name in table.structs}


@final
class _Loader:
    def __init__(self, table: _Table) -> None:
        self._table = table
        self._structs: dict[str, Struct] = {}

    def struct(self, name: str) -> Struct:
        if name not in self._structs:
            row = self._table.structs[name]
            fields = {field.name: self._field(field) for field in row.fields}
            self._structs[name] = Struct(_openapi_name(name), fields, row.atomic)
        return self._structs[name]

    def _field(self, row: _FieldRow) -> Field:
        type_ = self._type(row.type)
        if isinstance(type_, ListOf):
            type_ = replace(type_, list_type=row.list_type, keys=row.list_keys)
        elif row.map_type and isinstance(type_, MapOf | Struct):
            type_ = replace(type_, atomic=row.map_type == "atomic")
        return Field(type_, row.patch_key, row.patch_strategy, row.required, row.presence, row.default, row.protobuf)

    def _type(self, spelling: str) -> GoType:
        if spelling in _SCALARS:
            return _SCALARS[spelling]
        if spelling in self._table.structs:
            return self.struct(spelling)
        if spelling.startswith("[]"):
            return ListOf(self._type(spelling[2:]))
        if spelling.startswith("map["):
            key, _, value = spelling[len("map[") :].partition("]")
            is_plain = key == "string" and value not in self._table.aliases
            return MapOf(self._type(value), go_type="" if is_plain else f"map[{_short(key)}]{_short(value)}")
        target = self._type(self._table.aliases[spelling])
        return replace(target, go_type=_short(spelling)) if isinstance(target, Scalar | MapOf) else target


def _openapi_name(name: str) -> str:
    package, _, kind = name.rpartition(".")
    where = "apimachinery.pkg.apis" if package == _META else "api"
    return f"io.k8s.{where}.{package.replace('/', '.')}.{kind}"


def _short(name: str) -> str:
    """Returns a name as Go prints it, without the path of its package."""
    return name.rpartition("/")[2]

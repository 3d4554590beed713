"""API types as OpenAPI schemas, with the extensions that Kubernetes' clients use.

The versions of OpenAPI differ in references, and in types that may be a number or a text.

Upstream: k8s.io/kube-openapi/pkg/generators.
"""

from collections.abc import Mapping
from typing import Any, Final

from extender.rules.schema.api_types import lookup
from extender.values.golang.schema import Field, GoType, Kind, ListOf, MapOf, Scalar, Struct

Schema = dict[str, Any]
VERSION_2: Final = 2
VERSION_3: Final = 3

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
TIME: Final = f"{_META}.Time"
MICRO_TIME: Final = f"{_META}.MicroTime"
DURATION: Final = f"{_META}.Duration"
PATCH: Final = f"{_META}.Patch"
LIST_META: Final = f"{_META}.ListMeta"
STATUS: Final = f"{_META}.Status"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
OBJECT_REFERENCE: Final = "io.k8s.api.core.v1.ObjectReference"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

_PLAIN: Final[Mapping[Kind, Schema]] = {
    Kind.STRING: {"type": "string"},
    Kind.BOOL: {"type": "boolean"},
    Kind.INT32: {"type": "integer", "format": "int32"},
    Kind.INT64: {"type": "integer", "format": "int64"},
    Kind.UINT32: {"type": "integer", "format": "int64"},
    Kind.FLOAT64: {"type": "number", "format": "double"},
    Kind.BYTES: {"type": "string", "format": "byte"},
}
_NAMED: Final[Mapping[Kind, str]] = {
    Kind.QUANTITY: QUANTITY,
    Kind.TIME: TIME,
    Kind.MICRO_TIME: MICRO_TIME,
    Kind.DURATION: DURATION,
    Kind.INT_OR_STRING: INT_OR_STRING,
}
_EITHER: Final = {"oneOf": [{"type": "string"}, {"type": "number"}]}
_QUANTITY_SAYS: Final = "An exact amount, such as 500m, 1.5Gi or 3e2."


def basics(version: int) -> dict[str, Schema]:
    """Returns the schemas of the types other than Structs, by name."""
    is_three = version == VERSION_3
    quantity: Schema = {"description": _QUANTITY_SAYS} | (_EITHER if is_three else {"type": "string"})
    number_or_text: Schema = {"description": "A number, or a text such as 25%.", "format": "int-or-string"}
    number_or_text |= {"oneOf": [{"type": "integer"}, {"type": "string"}]} if is_three else {"type": "string"}
    return {
        QUANTITY: quantity,
        INT_OR_STRING: number_or_text,
        TIME: {"description": "A moment in RFC 3339, with whole seconds.", "type": "string", "format": "date-time"},
        MICRO_TIME: {
            "description": "A moment in RFC 3339, with microseconds.",
            "type": "string",
            "format": "date-time",
        },
        DURATION: {"description": "A span of time, such as 1h30m.", "type": "string"},
        PATCH: {
            "description": "A change to an object, in one of the forms that its media type names.",
            "type": "object",
        },
    }


def reference(name: str, version: int) -> Schema:
    """Returns a reference to a schema of the same document."""
    where = "components/schemas" if version == VERSION_3 else "definitions"
    return {"$ref": f"#/{where}/{name}"}


def definition(struct: Struct, version: int) -> Schema:
    properties = {name: _property(field, version) for name, field in sorted(struct.fields.items())}
    schema: Schema = {"type": "object"}
    if properties:
        schema["properties"] = properties
    required = sorted(name for name, field in struct.fields.items() if field.required)
    if required:
        schema["required"] = required
    if struct.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if struct.rest is not None:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return schema


def mentioned(root: GoType) -> list[Struct]:
    """Returns the Structs in a type, itself included, each once."""
    structs: dict[str, Struct] = {}
    _collect(root, structs)
    return list(structs.values())


def _collect(type_: GoType, structs: dict[str, Struct]) -> None:
    if isinstance(type_, ListOf):
        _collect(type_.item, structs)
    elif isinstance(type_, MapOf):
        _collect(type_.value, structs)
    elif isinstance(type_, Struct) and type_.name not in structs:
        # A field may refer to a granular variant of an atomic type.
        structs[type_.name] = lookup("", "v1", "ObjectReference") if type_.name == OBJECT_REFERENCE else type_
        for field in type_.fields.values():
            _collect(field.type, structs)


def _property(field: Field, version: int) -> Schema:
    schema = dict(_schema(field.type, version))
    if "$ref" in schema and version == VERSION_3:
        # In version 3, members beside a $ref are ignored.
        schema = {"allOf": [schema]}
    if field.default is not None:
        schema["default"] = field.default
    if field.patch_key is not None:
        schema["x-kubernetes-patch-merge-key"] = field.patch_key
    if field.patch_strategy:
        schema["x-kubernetes-patch-strategy"] = field.patch_strategy
    if isinstance(field.type, Struct) and field.type.name == OBJECT_REFERENCE and not field.type.atomic:
        schema["x-kubernetes-map-type"] = "granular"
    return schema


def _schema(type_: GoType, version: int) -> Schema:
    if isinstance(type_, Struct):
        return reference(type_.name, version)
    if isinstance(type_, Scalar):
        return _scalar(type_, version)
    if isinstance(type_, ListOf):
        schema: Schema = {
            "type": "array",
            "items": _schema(type_.item, version),
            "x-kubernetes-list-type": type_.list_type,
        }
        return schema | ({"x-kubernetes-list-map-keys": list(type_.keys)} if type_.keys else {})
    if isinstance(type_, MapOf):
        values: Schema = {"type": "object", "additionalProperties": _schema(type_.value, version)}
        return values | ({"x-kubernetes-map-type": "atomic"} if type_.atomic else {})
    return {"type": "object"}


def _scalar(scalar: Scalar, version: int) -> Schema:
    if scalar.kind in _NAMED:
        return reference(_NAMED[scalar.kind], version)
    return _PLAIN[scalar.kind]

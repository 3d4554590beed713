"""OpenAPI 2 in protobuf, the only form in which kubectl accepts it to validate the items of a List.

Upstream: google/gnostic-models, openapiv2/OpenAPIv2.proto.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

MEDIA_TYPES: Final = (
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
)
"""The media type that kubectl requests, and the one of the answer, without the @ that media types do not allow."""

Write = Callable[[int, Any], bytes]
"""The number of a field and its value -> the encoded field."""
Form = Mapping[str, tuple[int, Write]]
"""The members of a JSON document -> their numbers and writers. `x-` stands for all extensions."""


def encoded(document: Mapping[str, Any]) -> bytes:
    """Returns an OpenAPI 2 document as `openapi.v2.Document`. Raises KeyError for an unknown member."""
    return _message(_DOCUMENT, document)


def _message(form: Form, value: Mapping[str, Any]) -> bytes:
    parts = []
    for member, content in value.items():
        if member.startswith("x-"):
            number, _ = form["x-"]
            parts.append(_bytes(number, _named(member, _any(content))))
        else:
            number, write = form[member]
            parts.append(write(number, content))
    return b"".join(parts)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _texts(number: int, value: list[str]) -> bytes:
    return b"".join(_text(number, text) for text in value)


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3) + _varint(value)


def _any(value: object) -> bytes:
    """Returns any value as YAML, of which JSON is a subset."""
    return _bytes(2, orjson.dumps(value))


def _one(number: int, value: object) -> bytes:
    return _bytes(number, _any(value))


def _many(number: int, value: list[object]) -> bytes:
    return b"".join(_one(number, member) for member in value)


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _bytes(2, value)


def _schema(number: int, value: Mapping[str, Any]) -> bytes:
    return _bytes(number, _message(_SCHEMA, value))


def _schema_within(number: int, value: Mapping[str, Any]) -> bytes:
    """Returns a schema in a place where upstream also allows other messages."""
    return _bytes(number, _schema(1, value))


def _schemas(number: int, value: Mapping[str, Any]) -> bytes:
    return _bytes(
        number, b"".join(_bytes(1, _named(name, _message(_SCHEMA, schema))) for name, schema in value.items())
    )


def _type(number: int, value: str) -> bytes:
    return _bytes(number, _text(1, value))


def _info(number: int, value: Mapping[str, Any]) -> bytes:
    return _bytes(number, _message(_INFO, value))


def _paths(number: int, value: Mapping[str, Any]) -> bytes:
    return _bytes(number, b"".join(_bytes(2, _named(path, _message(_PATH_ITEM, item))) for path, item in value.items()))


def _operation(number: int, value: Mapping[str, Any]) -> bytes:
    return _bytes(number, _message(_OPERATION, value))


def _parameters(number: int, value: list[Mapping[str, Any]]) -> bytes:
    return b"".join(_bytes(number, _bytes(1, _parameter(parameter))) for parameter in value)


def _parameter(value: Mapping[str, Any]) -> bytes:
    where = value["in"]
    if where == "body":
        return _bytes(1, _message(_IN_BODY, value))
    kind, form = {"query": (3, _IN_QUERY), "path": (4, _IN_PATH)}[where]
    return _bytes(2, _bytes(kind, _message(form, value)))


def _responses(number: int, value: Mapping[str, Any]) -> bytes:
    return _bytes(
        number,
        b"".join(_bytes(1, _named(code, _bytes(1, _message(_RESPONSE, response)))) for code, response in value.items()),
    )


_INFO: Final[Form] = {"title": (1, _text), "version": (2, _text)}
_SCHEMA: Final[Form] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "description": (4, _text),
    "default": (5, _one),
    "required": (19, _texts),
    "enum": (20, _many),
    "additionalProperties": (21, _schema_within),
    "type": (22, _type),
    "items": (23, _schema_within),
    "properties": (25, _schemas),
    "x-": (31, _one),
}
_IN_BODY: Final[Form] = {"name": (2, _text), "in": (3, _text), "required": (4, _flag), "schema": (5, _schema)}
_IN_QUERY: Final[Form] = {
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (6, _text),
    "uniqueItems": (20, _flag),
}
_IN_PATH: Final[Form] = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (5, _text),
    "uniqueItems": (19, _flag),
}
_RESPONSE: Final[Form] = {"description": (1, _text), "schema": (2, _schema_within)}
_OPERATION: Final[Form] = {
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "x-": (13, _one),
}
_PATH_ITEM: Final[Form] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}
_DOCUMENT: Final[Form] = {"swagger": (1, _text), "info": (2, _info), "paths": (8, _paths), "definitions": (9, _schemas)}

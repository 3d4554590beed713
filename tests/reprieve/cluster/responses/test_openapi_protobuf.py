"""OpenAPI 2 says the same in protobuf as in JSON.

The tables below are read by hand from gnostic's messages, and know of nothing that writes.
"""

import json

import orjson
import pytest

from reprieve.cluster.responses import openapi
from reprieve.cluster.responses.openapi import openapi_protobuf

IN_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def fields(data):
    """(number, bytes or whole number) of each field of a message."""
    place, entries = 0, []
    while place < len(data):
        key, place = varint(data, place)
        value, place = varint(data, place)
        if key & 7 == 2:
            value, place = data[place : place + value], place + value
        entries.append((key >> 3, value))
    return entries


def varint(data, place):
    value = shift = 0
    while data[place] & 0x80:
        value, place, shift = value | (data[place] & 0x7F) << shift, place + 1, shift + 7
    return value | data[place] << shift, place + 1


def only(data):
    """The only field of a message."""
    ((number, value),) = fields(data)
    return number, value


def text(value):
    return value.decode()


def anything(value):
    number, yaml = only(value)
    assert number == 2
    return json.loads(yaml)


def one_of(number, read):
    """What stands in a message under its only field."""

    def reader(value):
        field_number, inner = only(value)
        assert field_number == number
        return read(inner)

    return reader


def named_value(value, read):
    (one, name), (two, inner) = fields(value)
    assert (one, two) == (1, 2)
    return name.decode(), read(inner)


def by_name(number, read):
    def reader(value):
        assert {field_number for field_number, _ in fields(value)} <= {number}
        return dict(named_value(inner, read) for _, inner in fields(value))

    return reader


def message(singles, lists=None, extensions=None):
    def reader(value):
        values = {}
        for number, inner in fields(value):
            if number == extensions:
                name, extension = named_value(inner, anything)
                values[name] = extension
            elif number in singles:
                name, read = singles[number]
                assert name not in values
                values[name] = read(inner)
            else:
                name, read = lists[number]
                values.setdefault(name, []).append(read(inner))
        return values

    return reader


def schema(value):
    return message(
        {
            1: ("$ref", text), 2: ("format", text), 4: ("description", text), 5: ("default", anything),
            21: ("additionalProperties", one_of(1, schema)), 22: ("type", one_of(1, text)), 23: ("items", one_of(1, schema)),
            25: ("properties", by_name(1, schema)),
        },
        {19: ("required", text), 20: ("enum", anything)},
        31,
    )(value)  # fmt: skip


def parameter(value):
    where, inner = only(value)
    if where == 1:
        return message({2: ("name", text), 3: ("in", text), 4: ("required", bool), 5: ("schema", schema)})(inner)
    kind, sub_schema = only(inner)
    common = {2: ("in", text), 3: ("description", text), 4: ("name", text)}
    of_kind = {
        3: {6: ("type", text), 20: ("uniqueItems", bool)},
        4: {1: ("required", bool), 5: ("type", text), 19: ("uniqueItems", bool)},
    }
    return message(common | of_kind[kind])(sub_schema)


response = message({1: ("description", text), 2: ("schema", one_of(1, schema))})
operation = message(
    {3: ("description", text), 5: ("operationId", text), 9: ("responses", by_name(1, one_of(1, response)))},
    {6: ("produces", text), 7: ("consumes", text), 8: ("parameters", one_of(1, parameter))},
    13,
)
path_item = message(
    {
        2: ("get", operation),
        3: ("put", operation),
        4: ("post", operation),
        5: ("delete", operation),
        8: ("patch", operation),
    },
    {9: ("parameters", one_of(1, parameter))},
)
document = message(
    {
        1: ("swagger", text),
        2: ("info", message({1: ("title", text), 2: ("version", text)})),
        8: ("paths", by_name(2, path_item)),
        9: ("definitions", by_name(1, schema)),
    }
)


def without_empty_lists(value):
    """Protobuf does not tell an empty list from none."""
    if isinstance(value, dict):
        return {name: without_empty_lists(item) for name, item in value.items() if item != []}
    return [without_empty_lists(item) for item in value] if isinstance(value, list) else value


def test_protobuf_document_equals_the_json_document():
    in_protobuf, in_json = openapi.answer("/openapi/v2", IN_PROTOBUF), openapi.answer("/openapi/v2")
    assert in_protobuf is not None and in_json is not None

    read = document(in_protobuf[1])

    assert read == without_empty_lists(orjson.loads(in_json[1]))


def test_unsupported_field_raises_instead_of_being_dropped():
    with pytest.raises(KeyError, match="externalDocs"):
        openapi_protobuf.encoded({"swagger": "2.0", "externalDocs": {"url": "https://example.com"}})

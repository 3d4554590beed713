"""What the table of API types says of protobuf: every field has a number, which leads to it alone."""

import pytest

from extender.rules.api_resources import RESOURCES
from extender.rules.schema import api_types
from extender.values.golang.schema import ListOf, MapOf, Struct

TYPE_META = {"kind", "apiVersion"}
"""Said by the envelope of a message."""


def inner(api_type):
    """The Struct in a type, if there is one."""
    while isinstance(api_type, (ListOf, MapOf)):
        api_type = api_type.item if isinstance(api_type, ListOf) else api_type.value
    return api_type if isinstance(api_type, Struct) else None


def structs():
    """Those of every kind that is served, by name."""
    struct_by_name, waiting = {}, [api_types.lookup(*kind) for resource in RESOURCES for kind in resource.kinds]
    while waiting:
        struct = waiting.pop()
        if struct.name not in struct_by_name:
            struct_by_name[struct.name] = struct
            waiting += filter(None, (inner(field.type) for field in struct.fields.values()))
    return struct_by_name


STRUCTS = structs()


@pytest.mark.parametrize("message", STRUCTS)
def test_every_field_has_a_number_of_its_own(message):
    numbers = {name: field.protobuf for name, field in STRUCTS[message].fields.items() if field.protobuf}
    hidden = {way[:length] for way in numbers.values() for length in range(1, len(way))}

    assert len(set(numbers.values())) == len(numbers)
    assert not hidden & set(numbers.values())
    assert set(STRUCTS[message].fields) - set(numbers) <= TYPE_META


def test_fields_of_embedded_structs_are_found_through_their_number():
    fields = STRUCTS["io.k8s.api.core.v1.Volume"].fields

    assert [fields[name].protobuf for name in ("name", "hostPath", "ephemeral")] == [(1,), (2, 1), (2, 29)]

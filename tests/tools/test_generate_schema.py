"""The table of API types is what the generator makes of the published types."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from extender.rules.schema.api_types import TABLE
from tools.generate_schema import read, served, table, text

PUBLISHED = os.environ.get("REPRIEVE_API_TYPES", "")
"""A file with the published types, to hold the table of the package against."""

SAMPLE: dict[str, Any] = {
    "core/v1.RecordStore": {
        "fields": [
            {"go": "TypeMeta", "json": "", "inline": True, "type": "metav1.TypeMeta"},
            {"go": "Spec", "json": "spec", "omitempty": True, "optional": True, "protobuf": 2, "type": "ShelfSpec"},
        ]
    },
    "core/v1.ShelfSpec": {
        "fields": [
            {"go": "Name", "json": "name", "protobuf": 1, "type": "string"},
            {"go": "Board", "json": "", "inline": True, "protobuf": 2, "type": "Board"},
            {"go": "Books", "json": "books", "listMapKeys": ["isbn"], "listType": "map", "omitempty": True, "optional": True,
             "patchMergeKey": "isbn", "patchStrategy": "merge", "protobuf": 3, "type": "[]Book"},
            {"go": "Labels", "json": "labels", "mapType": "atomic", "optional": True, "protobuf": 4, "type": "map[Word]string"},
            {"go": "Hidden", "json": "-", "protobuf": 5, "type": "string"},
        ]
    },
    "core/v1.Board": {
        "fields": [
            {"go": "Width", "json": "width", "omitempty": True, "optional": True, "protobuf": 7, "type": "*int32"},
            {"go": "Since", "json": "since", "optional": True, "protobuf": 8, "type": "metav1.Time"},
            {"go": "Load", "json": "load", "omitempty": True, "optional": True, "protobuf": 9, "type": "resource.Quantity"},
            {"go": "Owner", "json": "owner", "protobuf": 10, "type": "*metav1.Owner"},
        ]
    },
    "core/v1.Book": {"fields": [{"go": "ISBN", "json": "isbn", "default": '"none"', "optional": True, "protobuf": 1, "type": "Word"}]},
    "core/v1.Word": {"alias": "string"},
    "core/v1.Unreachable": {"fields": []},
    "meta/v1.TypeMeta": {
        "fields": [
            {"go": "Kind", "json": "kind", "omitempty": True, "optional": True, "type": "string"},
            {"go": "APIVersion", "json": "apiVersion", "omitempty": True, "optional": True, "type": "string"},
        ]
    },
    "meta/v1.Owner": {"fields": [{"go": "UID", "json": "uid", "protobuf": 1, "type": "types.UID"}]},
}  # fmt: skip


@pytest.fixture(scope="module")
def structs():
    return table(SAMPLE, ["core/v1.RecordStore"])["structs"]


def fields(struct):
    return {field["name"]: field for field in struct["fields"]}


def test_types_reached_from_a_root_are_in_the_table(structs):
    schema_table = table(SAMPLE, ["core/v1.RecordStore"])

    assert list(structs) == ["core/v1.Book", "core/v1.RecordStore", "core/v1.ShelfSpec", "meta/v1.Owner"]
    assert schema_table["aliases"] == {"core/v1.Word": "string", "types.UID": "string"}


def test_embedded_structs_are_dissolved(structs):
    assert [*fields(structs["core/v1.RecordStore"])] == ["kind", "apiVersion", "spec"]
    assert {name: field.get("protobuf") for name, field in fields(structs["core/v1.ShelfSpec"]).items()} == {
        "name": (1,), "width": (2, 7), "since": (2, 8), "load": (2, 9), "owner": (2, 10), "books": (3,), "labels": (4,),
    }  # fmt: skip


def test_types_are_spelt_in_full(structs):
    types = {name: field["type"] for struct in structs.values() for name, field in fields(struct).items()}

    assert types == {
        "kind": "string", "apiVersion": "string", "spec": "core/v1.ShelfSpec", "name": "string", "width": "int32",
        "since": "meta/v1.Time", "load": "resource.Quantity", "owner": "meta/v1.Owner", "books": "[]core/v1.Book",
        "labels": "map[core/v1.Word]string", "isbn": "core/v1.Word", "uid": "types.UID",
    }  # fmt: skip


def test_presence_is_what_go_writes_of_an_empty_value(structs):
    presences = {
        name: field.get("presence", "omit") for struct in structs.values() for name, field in fields(struct).items()
    }

    assert presences == {
        "kind": "omit", "apiVersion": "omit", "spec": "zero", "name": "zero", "width": "keep", "since": "null",
        "load": "zero",
        "owner": "null", "books": "omit", "labels": "null", "isbn": "zero", "uid": "zero",
    }  # fmt: skip


def test_markers_are_kept(structs):
    spec = fields(structs["core/v1.ShelfSpec"])

    assert spec["books"] == {
        "name": "books", "type": "[]core/v1.Book", "protobuf": (3,),
        "listType": "map", "listKeys": ["isbn"], "patchStrategy": "merge", "patchKey": "isbn",
    }  # fmt: skip
    assert spec["labels"]["mapType"] == "atomic"
    assert fields(structs["core/v1.Book"])["isbn"]["default"] == "none"
    assert [name for name, field in spec.items() if field.get("required")] == ["name", "owner"]


def test_a_type_that_is_not_published_is_not_made_up():
    with pytest.raises(KeyError, match=r"core/v1\.Shed"):
        table(SAMPLE, ["core/v1.Shed"])


def test_the_text_has_a_line_for_each_field(structs):
    schema_table = table(SAMPLE, ["core/v1.RecordStore"])
    table_text = text(schema_table)

    assert json.loads(table_text) == json.loads(json.dumps(schema_table))
    assert (
        table_text.count('{"name": ')
        == len([line for line in table_text.splitlines() if line.strip().startswith('{"name": ')])
        == 12
    )


@pytest.mark.skipif(not PUBLISHED, reason="REPRIEVE_API_TYPES does not name a file with the published types")
def test_the_table_of_the_package_is_up_to_date():
    assert text(table(read(Path(PUBLISHED)), served())) == TABLE.read_text()

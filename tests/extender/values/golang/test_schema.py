"""Objects are read and kept as Go would write them."""

from typing import Any

from extender.values.golang.schema import INT32, STRING, Field, ListOf, Presence, Struct, read_as
from tests.kit.tables import cases

INNER = Struct("example.v1.Inner", {"port": Field(INT32, presence=Presence.ZERO)})
OUTER = Struct(
    "example.v1.Outer",
    {
        "omitted": Field(STRING),
        "pointer": Field(INT32, presence=Presence.KEEP),
        "written": Field(STRING, presence=Presence.ZERO),
        "struct": Field(INNER, presence=Presence.ZERO),
        "slice": Field(ListOf(STRING), presence=Presence.NULL),
    },
)
EMPTY = {"written": "", "struct": {"port": 0}, "slice": None}


@cases(
    "document, expected",
    ("what is absent is written where Go always writes it", {}, EMPTY),
    ("null is absent", dict.fromkeys(OUTER.fields), EMPTY),
    ("an empty text is as good as absent", {"omitted": ""}, EMPTY),
    ("a zero behind a pointer is not", {"pointer": 0}, {"pointer": 0, **EMPTY}),
    (
        "what is there is kept, in the order of the fields",
        {"slice": ["a"], "omitted": "b"},
        {"omitted": "b", **EMPTY, "slice": ["a"]},
    ),
    ("what is unknown is dropped", {"other": 1}, EMPTY),
)
def test_fields_that_are_there_and_fields_that_are_not(document: dict[str, Any], expected: dict[str, Any]) -> None:
    value, _ = read_as(OUTER, document)

    assert (value, [*value]) == (expected, [*expected])

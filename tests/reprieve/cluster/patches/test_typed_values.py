"""What differs between two values, what a value sets, and what becomes of them when one is laid over the other."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from extender.values.golang.schema import Field, Kind, ListOf, MapOf, Scalar, Struct
from reprieve.cluster.patches import field_sets, typed_values
from tests.kit.tables import cases

INT32, STRING = Scalar(Kind.INT32), Scalar(Kind.STRING)
POINT = Struct("Point", {"x": Field(INT32), "y": Field(INT32)}, atomic=True)
PORT = Struct("Port", {"port": Field(INT32), "protocol": Field(STRING, default="TCP"), "name": Field(STRING)})
THING = Struct(
    "Thing",
    {
        "text": Field(STRING),
        "labels": Field(MapOf(STRING)),
        "point": Field(POINT),
        "args": Field(ListOf(STRING)),
        "tags": Field(ListOf(STRING, "set")),
        "ports": Field(ListOf(PORT, "map", ("port", "protocol"))),
        "inner": Field(Struct("Inner", {"text": Field(STRING)})),
    },
)


def key_of(port: Any) -> tuple[int, str]:
    return port["port"], port.get("protocol", "TCP")


WORDS = st.sampled_from(("a", "b"))
NUMBERS = st.integers(1, 3)
PORTS = st.fixed_dictionaries({"port": NUMBERS}, optional={"protocol": st.sampled_from(("TCP", "UDP")), "name": WORDS})
THINGS = st.fixed_dictionaries(
    {},
    optional={
        "text": WORDS,
        "labels": st.dictionaries(WORDS, WORDS, min_size=1),
        "point": st.fixed_dictionaries({"x": NUMBERS}, optional={"y": NUMBERS}),
        "args": st.lists(WORDS, min_size=1, max_size=2),
        "tags": st.lists(st.sampled_from(("a", "b", "c")), min_size=1, unique=True),
        "ports": st.lists(PORTS, min_size=1, max_size=4, unique_by=key_of),
        "inner": st.fixed_dictionaries({"text": WORDS}),
    },
)


def members(fields):
    return set(field_sets.paths(fields))


def all_of(value):
    return members(field_sets.below(typed_values.everything(THING, value)))


@given(THINGS, THINGS)
def test_a_comparison_tells_what_came_went_and_changed(old, new):
    comparison = typed_values.compare(THING, old, new)

    assert members(comparison.added) == all_of(new) - all_of(old)
    assert members(comparison.removed) == all_of(old) - all_of(new)
    assert members(comparison.modified) <= all_of(old) & all_of(new)
    assert (old == new) <= (not members(comparison.modified))


@given(THINGS, THINGS)
def test_merged_value_has_all_applied_members_and_loses_none(live, applied):
    merged = typed_values.merge(THING, live, applied)

    gained, lost = typed_values.compare(THING, applied, merged), typed_values.compare(THING, live, merged)
    assert not gained.modified
    assert not gained.removed
    assert not lost.removed
    assert all_of(merged) == all_of(live) | all_of(applied)


@given(THINGS)
def test_applying_the_same_changes_nothing(value):
    assert typed_values.merge(THING, value, value) == value


@given(THINGS, THINGS)
def test_removing_what_was_set_leaves_the_rest(live, applied):
    merged = typed_values.merge(THING, live, applied)
    named_fields = typed_values.with_named_fields(THING, typed_values.fields_of(THING, applied))

    rest = typed_values.remove(THING, merged, named_fields)

    assert members(typed_values.fields_of(THING, rest)) <= members(typed_values.fields_of(THING, merged)) - members(
        named_fields
    )


def test_value_sets_its_leaves_and_its_distinguishable_items():
    value = {
        "labels": {"a": "b"},
        "point": {"x": 1},
        "ports": [{"port": 80, "name": "n"}],
        "inner": {"text": "t"},
        "tags": ["a"],
    }

    assert list(field_sets.paths(typed_values.fields_of(THING, value))) == [
        ".point",
        ".inner.text",
        ".labels.a",
        '.ports[port=80,protocol="TCP"]',
        '.ports[port=80,protocol="TCP"].name',
        '.ports[port=80,protocol="TCP"].port',
        '.tags[="a"]',
    ]


@pytest.mark.parametrize(
    ("kind", "item", "why"),
    [
        (ListOf(PORT, "map", ("name",)), {}, 'omits key field "name"'),
        (ListOf(PORT, "map", ("name",)), None, "may not have a null element"),
        (ListOf(PORT, "map", ("name",)), "a", "may not have non-map elements"),
        (ListOf(STRING, "set"), {}, "an element that's a map type"),
        (ListOf(STRING, "set"), None, "an element that's an explicit null"),
    ],
)
def test_items_need_something_to_tell_them_apart(kind, item, why):
    with pytest.raises(typed_values.UnkeyedItemError, match=why):
        typed_values.item_element(kind, item)


@cases(
    "live, applied, merged",
    ("the same", "abc", "abc", "abc"),
    ("the applied order counts", "ab", "ba", "ba"),
    ("others stay behind what they stood behind, if that kept its place", "axby", "ba", "xbya"),
    ("others in front stay in front", "xb", "nb", "xnb"),
    ("others behind stay behind", "ax", "na", "nax"),
    ("a moved item holds no other", "bxa", "ab", "xab"),
    ("nothing there", "", "ab", "ab"),
    ("nothing applied", "ab", "", "ab"),
)
def test_the_order_of_merged_lists(live, applied, merged):
    obj = typed_values.merge(THING, {"tags": list(live)}, {"tags": list(applied)})

    assert "".join(obj["tags"]) == merged

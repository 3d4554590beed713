"""Sets of fields are added and taken away as upstream does it."""

from typing import Any

from hypothesis import given, strategies as st

from reprieve.cluster.patches import field_sets

NAMES = st.sampled_from(("f:a", "f:b", 'k:{"name":"c"}', 'v:"d"'))
NODES: st.SearchStrategy[Any] = st.recursive(
    st.just({}),
    lambda below: st.builds(
        lambda kids, dot: kids | ({".": {}} if dot else {}), st.dictionaries(NAMES, below, min_size=1), st.booleans()
    ),
    max_leaves=8,
)
SETS = st.dictionaries(NAMES, NODES)


def members(fields):
    return set(field_sets.paths(fields))


@given(SETS, SETS)
def test_the_operations_are_those_of_sets_of_paths(first, second):
    assert members(field_sets.union(first, second)) == members(first) | members(second)
    assert members(field_sets.intersection(first, second)) == members(first) & members(second)
    assert members(field_sets.difference(first, second)) == members(first) - members(second)


@given(SETS, SETS)
def test_difference_of_sets_removes_everything_below_a_removed_field(first, second):
    prefixes = members(second)

    remaining = members(field_sets.without(first, second))

    assert remaining == {
        path
        for path in members(first)
        if not any(path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")) for prefix in prefixes)
    }


@given(SETS, SETS)
def test_no_set_is_ever_changed(first, second):
    before = repr(first), repr(second)

    for operation in (field_sets.union, field_sets.intersection, field_sets.difference, field_sets.without):
        operation(first, second)

    assert before == (repr(first), repr(second))


def test_members_of_a_level_come_before_those_below_it():
    """As upstream lists conflicts."""
    fields = {
        "f:spec": {
            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
            "f:replicas": {},
            "f:template": {".": {}, "f:a": {}},
        }
    }

    assert list(field_sets.paths(fields)) == [
        ".spec.replicas",
        ".spec.template",
        '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=80,protocol="TCP"].port',
        ".spec.template.a",
    ]


def test_items_of_sets_are_shown_by_value():
    assert list(field_sets.paths({"f:finalizers": {'v:"x/y"': {}}})) == ['.finalizers[="x/y"]']

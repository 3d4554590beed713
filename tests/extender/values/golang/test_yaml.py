"""YAML means to us what it means to Go's yaml v2: 1.1, merges included."""

import pytest

from extender.values.golang.json import plain
from extender.values.golang.yaml import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("y", "Yes", "on", "TRUE")),
        *((word, False) for word in ("n", "No", "off", "False")),
        *((word, None) for word in ("", "~", "null", "NULL")),
        ("yES", "yES"),
        ("1_000", 1000),
        ("0b11", 3),
        ("-0x1f", -31),
        ("0o17", 15),
        ("017", 15),
        ("08", 8),
        ("+1", 1),
        ("18446744073709551615", 18446744073709551615),
        (".5", 0.5),
        ("1e3", 1000),
        ("1e-7", 1e-7),
        ("1.", 1),
        ("1e999", "1e999"),
        ("190:20:30", "190:20:30"),
        ("2001-12-14", "2001-12-14"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1),
        ("!mine 1", "1"),
        ("!!binary aGk=", "hi"),
    ],
)
def test_scalars(text, value):
    document = plain(read_yaml(f"a: {text}\n").value)

    assert document == {"a": value}
    assert type(document["a"]) is type(value)


def test_keys_become_text():
    assert plain(read_yaml("{1: a, on: b, .5: c, x: d}").value) == {"1": "a", "true": "b", "0.5": "c", "x": "d"}


def test_members_are_sorted_as_go_marshals_them():
    value = read_yaml("{b: 1, a: 1, B: 1}").value

    assert isinstance(value, dict)
    assert list(value) == ["B", "a", "b"]


def test_earlier_maps_win_a_merge_and_what_is_written_later_wins_over_all():
    document = read_yaml("a: &a {p: 1, q: 1}\nb: &b {p: 2, r: 2}\nc:\n  <<: [*a, *b]\n  q: 3\n")

    assert plain(document.value)["c"] == {"p": 1, "q": 3, "r": 2}


def test_last_of_duplicate_members_counts_and_duplicates_are_reported():
    document = read_yaml("a: 1\nb: {c: 1,\n  c: 2}\na: 2\n")

    assert plain(document.value) == {"a": 2, "b": {"c": 2}}
    assert document.duplicates == ('line 3: key "c" already set in map', 'line 4: key "a" already set in map')

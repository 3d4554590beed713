"""What counts as an answer: JSON as Go reads it, and numbers that make sense."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from extender.engine.framework import ExtenderError
from extender.values.protocol.arriving_nodes import ArrivedBody
from extender.values.protocol.node_lists import DecodedNodes
from extender.values.protocol.verb_arguments import read_extender_args
from extender.values.protocol.verb_results import (
    filter_result,
    read_binding_result,
    read_filter_result,
    read_preemption_result,
    read_prioritize_result,
)
from extender.values.protocol.wire_types import HostPriority, MetaVictims
from tests.kit.tables import cases

READERS: list[Callable[[bytes], Any]] = [
    read_filter_result,
    read_prioritize_result,
    read_preemption_result,
    read_binding_result,
]


@cases(
    "body, names",
    ("as it should be", b'{"NodeNames": ["a"]}', ["a"]),
    ("another case", b'{"nodenames": ["a"]}', ["a"]),
    ("the last one wins", b'{"NodeNames": ["a"], "nodeNames": ["b"]}', ["b"]),
    ("something after it", b'{"NodeNames": ["a"]} and so on', ["a"]),
    ("half a value after it", b' \n{"NodeNames": ["a"]}{', ["a"]),
    ("half of a surrogate pair", b'{"NodeNames": ["\\ud800a"]}', ["�a"]),
    ("no UTF-8", b'{"NodeNames": ["\xffa"]}', ["�a"]),
    ("null for a name", b'{"NodeNames": [null, "a"]}', ["", "a"]),
    ("null for all names", b'{"NodeNames": null}', None),
    ("null for all", b"null", None),
    ("nothing said", b"{}", None),
    ("unknown numbers", b'{"NodeNames": ["a"], "Big": 1e999, "Bigger": ' + b"9" * 5000 + b"} ", ["a"]),
    ("the same with more after it", b'{"NodeNames": ["a"], "Big": 1e999, "Bigger": ' + b"9" * 5000 + b"} x", ["a"]),
)
def test_names_are_read_as_go_reads_them(body: bytes, names: list[str] | None) -> None:
    assert read_filter_result(body).node_names == names


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@cases(
    "body, error",
    ("empty", b"", "EOF"),
    ("blank", b" \n ", "EOF"),
    ("cut off", b'{"NodeNames": ["a"', "unexpected EOF"),
    ("a page", b"<html>", "invalid character"),
    ("no number", b'{"NodeNames": NaN}', "invalid character"),
    ("byte order mark", b"\xef\xbb\xbf{}", "invalid character"),
    ("control character", b'{"a": "\x01"}', "invalid character"),
    ("deep", b"[" * 100_000, "exceeded max depth"),
    ("a little too deep", b'{"a":' * 65 + b"1" + b"}" * 65, "exceeded max depth"),
    ("a string without an end", b'"' + b"\\" * 1_000_001, "EOF"),
    ("another type", b"true", "json: cannot unmarshal bool into Go struct field"),
    ("a number", b"17", "json: cannot unmarshal number into Go struct field"),
)
def test_unreadable_result_is_an_extender_error(read: Callable[[bytes], Any], body: bytes, error: str) -> None:
    with pytest.raises(ExtenderError, match=error):
        read(body)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@given(
    body=st.binary(max_size=60)
    | st.text(alphabet='{}[]":,\\u0ntrefals NodeHostScrPuUIDx19.-', max_size=60).map(str.encode)
)
def test_arbitrary_bytes_are_read_or_refused_with_a_message(read: Callable[[bytes], Any], body: bytes) -> None:
    """In words, that is: no other exception leaves."""
    try:
        read(body)
    except ExtenderError as exc:
        assert str(exc)


@pytest.mark.parametrize(
    ("body", "scores"),
    [
        pytest.param(b"null", [], id="null"),
        pytest.param(b"[]", [], id="none"),
        pytest.param(
            b'[{"host": "a", "SCORE": 10}, {"Host": "a"}, {}]',
            [("a", 10), ("a", 0), ("", 0)],
            id="what is missing is zero",
        ),
        *(
            pytest.param(f'[{{"Host": "a", "Score": {score}}}]'.encode(), [("a", score)], id=f"any int64: {score}")
            for score in (-1, 11, 50, 100, 2**63 - 1, -(2**63))
        ),
    ],
)
def test_scores(body: bytes, scores: list[tuple[str, int]]) -> None:
    assert read_prioritize_result(body) == [HostPriority(*pair) for pair in scores]


@pytest.mark.parametrize(
    ("score", "error"),
    [
        *(
            (score, "json: cannot unmarshal number")
            for score in ("5.0", "1e1", "9223372036854775808", "9" * 5000, "-9223372036854775809")
        ),
        ('"5"', "json: cannot unmarshal string"),
        ("true", "json: cannot unmarshal bool"),
        ("{}", "json: cannot unmarshal object"),
    ],
)
def test_one_score_that_makes_no_sense_spoils_the_whole_answer(score: str, error: str) -> None:
    with pytest.raises(ExtenderError) as caught:
        read_prioritize_result(f'[{{"Host": "a", "Score": 1}}, {{"Host": "b", "Score": {score}}}]'.encode())

    assert str(caught.value).startswith(error)


def test_nulls_among_victims_are_seen() -> None:
    body = b'{"NodeNameToMetaVictims": {"a": null, "b": {"Pods": [null, {"UID": "u"}]}, "c": {"Pods": null}, "d": {}}}'

    assert read_preemption_result(body) == {"a": None, "b": None, "c": MetaVictims([]), "d": MetaVictims([])}


def test_nodes_that_come_back_are_read_like_any_others() -> None:
    with pytest.raises(ExtenderError, match="quantities must match the regular expression"):
        read_filter_result(
            b'{"Nodes": {"items": [{"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "lots"}}}]}}'
        )


def test_result_with_an_error_is_an_error_despite_other_members() -> None:
    with pytest.raises(ExtenderError, match=r"^no$"):
        read_filter_result(b'{"NodeNames": ["a"], "Error": "no"}')
    with pytest.raises(ExtenderError, match=r"^no$"):
        read_binding_result(b'{"error": "no"}')


def test_long_texts_are_cut() -> None:
    reasons = read_filter_result(b'{"FailedNodes": {"a": "' + b"x" * 5000 + b'"}}').failed

    assert reasons["a"] == "x" * 1023 + "…"


@cases(
    "items",
    ("as Go writes them", '{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}'),
    ("with spaces", ' {"metadata":{"name":"a"}} ,\n{"metadata": {"name":"b"}}\t'),
    ("one of them twice", '{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},{"metadata":{"name":"a"}}'),
)
@pytest.mark.parametrize("rows", [[0, 1], [1], []])
def test_nodes_in_full_come_back_as_they_were_sent(items: str, rows: list[int]) -> None:
    body = (
        b'{"Pod":{"metadata":{"name":"p"}},"Nodes":{"metadata":{"items":[]},"items":[%s]},"NodeNames":null}'
        % items.encode()
    )
    failed = {"c": '{"items":[]}'}

    answer = json.loads(
        b"".join(filter_result(asyncio.run(read_extender_args(ArrivedBody([body]), DecodedNodes())), rows, failed, {}))
    )

    assert answer == {
        "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "ab"[place]}} for place in rows]},
        "NodeNames": None,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }

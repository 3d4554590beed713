"""Whatever filter and prioritize are sent has one clear answer."""

import json

import pytest

from api.documents.documentation import POD
from tests.api.verb_requests import asking, pod_with, with_node
from tests.kit.service import Service, assert_is_refusal
from tests.kit.tables import cases

SECRET = "s3cr3t-in-the-request"
VERBS = ["filter", "prioritize"]


def pod_value(text: bytes) -> bytes:
    """A call with this JSON in a field that the scheduler does not look at."""
    return b'{"Pod":{"metadata":{"name":"p"},"spec":{"x":' + text + b'}},"Nodes":null,"NodeNames":["node-a1"]}'


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


MALFORMED = {
    "not JSON": b"hello " + SECRET.encode(),
    "truncated": json.dumps(asking()).encode()[:-5],
    "trailing garbage": json.dumps(asking()).encode() + b" x",
    "a second value": json.dumps(asking()).encode() * 2,
    "BOM": b"\xef\xbb\xbf" + json.dumps(asking()).encode(),
    "UTF-16": json.dumps(asking()).encode("utf-16"),
    "UTF-32": json.dumps(asking()).encode("utf-32"),
    "invalid UTF-8": pod_value(b'"\xff\xfe"'),
    "surrogates in UTF-8": pod_value(b'"\xed\xa0\x80"'),
    "single quotes": b"{'Pod':1}",
    "control character": pod_value(b'"\n"'),
    "empty": b"",
    "blank": b" \r\n",
    "null": b"null",
    "array": b"[]",
    "string": b'"x"',
    "number": b"1",
    "NaN": pod_value(b"NaN"),
    "Infinity": pod_value(b"Infinity"),
    "-Infinity": pod_value(b"-Infinity"),
    "1e400": pod_value(b"1e400"),
    "-1e400": pod_value(b"-1e400"),
    "exponent of many digits": pod_value(b"1e99999999"),
    "5,000 digits in a priority": json.dumps(asking(POD))
    .encode()
    .replace(b'"priority": 1000', b'"priority": ' + b"9" * 5000),
    "leading zero": pod_value(b"01"),
    "depth 65": pod_value(nested(62)),
    "depth 1,001": pod_value(nested(1001)),
    "depth 100,000": pod_value(nested(100_000)),
    "depth 100,000 of objects": pod_value(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "depth 100,000 unclosed": b"[" * 100_000,
    "depth 1,001 in an unknown member": b'{"Unknown":' + nested(1001) + b"," + json.dumps(asking()).encode()[1:],
    "depth 100 in the list of nodes": b'{"Pod":{"metadata":{"name":"p"}},"Nodes":{"metadata":'
    + nested(100)
    + b',"items":[]}}',
    "lone surrogate": pod_value(b'"\\ud800"'),
    "lone low surrogate": pod_value(b'"\\udc00"'),
    "half a pair": pod_value(b'"\\ud800\\u0041"'),
}

WRONG = {
    "no pod": {"Nodes": None, "NodeNames": ["node-a1"]},
    "null pod": asking(None),
    "pod is a string": asking(SECRET),
    "pod is a list": asking([]),
    "no name": asking({"metadata": {"namespace": "shop"}}),
    "empty name": asking({"metadata": {"name": ""}}),
    "no metadata": asking({}),
    "containers is a string": asking(pod_with(lambda pod: pod["spec"].update(containers=SECRET))),
    "priority is a string": asking(pod_with(lambda pod: pod["spec"].update(priority=SECRET))),
    "priority is a fraction": asking(pod_with(lambda pod: pod["spec"].update(priority=1.5))),
    "labels hold a number": asking(pod_with(lambda pod: pod["metadata"].update(labels={"a": 1}))),
    "other nodes by name than in full": {**with_node(), "NodeNames": ["node-a1"]},
    "node name: null": asking(NodeNames=["node-a1", None]),
    "node name: number": asking(NodeNames=["node-a1", 1]),
    "node name: empty": asking(NodeNames=["node-a1", ""]),
    "node name: 300 characters": asking(NodeNames=["node-a1", "n" * 300]),
    "node name: path": asking(NodeNames=["node-a1", "../x"]),
    "node name: line feed": asking(NodeNames=["node-a1", "a\nb"]),
    "node name: unicode": asking(NodeNames=["node-a1", "nœud"]),
    "node name: capitals": asking(NodeNames=["node-a1", "Node"]),
    "names are an object": asking(NodeNames={}),
    "names are a string": asking(NodeNames="node-a1"),
    "node in full: no name": with_node(metadata={}),
    "node in full: line feed": with_node(metadata={"name": "a\nb"}),
    "node in full: 300 characters": with_node(metadata={"name": "n" * 300}),
    "nodes is a list": asking(Nodes=[]),
    "node in full: created on no day": with_node(metadata={"name": "n", "creationTimestamp": "99999-99-99"}),
    "node in full: created on 30 February": with_node(
        metadata={"name": "n", "creationTimestamp": "2026-02-30T00:00:00Z"}
    ),
    "node in full: created at an empty time": with_node(metadata={"name": "n", "creationTimestamp": ""}),
    "node in full: deleted at a time without a zone": with_node(
        metadata={"name": "n", "deletionTimestamp": "2026-11-28T10:00:00"}
    ),
    "items is an object": asking(Nodes={"items": {}}),
    "an item is null": asking(Nodes={"items": [None]}),
    "an item is a number": asking(Nodes={"items": [1]}),
    "an item has labels of numbers": with_node(metadata={"name": "n", "labels": {"a": 1}}),
    "pod name of control characters": asking({"metadata": {"name": "p\r\nx: y"}}),
    "pod name of escapes": asking({"metadata": {"name": "\x1b[31mred"}}),
    "pod name of NUL": asking({"metadata": {"name": "a\x00b"}}),
    "pod name from right to left": asking({"metadata": {"name": "\u202egpj"}}),
    "uid of 129 characters": asking({"metadata": {"name": "p", "uid": "u" * 129}}),
    "uid of a megabyte": asking({"metadata": {"name": "p", "uid": "u" * 10**6}}),
    "created on no day": asking({"metadata": {"name": "p", "creationTimestamp": "99999-99-99"}}),
    "created in a 13th month": asking({"metadata": {"name": "p", "creationTimestamp": "2026-13-01T00:00:00Z"}}),
    "created at an empty time": asking({"metadata": {"name": "p", "creationTimestamp": ""}}),
    "deleted at a time without a zone": asking({"metadata": {"name": "p", "deletionTimestamp": "2026-11-28T10:00:00"}}),
    "namespace of emoji": asking({"metadata": {"name": "p", "namespace": "🙂"}}),
}

IN_NODES = {
    "1e400": b"1e400",
    "depth 65": nested(61),
    "depth 100,000": nested(100_000),
    "invalid UTF-8": b'"\xff"',
    "lone surrogate": b'"\\ud800"',
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_malformed_json_is_a_bad_request(example: Service, verb: str, body: bytes) -> None:
    answer = example.call(verb, body)

    assert_is_refusal(answer, 400)
    assert SECRET not in answer.text


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_body_that_breaks_the_schema_is_a_bad_request(example: Service, verb: str, body: object) -> None:
    answer = example.call(verb, body)

    assert_is_refusal(answer, 400)
    assert SECRET not in answer.text


@pytest.mark.parametrize("text", IN_NODES.values(), ids=IN_NODES)
def test_the_limits_hold_inside_of_nodes_too(example: Service, text: bytes) -> None:
    node = b'{"metadata":{"name":"fresh-node"},"spec":{"x":' + text + b"}}"

    answer = example.call("filter", b'{"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":[' + node + b"]}}")

    assert_is_refusal(answer, 400)


@cases(
    "body, place",
    ("null", WRONG["node name: null"], "[1]"),
    ("path", WRONG["node name: path"], "NodeNames[1]"),
    ("in full", asking(Nodes={"items": [{"metadata": {"name": "n"}}, 1]}), "Nodes.items[1]"),
)
def test_a_refusal_tells_the_place_of_a_wrong_name(example: Service, body: object, place: str) -> None:
    assert place in example.call("filter", body).json()["message"]


def test_nesting_up_to_the_limit_is_accepted(example: Service) -> None:
    assert example.call("filter", pod_value(nested(61))).status_code == 200


def test_brackets_and_digits_inside_of_strings_do_not_count(example: Service) -> None:
    text = json.dumps("[{" * 1000 + '\\"' + "9" * 5000 + "1e400 \\\\").encode()

    assert example.call("filter", pod_value(text)).status_code == 200

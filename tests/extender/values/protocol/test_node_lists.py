"""A node whose bytes did not change is the very same object, and is never decoded again."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec import Raw

from extender.values import limits
from extender.values.golang.json import JsonError, TooLargeError
from extender.values.protocol.arriving_nodes import ArrivedBody
from extender.values.protocol.node_lists import DecodedNodes, NodesInFull
from extender.values.protocol.verb_arguments import AskedNodes, read_extender_args
from tests.kit.tables import cases


def body(name: str, version: int = 0) -> Raw:
    return Raw(f'{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}'.encode())


def nodes_of(memory: DecodedNodes, items: Sequence[Raw]) -> NodesInFull:
    return asyncio.run(memory.of(items))


def read_args(body: ArrivedBody, memory: DecodedNodes) -> AskedNodes:
    return asyncio.run(read_extender_args(body, memory))


@pytest.fixture
def memory() -> DecodedNodes:
    return DecodedNodes()


def test_unchanged_bytes_are_the_same_node(memory: DecodedNodes) -> None:
    first = nodes_of(memory, [body("a"), body("b")]).nodes

    second = nodes_of(memory, [body("b"), body("a")]).nodes

    assert second[0] is first[1]
    assert second[1] is first[0]


def test_changed_bytes_are_another_node_and_only_that_one(memory: DecodedNodes) -> None:
    first = nodes_of(memory, [body("a"), body("b")]).nodes

    second = nodes_of(memory, [body("a", 1), body("b")]).nodes

    assert second[0].metadata.resource_version == "1"
    assert second[1] is first[1]


@cases(
    "text",
    ("type first", b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}'),
    ("name later", b'{"metadata":{"labels":{},"name":"a"}}'),
    ("blanks", b' { "metadata" : { "name" : "a" } }'),
    ("escaped", b'{"metadata":{"name":"\\u0061"}}'),
    ("name twice", b'{"metadata":{"name":"b","name":"a"}}'),
    ("nulls", b'{"metadata":{"name":"a"},"spec":{"taints":null},"status":{"images":null}}'),
)
def test_however_it_is_written_it_is_recognised(memory: DecodedNodes, text: bytes) -> None:
    (first,) = nodes_of(memory, [Raw(text)]).nodes

    (second,) = nodes_of(memory, [Raw(text)]).nodes

    assert first.name == "a"
    assert second is first


def test_a_node_is_what_its_last_name_says(memory: DecodedNodes) -> None:
    nodes_of(memory, [body("b")])

    (node,) = nodes_of(memory, [Raw(b'{"metadata":{"name":"b"},"metadata":{"name":"a"}}')]).nodes

    assert node.name == "a"


def test_the_number_of_remembered_nodes_is_bounded_and_the_oldest_go_first(
    memory: DecodedNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "NODES_KEPT", 3)
    (a,) = nodes_of(memory, [body("a")]).nodes
    (b,) = nodes_of(memory, [body("b")]).nodes
    nodes_of(memory, [body("a")])
    nodes_of(memory, [body("c"), body("d")])

    assert len(memory) == 3
    assert nodes_of(memory, [body("a")]).nodes[0] is a
    assert nodes_of(memory, [body("b")]).nodes[0] is not b


def test_the_bytes_of_remembered_nodes_are_bounded(memory: DecodedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NODES_KEPT_BYTES", 10 * len(body("n-00")))

    nodes_of(memory, [body(f"n-{number:02d}") for number in range(50)])

    assert len(memory) == 10


def test_a_changed_node_replaces_the_old_one(memory: DecodedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NODES_KEPT_BYTES", 2 * len(body("a")))

    for version in range(10):
        nodes_of(memory, [body("a", version), body("b", version)])

    assert len(memory) == 2


def test_the_bytes_of_the_call_are_not_kept(memory: DecodedNodes) -> None:
    text = bytearray(b'{"metadata":{"name":"a"}}')
    (first,) = nodes_of(memory, [Raw(text)]).nodes
    text[:] = b" " * len(text)

    assert nodes_of(memory, [Raw(b'{"metadata":{"name":"a"}}')]).nodes[0] is first


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"null", JsonError),
        (b"[]", JsonError),
        (b"{}", JsonError),
        (b'{"metadata":{"name":"A"}}', JsonError),
        (b'{"metadata":{"name":1}}', JsonError),
        (b'{"metadata":{"name":"a"},"x":' + b"[" * 70 + b"]" * 70 + b"}", JsonError),
        (b'{"metadata":{"name":"a"},"x":"' + b"x" * 5 * 2**20 + b'"}', TooLargeError),
    ],
)
def test_malformed_node_is_refused_with_its_position(text: bytes, error: type[JsonError]) -> None:
    with pytest.raises(JsonError, match=r"items\[1\]|nested") as refused:
        nodes_of(DecodedNodes(), [body("a"), Raw(text)])

    assert type(refused.value) is error


async def test_several_calls_at_one_time_each_get_their_nodes(
    memory: DecodedNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "NODES_KEPT", 20)

    async def call(seed: int) -> None:
        for step in range(50):
            names = [f"n-{(seed * 7 + step + offset) % 40}" for offset in range(10)]
            called = await memory.of([body(name, step % 3) for name in names])
            assert [node.name for node in called.nodes] == names

    await asyncio.gather(*map(call, range(4)))

    assert len(memory) <= 20


def args(names: bytes, pod: bytes = b'{"metadata":{"name":"p"}}') -> bytes:
    return b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (pod, names)


@cases(
    "names, read",
    ("in order", b'["known-a","known-b"]', ["known-a", "known-b"]),
    ("in another order", b'["known-b","known-a"]', ["known-b", "known-a"]),
    ("a name twice", b'["known-a","known-b","known-a"]', ["known-a", "known-b"]),
    ("written otherwise", b' [ "known-a",\n"\\u006bnown-b" ] ', ["known-a", "known-b"]),
    ("none", b"[]", []),
)
def test_names_that_were_checked_before_are_read_as_the_first_time(names: bytes, read: list[str]) -> None:
    read_args(ArrivedBody([args(b'["known-a","known-b"]')]), DecodedNodes())

    assert [read_args(ArrivedBody([args(names)]), DecodedNodes()).names for _ in range(3)] == [read] * 3


@pytest.mark.parametrize("names", [b'["known-a",1]', b'["known-a","Known"]', b'{"known-a":1}', b'["known-a"'])
def test_malformed_list_of_names_is_refused_each_time(names: bytes) -> None:
    read_args(ArrivedBody([args(b'["known-a"]')]), DecodedNodes())

    for _ in range(2):
        with pytest.raises(JsonError):
            read_args(ArrivedBody([args(names)]), DecodedNodes())


def test_beside_names_that_were_checked_before_the_pod_is_checked() -> None:
    deep = b'{"metadata":{"name":"p"},"spec":%s}' % (b'{"a":' * 80 + b"1" + b"}" * 80)
    read_args(ArrivedBody([args(b'["known-a"]')]), DecodedNodes())

    with pytest.raises(JsonError, match="nested more than 64 levels deep"):
        read_args(ArrivedBody([args(b'["known-a"]', deep)]), DecodedNodes())

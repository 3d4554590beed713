"""Known nodes are taken out of a body while it arrives, and nobody can tell from the answer."""

import asyncio
import random

import pytest
from hypothesis import given, settings, strategies as st

from extender.values import limits
from extender.values.golang.json import JsonError
from extender.values.protocol.arriving_nodes import MARK, ArrivedBody
from extender.values.protocol.node_lists import DecodedNodes
from extender.values.protocol.verb_arguments import read_extender_args
from tests.kit.examples import examples
from tests.kit.tables import cases

POD = b'{"metadata":{"name":"p"}}'


def node(name: str, version: int = 0, more: str = "") -> bytes:
    padding = "x" * (400 if name < "n3" else 10)
    return f'{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"spec":{{"providerID":"{padding}"}}{more}}}'.encode()


def body_of(*items: bytes, pod: bytes = POD, between: bytes = b",") -> bytes:
    return b'{"Pod":%s,"Nodes":{"metadata":{},"items":[%s]},"NodeNames":null}\n' % (pod, between.join(items))


def arrived(memory: DecodedNodes, *parts: bytes) -> ArrivedBody:
    arriving = memory.arriving()
    for part in parts:
        arriving.take(part)
    return arriving.finish()


def read(body: ArrivedBody, memory: DecodedNodes) -> object:
    """Returns what the body says, or why it is refused."""
    try:
        args = asyncio.run(read_extender_args(body, memory))
    except JsonError as exc:
        return f"{type(exc).__name__}: {exc}"
    full_text = None if args.in_full is None else args.in_full.text(range(len(args.in_full.nodes)))
    return args.pod, args.names, args.nodes, args.node_names, full_text


def knowing(*items: bytes) -> DecodedNodes:
    memory = DecodedNodes()
    read(arrived(memory, body_of(*items)), memory)
    return memory


def cut(text: bytes, chance: random.Random) -> list[bytes]:
    places = sorted(chance.randrange(len(text) + 1) for _ in range(chance.choice([0, 1, 5, 40])))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def some_items(chance: random.Random) -> list[bytes]:
    """Nodes in mostly the same order, of which some are new, changed, missing, there twice, or written otherwise."""
    items = [
        node(
            f"n{number}",
            chance.choice([0, 0, 0, 0, 0, 0, 1, 22]),
            chance.choice(["", "", "", "", ',"x":[{"metadata":{"name":"n1"}}]']),
        )
        for number in range(8)
        if chance.random() < 0.9
    ]
    if chance.random() < 0.3:
        chance.shuffle(items)
    if chance.random() < 0.2:
        items.insert(
            chance.randrange(len(items) + 1),
            chance.choice([b'{"kind":"Node","metadata":{"name":"k"}}', b"{}", MARK, node("n1")]),
        )
    return items


@settings(deadline=None, max_examples=examples(300))
@given(st.randoms(use_true_random=False))
def test_a_body_in_any_parts_after_any_others_is_read_as_if_it_were_the_first(chance: random.Random) -> None:
    memory = DecodedNodes()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "NODES_KEPT", chance.choice([5, 100]))
        for _ in range(5):
            text = body_of(*some_items(chance), between=chance.choice([b",", b",", b",", b" , "]))
            if chance.random() < 0.1:
                text = text[: chance.randrange(len(text))]

            body = arrived(memory, *cut(text, chance))

            assert body.whole() == text
            assert read(body, memory) == read(ArrivedBody([text]), DecodedNodes())


@pytest.mark.parametrize("size", [1, 7, 300, 1000, 10**6])
def test_body_of_known_nodes_is_reduced_to_one_mark(size: int) -> None:
    items = [node(f"n{number}") for number in range(9)]
    memory, text = knowing(*items), body_of(*items)

    body = arrived(memory, *(text[start : start + size] for start in range(0, len(text), size)))

    assert body.marked() == body_of(MARK)


def test_changed_nodes_alone_remain_in_the_body() -> None:
    items = [node(f"n{number}") for number in range(9)]
    memory = knowing(*items)
    items[4], items[8] = node("n4", 1), node("n8", 333)

    body = arrived(memory, body_of(*items))

    assert body.marked() == body_of(MARK, items[4], MARK, items[8])


def test_a_change_of_a_single_byte_is_seen_wherever_it_is() -> None:
    items = [node(f"n{number}") for number in range(5)]
    memory, text = knowing(*items), body_of(*items)
    for place in range(text.index(b"n0"), len(text) - 30):
        changed = text[:place] + b"y" + text[place + 1 :]

        body = arrived(memory, changed[:700], changed[700:])

        assert body.whole() == changed
        assert read(body, memory) == read(ArrivedBody([changed]), DecodedNodes())


LIST = b'"items":[%s,%s]' % (node("a"), node("b"))


@cases(
    "text",
    ("nodes in the pod", body_of(pod=b'{"metadata":{"name":"p"},%s}' % LIST)),
    ("nodes in the pod as well", body_of(node("a"), pod=b'{"metadata":{"name":"p"},%s}' % LIST)),
    ("no strings around what looks like nodes", b'{"Pod":"%s","Nodes":null,"NodeNames":null}' % LIST),
    ("nodes twice", b'{"Pod":%s,"Nodes":{%s},"Nodes":{"items":[]},"NodeNames":null}' % (POD, LIST)),
    ("items twice", b'{"Pod":%s,"Nodes":{"items":[],%s},"NodeNames":null}' % (POD, LIST)),
    ("a name in another case", b'{"Pod":%s,"nodes":{%s},"NodeNames":null}' % (POD, LIST)),
    ("both forms", b'{"Pod":%s,"Nodes":{%s},"NodeNames":["a","b"]}' % (POD, LIST)),
    ("both forms, which differ", b'{"Pod":%s,"Nodes":{%s},"NodeNames":["a"]}' % (POD, LIST)),
    ("a mark of the caller's beside one of ours", body_of(node("a"), MARK)),
    ("nodes in the pod, and a mark of the caller's", body_of(MARK, pod=b'{"metadata":{"name":"p"},%s}' % LIST)),
    ("a mark and no known node", body_of(MARK, node("new"))),
    ("a node in a list", body_of(node("a"), b"[%s]" % node("b"))),
    ("something after a node", body_of(node("a"), node("b") + b"1")),
    ("a comma and no node", body_of(node("a"), b"")),
    ("no end", body_of(node("a"), node("b"))[:-4]),
    ("no pod", body_of(node("a"), node("b"), pod=b"null")),
    ("a new node that is too deep", body_of(node("a"), b'{"metadata":{"name":"c"},"d":%s}' % (b"[" * 70 + b"]" * 70))),
)
def test_bodies_that_only_look_like_known_ones_are_read_as_they_are_written(text: bytes) -> None:
    memory = knowing(node("a"), node("b"))

    assert read(arrived(memory, text[:60], text[60:]), memory) == read(ArrivedBody([text]), DecodedNodes())

"""The nodes of a call: checked names, and bodies, of which unchanged ones are neither decoded nor encoded again.

kube-scheduler without `nodeCacheCapable` sends every node in full, twice for each pod, and hardly any of them differs
from the last call's. An unchanged node becomes the same `Node` object, so that the overlay recognizes it by identity.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain, count, islice, takewhile
from typing import Final, final

from msgspec import Raw

from extender.values import limits
from extender.values.golang.json import JsonError, TooLargeError
from extender.values.golang.json_bytes import check_json, quickly
from extender.values.golang.times import TimeError, read_time
from extender.values.objects import decoding
from extender.values.objects.meta import HasMetadata
from extender.values.objects.name_syntax import subdomain_errors
from extender.values.objects.node import Node, NodeDecoder
from extender.values.objects.whole import in_full
from extender.values.protocol.arriving_nodes import KEY, RAW_MARK, ArrivingBody, KnownNode, Run, RunText

DEPTH_OF_ITEM: Final = 3
"""The depth of a node in the body: {"Nodes":{"items":[."""

_CHECKED_AT_A_TIME: Final = 2**17
"""Bytes of nodes that are checked together, in one step: each check takes as long as some kilobytes."""

_known_names: Final[set[str]] = set()
"""Valid names. Thousands of the same come with every call, so each is matched once."""


_known_lists: Final[dict[bytes, list[str]]] = {}
"""Lists of valid names, each once, by their bytes: prioritize is called with those that filter returned."""


def names_known(document: Raw) -> list[str] | None:
    """Returns the names in a JSON list, which is within the limits, if each is known and there once.

    Raises TooLargeError.
    """
    text = bytes(document)
    names = _known_lists.get(text)
    if names is not None:
        return names
    check_number_of_names(text.count(b",") + 1)  # a name has no comma
    names = quickly(list[str], document)
    if names is None or not _known_names.issuperset(names) or len(set(names)) < len(names):
        return None
    if len(text) <= limits.NAME_LIST_BYTES:
        if len(_known_lists) >= limits.NAME_LISTS_KEPT:
            _known_lists.clear()
        _known_lists[text] = names
    return names


def check_node_names(what: str, names: Sequence[str]) -> None:
    """Checks that every name can be a node's. Raises JsonError with the place of the first that cannot."""
    if _known_names.issuperset(names):
        return
    for place, name in enumerate(names):
        if subdomain_errors(name):
            raise JsonError(f"{what}[{place}] is not the name of a node")
    if len(_known_names) + len(names) > limits.NODE_NAMES_KEPT:
        _known_names.clear()
    _known_names.update(names)


def check_number_of_nodes(number: int) -> None:
    """Raises TooLargeError if a body may not have so many nodes in full."""
    if number > limits.NODES:
        raise TooLargeError(f"the body has more than {limits.NODES} nodes in full")


def check_number_of_names(number: int) -> None:
    """Raises TooLargeError if a body may not have so many names of nodes."""
    if number > limits.NODE_NAMES:
        raise TooLargeError(f"the body has more than {limits.NODE_NAMES} names of nodes")


def check_times(what: str, obj: HasMetadata) -> None:
    """Raises JsonError if a time of the metadata is none. Upstream: apimachinery/pkg/apis/meta/v1/time.go."""
    meta = obj.metadata
    for name, text in (("creationTimestamp", meta.creation_timestamp), ("deletionTimestamp", meta.deletion_timestamp)):
        try:
            if text is not None:
                read_time(text)
        except TimeError as exc:
            raise JsonError(f"{what}: metadata.{name} is no time in the form of RFC 3339") from exc


@final
class NodesInFull:
    """The nodes of a call, as `asked` and each once, decoded. State: their bytes in one piece, once asked for."""

    def __init__(self, nodes: Sequence[KnownNode]) -> None:
        self.asked: Final = nodes
        by_name: dict[str, KnownNode] = {}
        for known_node in nodes:
            by_name.setdefault(known_node.node.metadata.name, known_node)
        self.nodes: Final = tuple(known_node.node for known_node in by_name.values())
        self.names: Final = list(by_name)
        self._each: Final = list(by_name.values())
        self.all: RunText | None = None
        """All nodes in one piece, if that has been asked for."""

    def text(self, places: Sequence[int]) -> bytes:
        """Returns the bodies of the nodes at these places, with commas between them."""
        if len(places) < len(self._each):
            return b",".join([self._each[place].body for place in places])
        if self.all is None:
            self.all = RunText(self._each)
        return self.all.text


@final
class DecodedNodes:
    """Bodies that callers have sent, by node name, and their nodes; the longest not sent are dropped."""

    def __init__(self) -> None:
        self._known: dict[bytes, KnownNode] = {}
        self._size = 0
        self._calls = count(1)
        self._turn = asyncio.Lock()
        self._last = NodesInFull([])
        self._decode = NodeDecoder()

    def arriving(self) -> ArrivingBody:
        """Returns what takes the known nodes out of a call's body as that arrives."""
        return ArrivingBody(self._known, self._last.all)

    async def of(self, items: Sequence[Raw], runs: Sequence[Run] = ()) -> NodesInFull:
        """Returns the nodes of a call, the same object as for the last call if they are the same.

        `items` are bodies as they were sent, and a mark for each of the `runs` of known ones. Calls are taken one after
        the other, and their nodes some at a time, so that others have the event loop between. Raises JsonError with the
        place of the first that is no node, is outside the limits, or has an invalid name.
        """
        check_number_of_nodes(len(items) + sum(map(len, runs)) - len(runs))
        async with self._turn:
            return await self._of(items, runs)

    async def _of(self, items: Sequence[Raw], runs: Sequence[Run]) -> NodesInFull:
        call = next(self._calls)
        nodes: list[KnownNode] = []
        learned: dict[bytes, KnownNode] = {}
        coming, num_checked, names = iter(runs), 0, [set[object]() for _ in _NAMES]
        for index, body in enumerate(items):
            if runs and body == RAW_MARK:
                nodes += next(coming)
                continue
            match = KEY.match(body)
            known_node = None if match is None else self._known.get(match[1])
            if known_node is None or known_node.body != body:
                if index >= num_checked:
                    await asyncio.sleep(0)
                    num_checked = index + _num_alike_right(items, index)
                node = _decoded(len(nodes), body, self._decode, is_checked=index < num_checked)
                # Of repeated members the last one counts, so that the name may differ from the one that the pattern
                # found.
                key = node.name.encode()
                known_node = self._known.get(key)
                if known_node is None or known_node.body != body:
                    known_node = learned[key] = KnownNode(body.copy(), node, call)
                    _count_names(names, node)
            nodes.append(known_node)
        for known_node in nodes:
            known_node.call = call
        if learned:
            self._learn(learned)
        last = self._last
        if last.asked != nodes:
            last = self._last = NodesInFull(nodes)
        return last

    def __len__(self) -> int:
        return len(self._known)

    def _learn(self, learned: dict[bytes, KnownNode]) -> None:
        for key, node in learned.items():
            self._forget(key)
            self._known[key] = node
            self._size += len(node.body)
        if len(self._known) <= limits.NODES_KEPT and self._size <= limits.NODES_KEPT_BYTES:
            return
        for key, _ in sorted(self._known.items(), key=lambda item: item[1].call):
            self._forget(key)
            if len(self._known) <= limits.NODES_KEPT and self._size <= limits.NODES_KEPT_BYTES:
                return

    def _forget(self, key: bytes) -> None:
        node = self._known.pop(key, None)
        if node is not None:
            self._size -= len(node.body)


_NAMES: Final[Sequence[tuple[limits.Limit, Callable[[Node], Iterable[object]]]]] = (
    (limits.RESOURCE_NAMES, lambda node: chain(node.status.allocatable, node.status.capacity)),
    (limits.IMAGE_NAMES, lambda node: chain.from_iterable(image.names for image in node.status.images)),
    (limits.LABEL_KEYS, lambda node: node.metadata.labels),
    (limits.TAINTS, lambda node: ((taint.key, taint.value, taint.effect) for taint in node.spec.taints)),
)
"""What costs by the number of different ones that the new nodes of a call have."""


def _count_names(so_far: Sequence[set[object]], node: Node) -> None:
    """Adds what the node names. Raises TooLargeError if that is more than the nodes of a call may."""
    for names, (limit, of_node) in zip(so_far, _NAMES, strict=True):
        names.update(of_node(node))
        if len(names) > limit:
            raise TooLargeError(f"the body has more than {limit} {limit.what.partition(',')[0]}")


def _num_alike_right(items: Sequence[Raw], start: int) -> int:
    """Returns how many bodies from there on were found right when looked at together; 0 if one is not."""
    sizes = accumulate(map(len, islice(items, start, None)))
    end = start + sum(1 for _ in takewhile(_CHECKED_AT_A_TIME.__ge__, sizes))
    try:
        check_json(b",".join(items[start:end]), DEPTH_OF_ITEM)
    except JsonError:
        return 0  # which one, its own check says
    return end - start


def _decoded(place: int, body: Raw, decode: NodeDecoder, *, is_checked: bool) -> Node:
    what = f"Nodes.items[{place}]"
    if len(body) > limits.NODE_BYTES:
        raise TooLargeError(f"{what} has more than {limits.NODE_BYTES} bytes")
    if not is_checked:
        check_json(bytes(body), DEPTH_OF_ITEM)
    try:
        node = decode(body)
    except decoding.DecodeError as exc:
        raise JsonError(f"{what}: {exc}") from exc
    if not node.name:
        raise JsonError(f"{what} has no name")
    if subdomain_errors(node.name):
        raise JsonError(f"{what}: metadata.name is not the name of a node")
    check_times(what, node)
    return node


@final
class EncodedNodes:
    """The encoded bodies of the nodes that were sent last, so that unchanged nodes are not encoded again."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[Node, Raw]] = {}

    def of(self, nodes: Sequence[Node]) -> list[Raw]:
        if len(self._written) > 2 * len(nodes) + 1000:
            self._written.clear()
        return [self._of(node) for node in nodes]

    def _of(self, node: Node) -> Raw:
        cached = self._written.get(node.name)
        if cached is None or cached[0] is not node:
            cached = self._written[node.name] = node, in_full(node)
        return cached[1]

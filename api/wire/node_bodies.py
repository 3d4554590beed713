"""The node bodies of earlier calls, so that a node is decoded again only when its bytes changed.

kube-scheduler without `nodeCacheCapable` sends every node in full, twice for each pod, and hardly any of them differs from the last call's.
An unchanged node is the very same `Node`: the engine sees by identity that nothing is to be done for it.
"""

import re
import threading
from collections.abc import Sequence
from itertools import count
from typing import Final, final

import msgspec
from msgspec import Raw

from api.json_limits import check_json
from api.refusals import Refusal
from api.wire.names import check_names
from api.wire.reading import read_object
from extender.objects.node import Node

MAX_NODES: Final = 20_000
MAX_BYTES: Final = 256 * 2**20
MAX_NODE_BYTES: Final = 4 * 2**20
"""Of one node; the API server lets none be larger than 3 MiB."""

DEPTH_OF_ITEM: Final = 3
"""{"Nodes":{"items":[ comes before a node."""

# Go writes metadata first, and the name first in it. Anything else has no key before it is decoded, which costs time only.
_KEY: Final = re.compile(rb'\{"metadata":\{"name":"([-a-z0-9.]{1,253})"')


class _Known(msgspec.Struct, gc=False):
    """A body and what it decodes to.

    Attributes:
        call: the number of the last call that held it.
    """

    body: Raw
    node: Node
    call: int


@final
class NodeBodies:
    """Bodies by node name, the least recently used forgotten first. May be used from several threads at once."""

    def __init__(self, *, max_nodes: int = MAX_NODES, max_bytes: int = MAX_BYTES) -> None:
        self._max_nodes = max_nodes
        self._max_bytes = max_bytes
        self._known: dict[bytes, _Known] = {}
        self._size = 0
        self._calls = count(1)
        self._writing = threading.Lock()

    def nodes_of(self, bodies: Sequence[Raw]) -> list[Node]:
        """The nodes that the bodies are, by position.

        Raises:
            Refusal: 400 or 413, with the place of the first body that is no node, is outside the limits, or has a name no node can have.
        """
        call = next(self._calls)
        nodes: list[Node] = []
        learned: dict[bytes, _Known] = {}
        for place, body in enumerate(bodies):
            match = _KEY.match(body)
            known = None if match is None else self._known.get(match[1])
            if known is None or known.body != body:
                node = _decoded(place, body)
                key = node.name.encode()
                known = self._known.get(key)
                if known is None or known.body != body:
                    known = learned[key] = _Known(body.copy(), node, call)
            known.call = call
            nodes.append(known.node)
        if learned:
            self._learn(learned)
        return nodes

    def __len__(self) -> int:
        return len(self._known)

    def _learn(self, learned: dict[bytes, _Known]) -> None:
        with self._writing:
            for key, known in learned.items():
                self._forget(key)
                self._known[key] = known
                self._size += len(known.body)
            if len(self._known) <= self._max_nodes and self._size <= self._max_bytes:
                return
            for key, _ in sorted(self._known.items(), key=lambda item: item[1].call):
                self._forget(key)
                if len(self._known) <= self._max_nodes and self._size <= self._max_bytes:
                    return

    def _forget(self, key: bytes) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._size -= len(known.body)


def _decoded(place: int, body: Raw) -> Node:
    what = f"Nodes.items[{place}]"
    text = bytes(body)
    if len(text) > MAX_NODE_BYTES:
        raise Refusal(413, f"{what} has more than {MAX_NODE_BYTES} bytes")
    check_json(text, DEPTH_OF_ITEM)
    node = read_object(Node, body, what)
    if not node.name:
        raise Refusal(400, f"{what} has no name")
    try:
        check_names("", [node.name])
    except Refusal as exc:
        raise Refusal(400, f"{what}: metadata.name is not the name of a node") from exc
    return node

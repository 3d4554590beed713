"""The body of a call while it arrives: nodes that are known byte for byte are taken out of it at once.

A call of thousands of nodes in full has tens of megabytes, nearly all of which came with the last call, too. What is
known is compared in the pieces in which it comes, and dropped: it is never put together, parsed, or held in memory a
second time.

`ArrivingBody` is in one of these states:

| state | what is expected | what ends it | then |
|---|---|---|---|
| seeking (`_sought` is set) | any bytes | how `items` begins with a node, later how a next node begins | at a node |
| at a node (`_sought` is empty) | the known node of the name that is there | it came | in a run |
| | | it differs, or none is known of that name | seeking |
| in a run (`_is_in_run`) | a comma and the next known node | it came, and was in the last call, too | following |
| | | it differs, or none is known of that name | seeking |
| | | something else than a comma | seeking |
| following (`_followed` > 0) | what followed there in the last call | other bytes | in a run |

Seeking keeps what it passes; a run and what is followed are dropped. When following ends, the nodes that came whole
join the run, and the bytes of the unfinished one wait. In each state a beginning that is not complete waits until there
are `_num_needed` bytes. The end of the body ends each state, and what waits is kept. Where no node is known, all bytes
are kept unseen.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, zip_longest
from typing import Final, final

import msgspec
from msgspec import Raw

from extender.values.objects.node import Node

KEY: Final = re.compile(rb'\{"metadata":\{"name":"([-a-z0-9.]{1,253})"')
"""Go writes metadata first, and the name first in it. Other bodies are decoded each time, only slower."""

MARK: Final = b'{"\\u0000":0}'
"""Stands for a run of known nodes in the rest of a body."""

_KEY_BYTES: Final = 275
_FIRST: Final = b'"items":[{"metadata":{"name":"'
_NEXT: Final = b',{"metadata":{"name":"'
RAW_MARK: Final = Raw(MARK)


class KnownNode(msgspec.Struct, gc=False, eq=False):
    """A body and what it decodes to; the last call that held it, and its place in the last RunText of it."""

    body: Raw
    node: Node
    call: int
    place: int = 0


Run = Sequence[KnownNode]


@final
class RunText:
    """A run of nodes as one text, with commas between them, and where each body `ends`."""

    def __init__(self, nodes: Run) -> None:
        self.nodes: Final = nodes
        self.text: Final = b",".join([node.body for node in nodes])
        self.ends: Final = [end - 1 for end in accumulate(len(node.body) + 1 for node in nodes)]
        for place, node in enumerate(nodes):
            node.place = place

    def has(self, node: KnownNode) -> bool:
        return node.place < len(self.nodes) and self.nodes[node.place] is node


@final
class ArrivedBody(msgspec.Struct, frozen=True):
    """A body without some of its nodes: `pieces[0]`, `runs[0]`, `pieces[1]` and so on.

    The nodes were found by how they begin. The same bytes may stand elsewhere in a body; `is_right` says whether all of
    them were items of its list.
    """

    pieces: Sequence[bytes]
    runs: Sequence[Run] = ()

    def __len__(self) -> int:
        """Returns the bytes that are left to read."""
        return sum(map(len, self.pieces))

    def marked(self) -> bytes:
        """Returns the body with a MARK for each run."""
        return MARK.join(self.pieces)

    def whole(self) -> bytes:
        runs = (b",".join([node.body for node in run]) for run in self.runs)
        return b"".join(chain.from_iterable(zip_longest(self.pieces, runs, fillvalue=b"")))

    def is_right(self, items: Sequence[Raw]) -> bool:
        """Returns whether these items of the marked body are those of the whole one, but for the marks.

        A parser that comes upon a mark as an item has understood all that stands before it, and expects an item there.
        A run is such items, so that whatever follows is understood as well as it would be after the run.
        """
        return not self.runs or items.count(RAW_MARK) == len(self.runs) == self.marked().count(MARK)


@final
class ArrivingBody:
    """Takes the known nodes out of a body, piece by piece; see the table of its states above."""

    def __init__(self, nodes: Mapping[bytes, KnownNode], last: RunText | None) -> None:
        """Takes the nodes known by what KEY finds in their bodies, to which others may be added meanwhile.

        `last` are the nodes of the last call, which are likely to come again. As long as they do, the body is compared
        with their text part by part, and not node by node.
        """
        self._known = nodes
        self._last = last
        self._followed = 0
        """The place in the text of `last` up to which the body is the same; 0 if it is not followed."""
        self._waiting: list[bytes] = []
        self._num_waiting = self._num_needed = 0
        self._at = 0
        """Where waiting bytes are looked at from: after the comma behind a run, or their beginning."""
        self._is_in_run = False
        self._sought = _FIRST
        """What the next node is found by; empty where one begins."""
        self._piece: list[bytes] = []
        self._pieces: list[bytes] = []
        self._runs: list[list[KnownNode]] = []

    def take(self, part: bytes) -> None:
        if self._last is not None and self._followed:
            if self._last.text.startswith(part, self._followed):
                self._followed += len(part)
                return
            self._stop_following(self._last)
        if not self._known:
            self._piece.append(part)
            return
        self._waiting.append(part)
        self._num_waiting += len(part)
        if self._num_waiting >= self._num_needed:
            self._go_on()

    def finish(self) -> ArrivedBody:
        """Returns the body. To be called once, at its end."""
        if self._last is not None and self._followed:
            self._stop_following(self._last)
        self._go_on(is_whole=True)
        return ArrivedBody([*self._pieces, b"".join(self._piece)], self._runs)

    def _go_on(self, *, is_whole: bool = False) -> None:
        data, offset, done, needed = b"".join(self._waiting), self._at, 0, 0
        while offset < len(data):
            if self._sought:
                place = data.find(self._sought, offset)
                if place < 0:
                    offset = max(offset, len(data) - len(self._sought) + 1)
                    break
                offset, self._sought = place + self._sought.index(b"{"), b""
            match = KEY.match(data, offset)
            node = None if match is None else self._known.get(match[1])
            end = offset + (_KEY_BYTES if match is None else 0 if node is None else len(node.body))
            if end >= len(data) and not is_whole:
                needed = end + 1
                break
            if node is None or not data.startswith(node.body, offset):
                self._is_in_run, self._sought = False, _NEXT
                continue
            if not self._is_in_run:
                self._pieces.append(b"".join([*self._piece, data[done:offset]]))
                self._piece = []
                self._runs.append([])
                self._is_in_run = True
            self._runs[-1].append(node)
            offset = done = end
            if data.startswith(b",", end):
                offset += 1
            else:
                self._is_in_run, self._sought = False, _NEXT
        if is_whole:
            offset, self._is_in_run = len(data), False
        if not self._is_in_run:
            self._piece.append(data[done:offset])
            done = offset
        self._waiting, self._num_waiting, self._at = [data[done:]], len(data) - done, offset - done
        self._num_needed = needed - done
        if self._is_in_run and self._last is not None and self._last.has(last := self._runs[-1][-1]):
            start = self._last.ends[last.place]
            if self._last.text.startswith(self._waiting[0], start):
                self._followed = start + self._num_waiting

    def _stop_following(self, last: RunText) -> None:
        """Adds the nodes that have come whole to the run. The bytes of the unfinished node wait."""
        run, unfinished = self._runs[-1], bisect_left(last.ends, self._followed)
        run += last.nodes[run[-1].place + 1 : unfinished]
        self._waiting = [last.text[last.ends[unfinished - 1] : self._followed]]
        self._num_waiting, self._num_needed, self._followed = len(self._waiting[0]), 0, 0

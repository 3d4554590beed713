"""Overlay: the cluster with the nodes of a request in it.

A caller that is not nodeCacheCapable sends its nodes with each request. They take precedence over those of the cache:
their size and labels may differ, and some may be in no cache (Cluster Autoscaler asks about nodes that do not exist
yet). The pods are those of the cache. The overlay works on a fork of the cluster, so that such a request leaves no
trace in the original, and remembers the nodes of the last request, so that unchanged nodes are not written again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, final

from extender.engine.cache.cache import CacheError
from extender.engine.cache.cluster import Cluster
from extender.engine.snapshot import Snapshot
from extender.values.concurrency.abandoned import in_thread
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node

STEP: Final = 200
"""Nodes, or changes of the original cluster, that are taken over in one step of the event loop."""


@final
class Overlay:
    """Holds a fork of the cluster, the nodes of the last request, and the nodes of the cluster without them.

    Many nodes are taken in by a thread. Meanwhile the fork is the thread's alone: changes of the original cluster wait.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster.fork()
        self._known = dict(cluster.nodes)
        self._from_request: dict[str, Node] = {}
        self._last: tuple[Node, ...] | None = None
        self.names: Sequence[str] = ()
        """Of the nodes of the last snapshot's request."""
        self._is_taking_in = False
        self._waiting: deque[Callable[[], None]] = deque()

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Applies a change of the original cluster."""
        self._in_turn(lambda: self._change(old, new))

    def assume(self, uid: str, node: str) -> None:
        """Assumes a pod on a node; one that cannot be read is left out."""
        self._in_turn(lambda: self._assume(uid, node))

    async def take_in(self, nodes: Sequence[Node]) -> None:
        """Leaves little to do to `snapshot_with`, which comes next, and holds the event loop for some milliseconds at a
        time.

        To be called by one caller at a time, who takes the snapshot in the same step of the event loop. If the call
        fails or is cancelled, changes are missing, and a thread may still be at work: the overlay must not be used any
        more.
        """
        self._is_taking_in = True
        try:
            if self._last is not nodes and self._is_long_to_lay_out(nodes):
                await in_thread(lambda _: self._lay_out(nodes))
            while len(self._waiting) > STEP:
                self._apply_waiting(STEP)
                await asyncio.sleep(0)
            await self.cluster.catch_up()
        finally:
            self._is_taking_in = False
        self._apply_waiting(len(self._waiting))

    def _is_long_to_lay_out(self, nodes: Sequence[Node]) -> bool:
        """Returns whether many nodes are written for this request, or many are laid out anew because some come or
        go.
        """
        nodes_now, wanted = self.cluster.nodes, {node.metadata.name for node in nodes}
        written = [name for name in self._from_request if name not in wanted]
        written += [name for node in nodes if nodes_now.get(name := node.metadata.name) is not node]
        if len(written) > STEP:
            return True
        return len(nodes_now) > STEP and any(
            name not in nodes_now or (name not in wanted and name not in self._known) for name in written
        )

    def _lay_out(self, nodes: Sequence[Node]) -> None:
        with suppress(CacheError):  # the snapshot that comes next has recovered
            self.snapshot_with(nodes)

    def _in_turn(self, change: Callable[[], None]) -> None:
        self._waiting.append(change)
        if not self._is_taking_in:
            self._apply_waiting(len(self._waiting))

    def _apply_waiting(self, most: int) -> None:
        for _ in range(min(most, len(self._waiting))):
            self._waiting.popleft()()

    def _assume(self, uid: str, node: str) -> None:
        with suppress(ValueError):
            self.cluster.assume(uid, node)

    def _change(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        if isinstance(new, Node):
            self._known[new.name] = new
            if new.name not in self._from_request:
                self.cluster.set_node(new)
        elif isinstance(old, Node):
            self._known.pop(old.name, None)
            if old.name not in self._from_request:
                self.cluster.drop_node(old.name)
        else:
            self.cluster.changed(old, new)

    def snapshot_with(self, nodes: Sequence[Node]) -> Snapshot:
        """Returns a snapshot of the cluster with these nodes added or replaced; it is valid until the next call.

        A node that has not changed is best passed as the same object, which makes the comparison free.
        """
        nodes = tuple(nodes)
        if self._last == nodes:  # compared by identity first
            return self.cluster.cache.update_snapshot()
        self._last = None
        self.names = [node.metadata.name for node in nodes]
        wanted = dict(zip(self.names, nodes, strict=True))
        for name in [name for name in self._from_request if name not in wanted]:
            self._give_back(name)
        self._from_request = wanted
        nodes_now = self.cluster.nodes
        for name, node in wanted.items():
            if nodes_now.get(name) is not node:
                self.cluster.set_node(node)
        self._last = nodes
        return self.cluster.cache.update_snapshot()

    def _give_back(self, name: str) -> None:
        """Makes a node that was in a request what it is in the original cluster."""
        self._from_request.pop(name, None)
        known = self._known.get(name)
        if known is None:
            self.cluster.drop_node(name)
        else:
            self.cluster.set_node(known)

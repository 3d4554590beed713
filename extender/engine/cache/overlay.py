"""Overlay: the cluster with the nodes of a request in it.

A caller that is not nodeCacheCapable sends its nodes with each request. They take precedence over those of the cache:
their size and labels may differ, and some may be in no cache (Cluster Autoscaler asks about nodes that do not exist
yet). The pods are those of the cache. The overlay works on a fork of the cluster, so that such a request leaves no
trace in the original, and remembers the nodes of the last request, so that unchanged nodes are not written again.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, final

from extender.engine.cache.cluster import Cluster
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node

NODES_IN_A_STEP: Final = 64


@final
class Overlay:
    """Holds a fork of the cluster, the nodes of the last request, and the nodes of the cluster without them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster.fork()
        self._known = dict(cluster.nodes)
        self._from_request: dict[str, Node] = {}
        self._last: tuple[Node, ...] | None = None
        self.names: Sequence[str] = ()
        """The names of the nodes of the last snapshot's request."""

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Applies a change of the original cluster."""
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

    def assume(self, uid: str, node: str) -> None:
        """Assumes a pod on a node; one that cannot be read is left out."""
        with suppress(ValueError):
            self.cluster.assume(uid, node)

    def taking(self, nodes: Sequence[Node]) -> Iterator[None]:
        """Adds or replaces these nodes, some in each step; the cluster may change between steps.

        An unchanged node is best passed as the same object, which makes the comparison free.
        """
        nodes = tuple(nodes)
        if self._last == nodes:  # compared by identity first
            return
        self._last = None
        self.names = [node.metadata.name for node in nodes]
        nodes_by_name = dict(zip(self.names, nodes, strict=True))
        for name in [name for name in self._from_request if name not in nodes_by_name]:
            self._give_back(name)
        self._from_request = nodes_by_name
        nodes_now = self.cluster.nodes
        changed = [node for name, node in nodes_by_name.items() if nodes_now.get(name) is not node]
        for place, node in enumerate(changed):
            if place % NODES_IN_A_STEP == 0:
                yield
            self.cluster.set_node(node)
        self._last = nodes

    def _give_back(self, name: str) -> None:
        del self._from_request[name]
        cluster_node = self._known.get(name)
        self.cluster.drop_node(name) if cluster_node is None else self.cluster.set_node(cluster_node)

"""Overlay: the cluster with the nodes of a request in it.

A caller that is not nodeCacheCapable sends its nodes with each request, and they win over what we know: another size, other labels, nodes
that are not in any cache (Cluster Autoscaler asks about nodes that do not exist yet). The pods stay those we know. The overlay has a cache
of its own, so that such a question leaves no trace in ours, and remembers the nodes of the last request: what did not change is not
written again.
"""

from collections.abc import Sequence
from typing import final

from extender.cluster_state import FilledCache
from extender.objects.node import Node
from extender.snapshot import Snapshot


@final
class Overlay:
    """State: a cache, and which of its nodes came from the last request."""

    def __init__(self, filled: FilledCache, known: Sequence[Node]) -> None:
        """An overlay over a cluster.

        Arguments:
            known: the cluster's own nodes.
        """
        self.filled = FilledCache(filled.cache.copy(), pending=filled.pending)
        self._known = {node.name: node for node in known}
        self._asked: dict[str, Node] = {}

    def snapshot_with(self, nodes: Sequence[Node]) -> Snapshot:
        """The cluster as if these nodes were as given. The snapshot holds until the next call.

        Pass the same object for a node that has not changed: then it is not even compared.
        """
        cache, before = self.filled.cache, self._asked
        self._asked = {node.name: node for node in nodes}
        for name, old in before.items():
            if name not in self._asked:
                known = self._known.get(name)
                if known is None:
                    cache.remove_node(old)
                elif known != old:
                    cache.update_node(old, known)
        for name, node in self._asked.items():
            old_node = before.get(name) or self._known.get(name)
            if old_node is None:
                cache.add_node(node)
            elif old_node is not node and old_node != node:
                cache.update_node(old_node, node)
        return cache.update_snapshot()

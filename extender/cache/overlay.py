"""Overlay: the cluster with the nodes of a request in it.

A caller that is not nodeCacheCapable sends its nodes with each request. They take precedence over those of the cache: their size and labels
may differ, and some may be in no cache (Cluster Autoscaler asks about nodes that do not exist yet). The pods are those of the cache. The
overlay works on a fork of the cluster, so that such a request leaves no trace in the original, and remembers the nodes of the last
request, so that unchanged nodes are not written again.
"""

from collections.abc import Sequence
from typing import final

from extender.cache.cluster import Cluster
from extender.objects.meta import HasMetadata
from extender.objects.node import Node
from extender.snapshot import Snapshot


@final
class Overlay:
    """Holds a fork of the cluster, the nodes of the last request, and the nodes of the cluster without them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster.fork()
        self._known = dict(cluster.nodes)
        self._from_request: dict[str, Node] = {}

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

    def snapshot_with(self, nodes: Sequence[Node]) -> Snapshot:
        """Returns a snapshot of the cluster with these nodes added or replaced; it is valid until the next call.

        A node that has not changed is best passed as the same object, which makes the comparison free.
        """
        before = self._from_request
        self._from_request = {node.name: node for node in nodes}
        for name in before:
            if name not in self._from_request:
                known = self._known.get(name)
                if known is None:
                    self.cluster.drop_node(name)
                else:
                    self.cluster.set_node(known)
        for node in self._from_request.values():
            self.cluster.set_node(node)
        return self.cluster.cache.update_snapshot()

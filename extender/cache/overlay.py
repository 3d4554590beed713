"""Overlay: the cluster with the nodes of a request in it.

A caller that is not nodeCacheCapable sends its nodes with each request, and they win over what we know: another size, other labels, nodes
that are not in any cache (Cluster Autoscaler asks about nodes that do not exist yet). The pods stay those we know. The overlay has a
cluster of its own, so that such a question leaves no trace in ours, and remembers the nodes of the last request: what did not change is
not written again.
"""

from collections.abc import Sequence
from typing import final

from extender.cache.cluster import Cluster
from extender.objects.meta import HasMetadata
from extender.objects.node import Node
from extender.snapshot import Snapshot


@final
class Overlay:
    """State: a cluster, which of its nodes came from the last request, and the nodes as they would be without it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster.fork()
        self._known = dict(cluster.nodes)
        self._asked: dict[str, Node] = {}

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Takes in that an object changed in the cluster underneath."""
        if isinstance(new, Node):
            self._known[new.name] = new
            if new.name not in self._asked:
                self.cluster.set_node(new)
        elif isinstance(old, Node):
            self._known.pop(old.name, None)
            if old.name not in self._asked:
                self.cluster.drop_node(old.name)
        else:
            self.cluster.changed(old, new)

    def snapshot_with(self, nodes: Sequence[Node]) -> Snapshot:
        """The cluster as if these nodes were as given. The snapshot holds until the next call.

        Pass the same object for a node that has not changed: then it is not even compared.
        """
        before = self._asked
        self._asked = {node.name: node for node in nodes}
        for name in before:
            if name not in self._asked:
                known = self._known.get(name)
                if known is None:
                    self.cluster.drop_node(name)
                else:
                    self.cluster.set_node(known)
        for node in self._asked.values():
            self.cluster.set_node(node)
        return self.cluster.cache.update_snapshot()

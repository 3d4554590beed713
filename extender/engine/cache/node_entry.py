"""NodeEntry: a node as the cache knows it, with its pods.

Upstream: pkg/scheduler/framework/types.go, NodeInfo (v1.36.2).
"""

from dataclasses import dataclass, field
from typing import final

from extender.engine.cache.image_states import ImageState
from extender.engine.snapshot.pod_attributes import HostPort
from extender.values.objects.node import Node


@final
@dataclass(slots=True)
class NodeEntry:
    """A node, or a ghost: a node that was deleted while pods are still on it."""

    owner: object
    """The cache that may modify the entry; a fork copies entries of other owners before it modifies them."""
    node: Node | None = None
    """None for a ghost."""
    slots: list[int] = field(default_factory=list)
    """The slots of the node's pods, in the order of upstream's NodeInfo."""
    images: dict[str, ImageState] = field(default_factory=dict)
    """Replaced together with the node, never modified."""
    used_ports: set[HostPort] = field(default_factory=set)
    """A set, as in upstream's NodeInfo: a pod that leaves frees its ports even if another pod uses them."""

    def owned_by(self, owner: object) -> "NodeEntry":
        """Returns a copy that another cache may modify."""
        return NodeEntry(owner, self.node, self.slots.copy(), self.images, self.used_ports.copy())

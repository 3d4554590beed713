"""NodeEntry: a node as the cache knows it, with its pods; and ImageState: which nodes have an image.

Upstream: pkg/scheduler/framework/types.go, NodeInfo; backend/cache/cache.go, addNodeImageStates (v1.36.2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from extender.engine.snapshot.columns import ImagesOnNode
from extender.engine.snapshot.pod_attributes import HostPort
from extender.values.objects.node import Node


@final
@dataclass(slots=True)
class ImageState:
    """An image in the cluster: the size that the first node with it reported, and the nodes that have it."""

    size: int
    nodes: set[str] = field(default_factory=set)
    is_shared: bool = False
    """A fork has the same set: either copies it before a change. Nodes have dozens of images."""

    def copy(self) -> "ImageState":
        self.is_shared = True
        return ImageState(self.size, self.nodes, is_shared=True)

    def own_nodes(self) -> set[str]:
        if self.is_shared:
            self.nodes, self.is_shared = self.nodes.copy(), False
        return self.nodes


def counted_images(names: Iterable[str], images: Mapping[str, ImageState], counted: ImagesOnNode) -> ImagesOnNode:
    """Returns images with their sizes and the number of nodes that have them, and keeps that in `counted`."""
    for name in names:
        if name not in counted:
            counted[name] = (images[name].size, len(images[name].nodes))
    return {name: counted[name] for name in names}


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

"""ImageState: which nodes have an image, by the cache's account."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from extender.engine.snapshot.columns import ImagesOnNode


@final
@dataclass(slots=True)
class ImageState:
    """An image in the cluster: the size that the first node with it reported, and the nodes that have it.

    Upstream: pkg/scheduler/backend/cache/cache.go, addNodeImageStates (v1.36.2).
    """

    size: int
    nodes: set[str] = field(default_factory=set)
    is_shared: bool = False
    """A fork has the same set, so that either copies it before it changes it. Kubelets report dozens of images of each
    node.
    """

    def copy(self) -> "ImageState":
        """Returns an independent state."""
        self.is_shared = True
        return ImageState(self.size, self.nodes, is_shared=True)

    def own_nodes(self) -> set[str]:
        """Returns the nodes for modification."""
        if self.is_shared:
            self.nodes, self.is_shared = self.nodes.copy(), False
        return self.nodes


def counted_images(names: Iterable[str], images: Mapping[str, ImageState], counted: ImagesOnNode) -> ImagesOnNode:
    """Returns images with their sizes and the current number of nodes that have them. What is counted is kept in
    `counted`.
    """
    for name in names:
        if name not in counted:
            counted[name] = (images[name].size, len(images[name].nodes))
    return {name: counted[name] for name in names}

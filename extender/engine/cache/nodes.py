"""The nodes of the cache: NodeEntry, a node with its pods; ImageState, an image and its nodes; NodeTree, the order in
which nodes are visited.

Upstream: pkg/scheduler/framework/types.go, NodeInfo; backend/cache, cache.go, addNodeImageStates, node_tree.go.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import final

from extender.engine.snapshot.columns import ImagesOnNode
from extender.engine.snapshot.pod_attributes import HostPort
from extender.values.golang.quoting import quoted
from extender.values.objects.node import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL, Node


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


def counted_images(
    names: Collection[str], images: Mapping[str, ImageState], image_counts: ImagesOnNode
) -> ImagesOnNode:
    """Returns images with their sizes and the number of nodes that have them, and keeps both in `image_counts`."""
    for name in names:
        if name not in image_counts:
            image_counts[name] = (images[name].size, len(images[name].nodes))
    return dict(zip(names, map(image_counts.__getitem__, names), strict=True))


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


def zone_key(node: Node) -> str:
    """Returns region and zone as one key; "" if the node has neither label.

    Upstream: staging/src/k8s.io/component-helpers/node/topology/helpers.go, GetZoneKey (v1.36).
    """
    labels = node.metadata.labels
    zone = labels.get(BETA_ZONE_LABEL) or labels.get(ZONE_LABEL, "")
    region = labels.get(BETA_REGION_LABEL) or labels.get(REGION_LABEL, "")
    return f"{region}:\x00:{zone}" if region or zone else ""


@final
class NodeTree:
    """Holds the zones in the order they were first seen, and the nodes in the order they were added to their zone."""

    __slots__ = ("_zones", "num_nodes")

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self.num_nodes = 0

    def copy(self) -> "NodeTree":
        other = NodeTree()
        other._zones = {zone: dict(names) for zone, names in self._zones.items()}
        other.num_nodes = self.num_nodes
        return other

    def add(self, node: Node) -> None:
        """Appends the node to its zone; a name that is already there keeps its place."""
        names = self._zones.setdefault(zone_key(node), {})
        if node.name not in names:
            names[node.name] = None
            self.num_nodes += 1

    def remove(self, node: Node) -> str | None:
        """Removes the node from the zone of its labels; returns upstream's error text if it is not there, else None."""
        zone = zone_key(node)
        names = self._zones.get(zone, {})
        if node.name not in names:
            return f"node {quoted(node.name)} in group {quoted(zone)} was not found"
        del names[node.name]
        self.num_nodes -= 1
        if not names:
            del self._zones[zone]
        return None

    def update(self, old: Node | None, new: Node) -> None:
        """Moves a node whose zone changed to the end of its new zone."""
        if old is None or zone_key(old) != zone_key(new):
            if old is not None:
                self.remove(old)
            self.add(new)

    def names(self) -> list[str]:
        """Returns all names in visiting order: the first node of each zone, then the second of each, and so on."""
        turns = [turn for names in self._zones.values() for turn in enumerate(names)]
        return [name for _, name in sorted(turns, key=itemgetter(0))]

"""NodeTree: the order in which nodes are visited, round-robin over the zones."""

from itertools import chain
from typing import final

from extender.values.golang.quoting import quoted
from extender.values.objects.node import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL, Node


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
    """Holds the zones in the order they were first seen, and the nodes in the order they were added to their zone.

    Upstream: pkg/scheduler/backend/cache/node_tree.go (v1.36.2).
    """

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
        zones = [list(names) for names in self._zones.values()]
        listed: list[str] = []
        turn = 0
        while zones:
            # As many turns as the shortest zone has left are taken at once.
            turns = min(map(len, zones))
            listed += chain.from_iterable(zip(*(names[turn:turns] for names in zones), strict=True))
            zones, turn = [names for names in zones if len(names) > turns], turns
        return listed


def common_length(names: list[str], others: list[str]) -> int:
    """Returns how many of the first names are the same in both lists."""
    low, high = 0, min(len(names), len(others))
    while low < high:
        middle = (low + high + 1) // 2
        if names[low:middle] == others[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

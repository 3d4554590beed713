"""Which nodes a view shows, and in which order: grouped by zone, pool or label, sorted by fullness, and filtered by
words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final
from urllib.parse import urlencode

from api.ui.resources import Resource, usage
from extender.answers.cluster_map import NodeOnMap, natural

BY_ZONE: Final = "zone"
SORTS: Final[Mapping[str, str]] = {"": "name", "fullest": "fullest first", "emptiest": "emptiest first"}
POOLS: Final = (
    "karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)  # fmt: skip
"""The labels that name pools, as providers set them; they are offered first."""
MOST_GROUPS: Final = 60
"""Labels with more values than this group nothing."""


@final
@dataclass(frozen=True, slots=True)
class GroupOfNodes:
    """Nodes that are shown together."""

    title: str
    nodes: tuple[NodeOnMap, ...]
    words: str
    """The filter that finds these nodes."""


@final
@dataclass(frozen=True, slots=True)
class NodeSelection:
    """What an address asks for.

    Attributes:
        by: the resource that is shown.
        group: `zone` or the key of a label.
        sort: a key of `SORTS`.
        words: of the filter.
    """

    by: Resource = "cpu"
    group: str = BY_ZONE
    sort: str = ""
    words: str = ""

    def query(self, **changed: str) -> str:
        """Returns the address of this view with some parts changed, from the question mark on."""
        asked = {"by": self.by, "group": self.group, "sort": self.sort, "node": self.words, **changed}
        kept = {name: value for name, value in asked.items() if value and (name, value) != ("group", BY_ZONE)}
        return f"?{urlencode(kept)}" if kept else "?"


def chosen(nodes: Iterable[NodeOnMap], words: str) -> tuple[NodeOnMap, ...]:
    """Returns the nodes on which all words are found: in the name, the zone, a taint, a condition or a label. `-word`
    is not found.
    """
    wanted = words.lower().split()
    return tuple(node for node in nodes if _is_chosen(node, wanted)) if wanted else tuple(nodes)


def _is_chosen(node: NodeOnMap, wanted: Sequence[str]) -> bool:
    labels = (f"{key}={value}" for key, value in node.labels.items())
    facts = "\n".join(
        (node.name, node.zone, *node.taints, *node.conditions, "cordoned" * node.cordoned, *labels)
    ).lower()
    return all(word[1:] not in facts if word.startswith("-") and len(word) > 1 else word in facts for word in wanted)


def groups_of(nodes: Sequence[NodeOnMap], selection: NodeSelection) -> tuple[GroupOfNodes, ...]:
    """Returns the nodes in groups by name, each sorted as asked; nodes without the label come first, as those without a
    zone do.
    """
    key = selection.group
    together: dict[str, list[NodeOnMap]] = {}
    for node in nodes:
        together.setdefault(node.zone if key == BY_ZONE else node.labels.get(key, ""), []).append(node)
    found = []
    for value, members in sorted(together.items(), key=lambda each: natural(each[0])):
        words = value if key == BY_ZONE else f"{key}={value}"
        found.append(GroupOfNodes(value or f"no {key}", _sorted(members, selection), words if value else ""))
    return tuple(found)


def _sorted(nodes: list[NodeOnMap], selection: NodeSelection) -> tuple[NodeOnMap, ...]:
    if not selection.sort:
        return tuple(nodes)

    def fullness(node: NodeOnMap) -> float:
        requested, whole = usage(node, selection.by)
        return requested / whole if whole else -1.0

    return tuple(sorted(nodes, key=fullness, reverse=selection.sort == "fullest"))


def group_keys(nodes: Iterable[NodeOnMap]) -> tuple[str, ...]:
    """Returns what the nodes can be grouped by: the zone, pools, and labels with a few values that differ."""
    values: dict[str, set[str]] = {}
    for node in nodes:
        for key, value in node.labels.items():
            seen = values.setdefault(key, set())
            if len(seen) <= MOST_GROUPS:
                seen.add(value)
    labels = sorted(
        (key for key, seen in values.items() if 1 < len(seen) <= MOST_GROUPS), key=lambda key: (key not in POOLS, key)
    )
    return (BY_ZONE, *labels)

"""The table of nodes: which of them a view shows, in which groups, and the orders in which they are sorted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, final

from api.ui.frame import address
from api.ui.resources import Resource, resource_words, usage
from api.ui.wording import share
from extender.answers.cluster_map import natural
from extender.answers.overviews import NodeOnMap
from extender.values import limits

BY_ZONE: Final = "zone"
SORTS: Final[Mapping[str, str]] = {"": "name", "fullest": "fullest first", "emptiest": "emptiest first"}
POOLS: Final = (
    "karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)  # fmt: skip
"""The labels that name pools, as providers set them; they are offered first."""


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
    """What an address asks for."""

    by: Resource = "cpu"
    group: str = BY_ZONE
    """`zone` or the key of a label."""
    sort: str = ""
    """A key of `SORTS`."""
    words: str = ""
    """The text by which the nodes are filtered."""

    def query(self, **changed: str) -> str:
        """Returns the address of this view with some parts changed, from the question mark on."""
        parameters = {"by": self.by, "group": self.group, "sort": self.sort, "node": self.words, **changed}
        return (
            address("", **{**parameters, "group": "" if parameters["group"] == BY_ZONE else parameters["group"]}) or "?"
        )


def chosen(nodes: Iterable[NodeOnMap], words: str) -> tuple[NodeOnMap, ...]:
    """Returns the nodes in whose names, zone, taints, conditions and labels all words are found; `-word` is not."""
    filter_words = words.lower().split()
    return tuple(node for node in nodes if not filter_words or _is_chosen(node, filter_words))


def _is_chosen(node: NodeOnMap, filter_words: Sequence[str]) -> bool:
    labels = (f"{key}={value}" for key, value in node.labels.items())
    facts = "\n".join(
        (node.name, node.zone, *node.taints, *node.conditions, "cordoned" * node.cordoned, *labels)
    ).lower()
    return all(
        word[1:] not in facts if word.startswith("-") and len(word) > 1 else word in facts for word in filter_words
    )


def groups_of(nodes: Sequence[NodeOnMap], selection: NodeSelection) -> tuple[GroupOfNodes, ...]:
    """Returns the nodes in groups by name, each sorted as asked; those without the label or the zone come first."""
    key = selection.group
    together: dict[str, list[NodeOnMap]] = {}
    for node in nodes:
        together.setdefault(node.zone if key == BY_ZONE else node.labels.get(key, ""), []).append(node)
    groups = []
    for value, members in sorted(together.items(), key=lambda item: natural(item[0])):
        words = value if key == BY_ZONE else f"{key}={value}"
        groups.append(GroupOfNodes(value or f"no {key}", _sorted(members, selection), words if value else ""))
    return tuple(groups)


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
            label_values = values.setdefault(key, set())
            if len(label_values) <= limits.NODE_GROUPS:
                label_values.add(value)
    labels = sorted(
        (key for key, label_values in values.items() if 1 < len(label_values) <= limits.NODE_GROUPS),
        key=lambda key: (key not in POOLS, key),
    )
    return (BY_ZONE, *labels)


DEFAULT: Final = "zone"
"""The order of the map: by zone, then by name."""

_Key = Callable[[NodeOnMap], int] | Callable[[NodeOnMap], str] | Callable[[NodeOnMap], tuple[tuple[int, str], ...]]


@final
@dataclass(frozen=True, slots=True)
class _Column:
    words: str
    key: _Key
    is_number: bool = True


_NAMES: Final[Mapping[str, _Column]] = {
    "name": _Column("node", lambda node: natural(node.name), is_number=False),
    "zone": _Column("zone", lambda node: node.zone, is_number=False),
}


def columns_for(resources: Iterable[Resource]) -> dict[str, _Column]:
    """Returns the columns of a table: name, zone, and of each resource what is requested and what is free."""
    columns = dict(_NAMES)
    for resource in resources:
        words = resource_words(resource)
        columns[resource] = _Column("pods" if resource == "pods" else f"{words} requested", partial(_share, resource))
        columns[f"{resource}-free"] = _Column(f"{words} free", partial(_free, resource))
    return columns


def _share(resource: Resource, node: NodeOnMap) -> int:
    requested, whole = usage(node, resource)
    if resource == "pods":
        return requested
    return share(requested, whole) if whole else -1


def _free(resource: Resource, node: NodeOnMap) -> int:
    requested, whole = usage(node, resource)
    return whole - requested


class OrderError(ValueError):
    """There is no such order; the message lists the orders."""


def in_order(nodes: Iterable[NodeOnMap], order: str, columns: Mapping[str, _Column]) -> list[NodeOnMap]:
    """Returns the nodes sorted by a column, or with `-` before its name the other way round; equal ones stay in the
    order of the map. Raises OrderError if there is no such column.
    """
    column = order.removeprefix("-") or DEFAULT
    if column not in columns or order == "-":
        raise OrderError(f"Nodes can be sorted by {', '.join(columns)}; a - before the name reverses the order.")
    return sorted(nodes, key=columns[column].key, reverse=order.startswith("-"))

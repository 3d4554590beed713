"""The nodes that refused a pod for least."""

from typing import Final

import numpy as np

from extender.answers.lacks import Room
from extender.answers.refusals import Refusals
from extender.answers.types import NearNode
from extender.snapshot.axes import Index

MAX_NEAREST: Final = 5


def nearest(refusals: Refusals, room: Room, limit: int = MAX_NEAREST) -> tuple[NearNode, ...]:
    """Nodes where evicting pods might help come first, then those that fewest plugins refuse, then those that are short of least."""
    resources = refusals.short_resources
    found: list[NearNode] = []
    for place in nearest_places(refusals, room)[:limit].tolist():
        by_plugin = refusals.of_node(place)
        reasons = dict.fromkeys(reason for of_plugin in by_plugin.values() for reason in of_plugin)
        lacks = tuple(room.lack(resource, place) for resource in resources if room.asks(resource) > room.free(resource)[place])
        name = refusals.evaluation.snapshot.nodes.objects[place].name
        found.append(NearNode(node=name, plugins=tuple(by_plugin), reasons=tuple(reasons), lacks=lacks))
    return tuple(found)


def nearest_places(refusals: Refusals, room: Room) -> Index:
    """The places on axis N of all nodes that are refused, nearest first."""
    missing = np.zeros(len(refusals.refused))
    for resource in refusals.short_resources:
        missing += room.share_missing(resource)
    # Nodes that no Filter minds by itself count as refused by one: PreFilter left them out, or their room is promised.
    order = np.lexsort((missing, np.maximum(refusals.counts, 1), refusals.hopeless))
    return order[refusals.refused[order]]

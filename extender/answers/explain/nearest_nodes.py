"""The nodes that come closest to taking a pod."""

from typing import Final

import numpy as np

from extender.answers.explain.headroom import Headroom
from extender.answers.explain.refusals import Refusals
from extender.answers.types import NearNode
from extender.snapshot.axes import Index

MAX_NEAREST: Final = 5


def nearest(refusals: Refusals, headroom: Headroom, limit: int = MAX_NEAREST) -> tuple[NearNode, ...]:
    """Returns the nearest nodes, in the order of `nearest_places`, with what each plugin has against them."""
    resources = refusals.short_resources
    found: list[NearNode] = []
    for place in nearest_places(refusals, headroom)[:limit].tolist():
        by_plugin = refusals.of_node(place)
        reasons = dict.fromkeys(reason for of_plugin in by_plugin.values() for reason in of_plugin)
        short = [resource for resource in resources if headroom.requested(resource) > headroom.free(resource)[place]]
        lacks = tuple(headroom.lack(resource, place) for resource in short)
        name = refusals.evaluation.snapshot.nodes.objects[place].name
        found.append(NearNode(node=name, plugins=tuple(by_plugin), reasons=tuple(reasons), lacks=lacks))
    return tuple(found)


def nearest_places(refusals: Refusals, headroom: Headroom) -> Index:
    """Returns the places on axis N of all nodes that are refused, nearest first.

    Nodes where evictions might help come before others, then nodes that fewer plugins refuse, then nodes that lack less.
    """
    missing = np.zeros(len(refusals.refused))
    for resource in refusals.short_resources:
        missing += headroom.share_missing(resource)
    # A node that no Filter refuses by itself counts as refused by one: PreFilter left it out, or pods are nominated to it.
    order = np.lexsort((missing, np.maximum(refusals.counts, 1), refusals.hopeless))
    return order[refusals.refused[order]]

"""The nodes that come closest to taking a pod."""

from typing import Final

import numpy as np

from extender.answers.explain.advice import Advice
from extender.answers.explain.refusals import Refusals
from extender.answers.types import NearNode
from extender.engine.snapshot.axes import Index

MAX_NEAREST: Final = 5


def nearest_nodes(refusals: Refusals, advice: Advice, limit: int = MAX_NEAREST) -> tuple[NearNode, ...]:
    """Returns the nearest nodes, in the order of `nearest_places`, with the reasons of each plugin that refuses
    them.
    """
    found: list[NearNode] = []
    for place in nearest_places(refusals, advice)[:limit].tolist():
        by_plugin = refusals.of_node(place)
        reasons = dict.fromkeys(reason for of_plugin in by_plugin.values() for reason in of_plugin)
        name = refusals.evaluation.snapshot.nodes.objects[place].name
        found.append(NearNode(node=name, plugins=tuple(by_plugin), reasons=tuple(reasons), lacks=advice.lacks(place)))
    return tuple(found)


def nearest_places(refusals: Refusals, advice: Advice) -> Index:
    """Returns the places on axis N of all nodes that are refused, nearest first.

    Nodes where evictions might help come before others, then nodes that fewer plugins refuse, then nodes that lack
    less.
    """
    # A node that no Filter refuses by itself counts as refused by one: PreFilter left it out, or pods are nominated to
    # it.
    order = np.lexsort((advice.share_missing, np.maximum(refusals.counts, 1), refusals.hopeless))
    return order[refusals.refused[order]]

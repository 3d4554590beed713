"""The nodes that refused a pod for least."""

from typing import Final

import numpy as np

from extender.answers.lacks import Room, resource_of
from extender.answers.types import NearNode
from extender.evaluation import Evaluation
from extender.framework import Code, NodeStatuses, Verdicts
from extender.objects.pod import Pod
from extender.runtime.framework import PreFilterOutcome
from extender.runtime.nominations import Nominations
from extender.snapshot.axes import Mask

MAX_NEAREST: Final = 5


def nearest(evaluation: Evaluation, pod: Pod, nominations: Nominations, limit: int = MAX_NEAREST) -> tuple[NearNode, ...]:
    """Nodes where evicting pods might help come first, then those that fewest plugins refuse, then those that are short of least.

    Nothing where PreFilter has refused the pod: no node is nearer than any other then.

    Arguments:
        nominations: those that the evaluation has counted.
    """
    by_plugin, statuses, pre_filter = evaluation.by_plugin, evaluation.statuses, evaluation.pre_filter
    if not by_plugin or statuses is None or pre_filter is None:
        return ()
    nodes = evaluation.snapshot.nodes
    refusals = np.sum([~verdicts.ok for verdicts in by_plugin.values()], axis=0, dtype=np.int64)
    hopeless = np.logical_or.reduce([verdicts.codes == Code.UNSCHEDULABLE_AND_UNRESOLVABLE for verdicts in by_plugin.values()])
    hopeless |= _left_out(evaluation, pre_filter)
    room = Room(evaluation.snapshot, pod, nominations)
    resources = _resources_that_are_short(by_plugin, statuses)
    missing = np.sum([room.share_missing(resource) for resource in resources], axis=0) + np.zeros(len(nodes))
    # Nodes that no Filter minds by itself count as refused by one: PreFilter left them out, or their room is promised.
    order = np.lexsort((missing, np.maximum(refusals, 1), hopeless))
    refused = np.ones(len(nodes), np.bool_)
    refused[[nodes.index[name] for name in evaluation.feasible]] = False
    found: list[NearNode] = []
    for place in order[refused[order]][:limit].tolist():
        plugins, reasons = _refused_by(by_plugin, statuses, pre_filter, nodes.objects[place].name, place)
        lacks = tuple(room.lack(resource, place) for resource in resources if room.asks(resource) > room.free(resource)[place])
        found.append(NearNode(node=nodes.objects[place].name, plugins=plugins, reasons=reasons, lacks=lacks))
    return tuple(found)


def _left_out(evaluation: Evaluation, pre_filter: PreFilterOutcome) -> Mask:
    """(N,) nodes that PreFilter has left out."""
    nodes = evaluation.snapshot.nodes
    if pre_filter.node_names is None:
        return np.zeros(len(nodes), np.bool_)
    left_out = np.ones(len(nodes), np.bool_)
    left_out[[nodes.index[name] for name in pre_filter.node_names if name in nodes.index]] = False
    return left_out


def _resources_that_are_short(by_plugin: dict[str, Verdicts], statuses: NodeStatuses) -> list[str]:
    """What any node was refused for lack of, sorted: resources that the profile ignores are not among them."""
    reasons = {reason for verdicts in by_plugin.values() for reason, _ in verdicts.reasons}
    reasons |= {reason for status in statuses.explicit.values() for reason in status.reasons}
    return sorted({resource_of(reason) for reason in reasons} - {""})


def _refused_by(
    by_plugin: dict[str, Verdicts], statuses: NodeStatuses, pre_filter: PreFilterOutcome, name: str, place: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The plugins that refuse a node, and their reasons."""
    alone = {plugin: verdicts.reasons_of(place) for plugin, verdicts in by_plugin.items() if verdicts.codes[place] != Code.SUCCESS}
    status = statuses.of(name)
    if name in statuses.explicit and status.plugin not in alone:
        alone[status.plugin] = list(status.reasons)
    elif name not in statuses.explicit and not alone.keys() & set(pre_filter.narrowed_by):
        alone |= {plugin: list(status.reasons) for plugin in pre_filter.narrowed_by}
    reasons = dict.fromkeys(reason for of_plugin in alone.values() for reason in of_plugin)
    return tuple(alone), tuple(reasons)

"""The verdicts of the Filters as tables: how many nodes each plugin left over, and what each answers about every
node.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from extender.answers.types import NodePicture, PluginVerdict, ReasonCount, WaterfallStep
from extender.engine.evaluation.evaluate import Evaluation
from extender.engine.framework import Code, Status, Verdicts
from extender.engine.runtime.cycle import PreFilterOutcome
from extender.engine.snapshot.axes import Index


def reason_counts(reasons: Mapping[str, int]) -> tuple[ReasonCount, ...]:
    """Returns reason -> number of nodes as a list: the reasons of the most nodes first."""
    in_order = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return tuple(ReasonCount(reason=reason, nodes=nodes) for reason, nodes in in_order)


# The waterfall: each node counts for the first plugin that refused it.


def waterfall(evaluation: Evaluation) -> tuple[WaterfallStep, ...]:
    """Returns a step for each plugin that refused nodes, in the profile's order; refused and feasible nodes together
    are all nodes.

    Where PreFilter refused the pod, or narrowed the search, that is the first step. There are no steps where no plugin
    was asked.
    """
    statuses, pre_filter = evaluation.statuses, evaluation.pre_filter
    if statuses is None or pre_filter is None:
        return ()
    # Plugins come in the profile's order. Those that are skipped for this pod are missing, and have refused no node.
    of_filters: dict[str, Counter[Status]] = {plugin: Counter() for plugin in evaluation.by_plugin or {}}
    outside = len(evaluation.snapshot.nodes) - len(evaluation.feasible)
    for status, nodes in statuses.counts():
        of_filters[status.plugin][status] += nodes
        outside -= nodes
    before = (_pre_filter_plugins(pre_filter), Counter({statuses.absent: outside}))
    left = len(evaluation.snapshot.nodes)
    steps: list[WaterfallStep] = []
    for plugin, counts in (before, *of_filters.items()):
        refused = counts.total()
        if refused:
            left -= refused
            steps.append(_step(plugin, counts, refused, left))
    return tuple(steps)


def _step(plugin: str, counts: Counter[Status], refused: int, left: int) -> WaterfallStep:
    reasons: Counter[str] = Counter()
    for status, nodes in counts.items():
        for reason in status.reasons:
            reasons[reason] += nodes
    unresolvable = sum(nodes for status, nodes in counts.items() if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    return WaterfallStep(
        plugin=plugin, reasons=reason_counts(reasons), refused=refused, unresolvable=unresolvable, left=left
    )


def _pre_filter_plugins(pre_filter: PreFilterOutcome) -> str:
    """Returns the plugin whose PreFilter refused the pod, or those that narrowed the search."""
    return pre_filter.status.plugin or ", ".join(pre_filter.narrowed_by)


# The picture: node x plugin, each Filter asked by itself.


def picture(evaluation: Evaluation) -> NodePicture:
    """Returns all nodes in visiting order and the Filters in the profile's, without those that are skipped for the pod.

    Each distinct verdict is written once. The picture has no columns if no Filter was asked.
    """
    by_plugin = evaluation.by_plugin or {}
    names = tuple(node.name for node in evaluation.snapshot.nodes.objects)
    if not by_plugin:
        return NodePicture(plugins=(), nodes=names, verdicts=(), cells=((),) * len(names))
    distinct: list[PluginVerdict] = []
    columns: list[Index] = []
    for plugin, verdicts in by_plugin.items():
        first, which = _distinct_verdicts(verdicts)
        place_of = np.full(len(first), -1)
        for place, row in enumerate(first.tolist()):
            code = Code(int(verdicts.codes[row]))
            if code is not Code.SUCCESS:
                place_of[place] = len(distinct)
                distinct.append(PluginVerdict(plugin=plugin, code=str(code), reasons=tuple(verdicts.reasons_of(row))))
        columns.append(place_of[which])
    cells = tuple(zip(*(column.tolist() for column in columns), strict=True))
    return NodePicture(plugins=tuple(by_plugin), nodes=names, verdicts=tuple(distinct), cells=cells)


def _distinct_verdicts(verdicts: Verdicts) -> tuple[Index, Index]:
    """(D,) a row for each distinct verdict, and (R,) which of them each row has."""
    which = verdicts.codes.astype(np.int64)
    first: Index = np.zeros(0, np.intp)
    for held in (None, *(mask for _, mask in verdicts.reasons)):
        # One reason after the other. The verdicts get new numbers each time, so that any number of reasons fits into an
        # int64.
        joined = which if held is None else 2 * which + held
        _, first, which = np.unique(joined, return_index=True, return_inverse=True)
    return first, which

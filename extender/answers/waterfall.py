"""From all nodes to those that are left, plugin by plugin: each node counts for the first plugin that refused it."""

from collections import Counter
from collections.abc import Collection, Iterator

from extender.answers.reasons import counted
from extender.answers.types import WaterfallStep
from extender.evaluation.evaluate import Evaluation
from extender.framework import Code, Status
from extender.runtime.framework import PreFilterOutcome


def waterfall(evaluation: Evaluation) -> tuple[WaterfallStep, ...]:
    """A step for each plugin that refused nodes, in the profile's order; what the steps refused and what is feasible is all nodes.

    Where PreFilter refused the pod, or narrowed the search, that is the first step. Nothing where no plugin was asked.
    """
    statuses, pre_filter = evaluation.statuses, evaluation.pre_filter
    if statuses is None or pre_filter is None:
        return ()
    # Plugins come in the profile's order. Those that have nothing to say of such a pod are missing, and have refused nobody.
    of_filters: dict[str, Counter[Status]] = {plugin: Counter() for plugin in evaluation.by_plugin or {}}
    for status, nodes in _distinct(statuses.explicit.values()):
        of_filters[status.plugin][status] += nodes
    outside = len(evaluation.snapshot.nodes) - len(statuses.explicit) - len(evaluation.feasible)
    before = (_who_looked_first(pre_filter), Counter({statuses.absent: outside}))
    left = len(evaluation.snapshot.nodes)
    steps: list[WaterfallStep] = []
    for plugin, counts in (before, *of_filters.items()):
        refused = counts.total()
        if refused:
            left -= refused
            steps.append(_step(plugin, counts, refused, left))
    return tuple(steps)


def _distinct(statuses: Collection[Status]) -> Iterator[tuple[Status, int]]:
    """Each status object and how often it is there: nodes that were refused alike share one, or some."""
    counts = Counter(map(id, statuses))
    objects = {id(status): status for status in statuses}
    return ((objects[key], count) for key, count in counts.items())


def _step(plugin: str, counts: Counter[Status], refused: int, left: int) -> WaterfallStep:
    reasons: Counter[str] = Counter()
    for status, nodes in counts.items():
        for reason in status.reasons:
            reasons[reason] += nodes
    unresolvable = sum(nodes for status, nodes in counts.items() if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    return WaterfallStep(plugin=plugin, reasons=counted(reasons), refused=refused, unresolvable=unresolvable, left=left)


def _who_looked_first(pre_filter: PreFilterOutcome) -> str:
    """The plugin whose PreFilter refused the pod, or those that narrowed the search."""
    return pre_filter.status.plugin or ", ".join(pre_filter.narrowed_by)

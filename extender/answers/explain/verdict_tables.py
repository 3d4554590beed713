"""Verdicts as tables: how many nodes each plugin left over, and what each says of every node; and scores."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from extender.answers.phrases import plural
from extender.answers.profiles import stand_in_notes
from extender.answers.types import (
    Attempt,
    Explanation,
    NodePicture,
    NodeScore,
    PluginScore,
    PluginVerdict,
    ReasonCount,
    WaterfallStep,
)
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.framework import Code, Status, Verdicts
from extender.engine.snapshot.axes import Index, Int64s
from extender.values import limits
from extender.values.objects.pod import Pod

if TYPE_CHECKING:
    from extender.answers.trial import Trial

OTHER_REASONS: Final = "other reasons"


def reason_counts(reasons: Mapping[str, int]) -> tuple[ReasonCount, ...]:
    """Returns reason -> number of nodes as a list: the reasons of the most nodes first."""
    in_order = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return tuple(ReasonCount(reason=reason, nodes=nodes) for reason, nodes in in_order)


# The waterfall: each node counts for the first plugin that refused it.


def waterfall(evaluation: Evaluation) -> tuple[WaterfallStep, ...]:
    """Returns a step for each plugin that refused nodes, in the profile's order; refused and feasible nodes together
    are all nodes. A PreFilter that refused or narrowed comes first; without a plugin asked there are no steps.
    """
    statuses, pre_filter = evaluation.statuses, evaluation.pre_filter
    if statuses is None or pre_filter is None:
        return ()
    # Plugins that are skipped for this pod are missing, and have refused no node.
    of_filters: dict[str, Counter[Status]] = {plugin: Counter() for plugin in evaluation.by_plugin or {}}
    outside = len(evaluation.snapshot.nodes) - len(evaluation.feasible)
    for status, nodes in statuses.counts():
        of_filters[status.plugin][status] += nodes
        outside -= nodes
    early = pre_filter.status.plugin or ", ".join(pre_filter.narrowed_by)
    before = (early, Counter({statuses.absent: outside}))
    num_left = len(evaluation.snapshot.nodes)
    steps: list[WaterfallStep] = []
    for plugin, counts in (before, *of_filters.items()):
        refused = counts.total()
        if refused:
            num_left -= refused
            steps.append(step(plugin, counts, num_left))
    return tuple(steps)


def step(
    plugin: str, counts: Mapping[Status, int], num_left: int, *, refused: int | None = None, limit: int | None = None
) -> WaterfallStep:
    """Returns one step; `refused` is less than all nodes of the statuses, and at most `limit` reasons are named."""
    reasons = Counter[str]()
    for status, nodes in counts.items():
        for reason in dict.fromkeys(status.reasons):
            reasons[reason] += nodes
    listed = reason_counts(reasons)
    if limit is not None and len(listed) > limit:
        apart = {reason_count.reason for reason_count in listed[:limit]}
        num_other_nodes = sum(nodes for status, nodes in counts.items() if not apart.issuperset(status.reasons))
        listed = (*listed[:limit], ReasonCount(reason=OTHER_REASONS, nodes=num_other_nodes))
    refused = sum(counts.values()) if refused is None else refused
    for_good = sum(nodes for status, nodes in counts.items() if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    return WaterfallStep(
        plugin=plugin, reasons=listed, refused=refused, unresolvable=min(refused, for_good), left=num_left
    )


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
    for has_reason in (None, *(mask for _, mask in verdicts.reasons)):
        # One reason after the other. The verdicts get new numbers each time, so that any number of reasons fits into an
        # int64.
        joined = which if has_reason is None else 2 * which + has_reason
        _, first, which = np.unique(joined, return_index=True, return_inverse=True)
    return first, which


def best_scores(evaluation: Evaluation) -> tuple[NodeScore, ...]:
    """Returns the nodes with the highest totals, best first; equal ones in visiting order."""
    scores = evaluation.scores
    if scores is None:
        return ()
    # Stable, so that nodes with equal totals stay in the order in which the scheduler visits them.
    best = np.argsort(-scores.total, kind="stable")[: limits.SCORES]
    names = [evaluation.feasible[row] for row in best.tolist()]
    return node_scores(names, scores.total[best], scores.weights, scores.raw, scores.weighted, best)


def node_scores(
    nodes: Sequence[str],
    totals: Int64s,
    weights: Mapping[str, int],
    raw: Mapping[str, Int64s],
    weighted: Mapping[str, Int64s],
    rows: Index | slice = slice(None),
) -> tuple[NodeScore, ...]:
    """Returns the scores of nodes, plugin by plugin; `raw` and `weighted` have them in these rows."""
    of_node: list[dict[str, PluginScore]] = [{} for _ in nodes]
    others = totals.copy()
    for name, weight in weights.items():
        others -= weighted[name][rows]
        scores = zip(of_node, raw[name][rows].tolist(), weighted[name][rows].tolist(), strict=True)
        for plugins, before, after in scores:
            plugins[name] = PluginScore(raw=before, normalized=after // weight, weight=weight, weighted=after)
    return tuple(
        NodeScore(node=node, total=total, plugins=plugins, others=other)
        for node, total, plugins, other in zip(nodes, totals.tolist(), of_node, others.tolist(), strict=True)
    )


def as_decided(answer: Explanation, attempts: Iterable[Attempt]) -> Explanation | None:
    """Returns the explanation with the scores of the decision that chose the node, if it is among the attempts."""
    for attempt in attempts:
        if attempt.outcome == "Scheduled" and attempt.pod.uid == answer.pod.uid and attempt.node == answer.node:
            if attempt.feasible == 1:
                text = "It was the only node that passed the filters, so nodes were not scored."
                return msgspec.structs.replace(answer, scores_of="decision", choice=text)
            if not attempt.scores:
                return None
            text = _sentence(attempt.node, attempt.scores, attempt.feasible, "had")
            return msgspec.structs.replace(answer, scores=attempt.scores, scores_of="decision", choice=text)
    return None


async def worked_out_again(trial: "Trial", pod: Pod, answer: Explanation) -> Explanation:
    """Returns the explanation with the scores that nodes have now, as if the pod had no node, in a trial without it."""
    if trial.frameworks.get(pod.scheduler_name) is None:
        return answer
    evaluation = await evaluate(trial.cycle(pod))
    scores, fits = best_scores(evaluation), answer.node in evaluation.feasible
    if not fits:
        fitting_nodes = plural(len(evaluation.feasible), "node")
        text = f"As things are now, {answer.node} would refuse this pod; it would find {fitting_nodes}."
    elif len(scores) == 1:
        scores = ()
        text = "No other node would pass now, so nothing would be scored."
    else:
        text = f"As things are now, without this pod, {_sentence(answer.node, scores, len(evaluation.feasible), 'has')}"
    notes = (*answer.notes, *stand_in_notes(trial.frameworks))
    return msgspec.structs.replace(answer, scores=scores, scores_of="now", choice=text, notes=notes)


def _sentence(node: str, scores: Sequence[NodeScore], feasible: int, had: str) -> str:
    """Returns a sentence about the node among the best of `feasible` nodes; `had` is "has" or "had"."""
    score = next((one for one in scores if one.node == node), None)
    rivals = [one for one in scores if one.node != node]
    best, highest = rivals[0], f"{had} the highest score of {plural(feasible, 'node')}"
    if score is None:
        return f"{best.node} {highest}, {best.total}, and {node} is not among the best {len(scores)}."
    if score.total < best.total:
        return f"{best.node} {highest}, {best.total}, and {node} {had} {score.total}. {_difference(best, score)}"
    equals = sum(rival.total == score.total for rival in rivals)
    if equals:
        more = equals == len(rivals) < feasible - 1
        equal = f"at least {equals} others" if more else "another node" if equals == 1 else f"{equals} others"
        return f"{node} {highest}, {score.total}, as {equal} {had}; the choice among equal nodes is random."
    return f"{node} {highest}, {score.total}; {best.node} came next with {best.total}. {_difference(score, best)}"


def _difference(more: NodeScore, less: NodeScore) -> str:
    names = dict.fromkeys((*more.plugins, *less.plugins))
    apart = {name: _weighted(more, name) - _weighted(less, name) for name in names}
    name = max(apart, key=lambda name: apart[name], default="")
    if not name or apart[name] <= more.others - less.others:
        return "Extenders made the difference."
    return f"{name} made the largest difference: {_weighted(more, name)} against {_weighted(less, name)}."


def _weighted(score: NodeScore, plugin: str) -> int:
    part = score.plugins.get(plugin)
    return 0 if part is None else part.weighted

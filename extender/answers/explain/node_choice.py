"""Why a pod is on its node: the scores of the best nodes, plugin by plugin. They are those of the decision where they
were kept, and are otherwise worked out again.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from extender.answers.profiles import stand_in_notes
from extender.answers.trial import Trial
from extender.answers.types import Attempt, Explanation, NodeScore, PluginScore
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.snapshot.axes import Int64s
from extender.values import limits
from extender.values.objects.pod import Pod


def best_scores(evaluation: Evaluation) -> tuple[NodeScore, ...]:
    """Returns the nodes with the highest totals, best first; equal ones in visiting order."""
    scores = evaluation.scores
    if scores is None:
        return ()
    # Stable, so that nodes with equal totals stay in the order in which the scheduler visits them.
    best = np.argsort(-scores.total, kind="stable")[: limits.SCORES].tolist()
    return tuple(
        node_score(row, evaluation.feasible[row], scores.total, scores.weights, scores.raw, scores.weighted)
        for row in best
    )


def node_score(
    row: int,
    node: str,
    total: Int64s,
    weights: Mapping[str, int],
    raw: Mapping[str, Int64s],
    weighted: Mapping[str, Int64s],
) -> NodeScore:
    """Returns the score of the node in this row, plugin by plugin."""
    plugins = {
        name: PluginScore(
            raw=int(raw[name][row]),
            normalized=int(weighted[name][row]) // weight,
            weight=weight,
            weighted=int(weighted[name][row]),
        )
        for name, weight in weights.items()
    }
    others = int(total[row]) - sum(part.weighted for part in plugins.values())
    return NodeScore(node=node, total=int(total[row]), plugins=plugins, others=others)


def as_decided(answer: Explanation, attempts: Iterable[Attempt]) -> Explanation | None:
    """Returns the explanation with the scores of the decision that put the pod on its node; None if they are not known.

    Arguments:
        attempts: of pods of this name, newest first.
    """
    for made in attempts:
        if made.outcome == "Scheduled" and made.pod.uid == answer.pod.uid and made.node == answer.node:
            if made.feasible == 1:
                return msgspec.structs.replace(
                    answer, scores_of="decision", choice="No other node passed, so that nothing was scored."
                )
            if not made.scores:
                return None
            text = _sentence(made.node, made.scores, made.feasible, "had")
            return msgspec.structs.replace(answer, scores=made.scores, scores_of="decision", choice=text)
    return None


async def worked_out_again(trial: Trial, pod: Pod, answer: Explanation) -> Explanation:
    """Returns the explanation of a pod that has a node with the scores that nodes have now, as if the pod had none.

    Arguments:
        trial: one without the pod.
        pod: without its node.
    """
    if trial.frameworks.get(pod.scheduler_name) is None:
        return answer
    evaluation = await evaluate(trial.cycle(pod))
    scores, fits = best_scores(evaluation), answer.node in evaluation.feasible
    if not fits:
        text = (
            f"As things are now, {answer.node} would refuse this pod; it would find {_nodes(len(evaluation.feasible))}."
        )
    elif len(scores) == 1:
        scores = ()
        text = "As things are now, no other node passes, so that nothing would be scored."
    else:
        text = f"As things are now, without this pod, {_sentence(answer.node, scores, len(evaluation.feasible), 'has')}"
    notes = (*answer.notes, *stand_in_notes(trial.frameworks))
    return msgspec.structs.replace(answer, scores=scores, scores_of="now", choice=text, notes=notes)


def _sentence(node: str, scores: Sequence[NodeScore], feasible: int, had: str) -> str:
    """Returns a sentence about the node among the best ones.

    Arguments:
        feasible: the number of all nodes to choose from.
        had: "has" or "had".
    """
    own = next((score for score in scores if score.node == node), None)
    others = [score for score in scores if score.node != node]
    best, highest = others[0], f"{had} the highest score of {_nodes(feasible)}"
    if own is None:
        return f"{best.node} {highest}, {best.total}, and {node} is not among the best {len(scores)}."
    if own.total < best.total:
        return f"{best.node} {highest}, {best.total}, and {node} {had} {own.total}. {_difference(best, own)}"
    equals = sum(other.total == own.total for other in others)
    if equals:
        more = equals == len(others) < feasible - 1
        equal = f"at least {equals} others" if more else "another node" if equals == 1 else f"{equals} others"
        return f"{node} {highest}, {own.total}, as {equal} {had}; among equals chance decides."
    return f"{node} {highest}, {own.total}; {best.node} came next with {best.total}. {_difference(own, best)}"


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


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'}"

"""Why a pod is where it is, or nowhere: the scheduler's own evaluation of it, told for people.

What the queue and the records know of the pod is added by those who have them.
"""

from typing import Final, Literal

import numpy as np

from extender.answers.fixes import fixes
from extender.answers.lacks import Room
from extender.answers.nearest import nearest
from extender.answers.picture import picture as picture_of
from extender.answers.preemption_answer import preemption_answer
from extender.answers.refusals import Refusals
from extender.answers.requested import requested
from extender.answers.summary import summary
from extender.answers.types import Explanation, NodeScore, PodName
from extender.answers.waiting import pod_name
from extender.answers.waterfall import waterfall
from extender.evaluation.evaluate import Evaluation, evaluate
from extender.objects.pod import Pod
from extender.runtime.framework import Framework
from extender.runtime.nominations import Nominations
from extender.snapshot import Snapshot

MAX_SCORES: Final = 10

Settled = Literal["Binding", "Scheduled", "Finished", "NotOurs"]
"""States in which there is nothing to evaluate."""


async def explain(framework: Framework, snapshot: Snapshot, pod: Pod, nominations: Nominations, *, picture: bool = False) -> Explanation:
    """All that the scheduler finds out about the pod as things are. A pod that has a node, or has finished, is not evaluated.

    The framework's cycle is another one afterwards.

    Arguments:
        picture: with what each Filter says of each node.
    """
    if pod.is_terminal:
        return settled(pod, "Finished")
    if pod.spec.node_name:
        return settled(pod, "Scheduled")
    evaluation = await evaluate(framework, snapshot, pod, nominations)
    refusals, steps = Refusals.of(evaluation), waterfall(evaluation)
    outcome = evaluation.preemption
    preemption = None if outcome is None else preemption_answer(outcome, snapshot, pod)
    nominated = pod.status.nominated_node_name
    return Explanation(
        pod=pod_name(pod),
        state="Gated" if pod.spec.scheduling_gates else "Nominated" if nominated else "Pending",
        node=nominated,
        requests=requested(pod),
        summary=summary(pod, evaluation, steps, preemption),
        message=evaluation.error or evaluation.message,
        total_nodes=len(snapshot.nodes),
        feasible_nodes=len(evaluation.feasible),
        waterfall=steps,
        nearest=() if refusals is None else nearest(refusals, Room(snapshot, pod, nominations)),
        fixes=fixes(evaluation, refusals, framework, pod, nominations),
        preemption=preemption,
        scores=best_scores(evaluation),
        picture=picture_of(evaluation) if picture else None,
    )


def settled(pod: Pod, state: Settled, node: str = "") -> Explanation:
    """What there is to say of a pod about which nothing is to be decided here.

    Arguments:
        node: where it is going, if it is being bound; else it is where its spec says.
    """
    node = node or pod.spec.node_name
    where = f" on {node}" if node else ""
    sentence = {
        "Binding": f"It has got its place{where} and is being bound.",
        "Scheduled": f"It runs{where}." if pod.status.phase == "Running" else f"It is{where}.",
        "Finished": f"It has finished{where} ({pod.status.phase}).",
        "NotOurs": f'No profile here is called "{pod.scheduler_name}": another scheduler decides about it.',
    }
    return Explanation(pod=pod_name(pod), state=state, node=node, requests=requested(pod), summary=sentence[state])


def unreadable(pod: PodName, why: str) -> Explanation:
    """What there is to say of a pod that is left out: of its spec nothing is known."""
    return Explanation(pod=pod, state="Unreadable", summary=f"It is left out because it cannot be read: {why.removesuffix('.')}.")


def best_scores(evaluation: Evaluation, limit: int = MAX_SCORES) -> tuple[NodeScore, ...]:
    """The nodes with the highest totals, best first; among equals in visiting order."""
    scores = evaluation.scores
    if scores is None:
        return ()
    best = np.argsort(-scores.total, kind="stable")[:limit].tolist()
    return tuple(
        NodeScore(
            node=evaluation.feasible[row],
            total=int(scores.total[row]),
            plugins={plugin: int(weighted[row]) for plugin, weighted in scores.weighted.items()},
        )
        for row in best
    )

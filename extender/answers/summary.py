"""One sentence about a pod. It names no other pod: not everybody may know of it."""

from collections import Counter

from extender.answers.phrases import why_no_room
from extender.answers.types import PreemptionAnswer, WaterfallStep
from extender.evaluation.evaluate import Evaluation
from extender.objects.pod import Pod
from extender.objects.preemption_messages import STILL_TERMINATING


def summary(pod: Pod, evaluation: Evaluation, steps: tuple[WaterfallStep, ...], preemption: PreemptionAnswer | None) -> str:
    """What becomes of a pod that waits, and why.

    Arguments:
        steps: how all nodes became those that are left.
    """
    gates, nominated = [gate.name for gate in pod.spec.scheduling_gates], pod.status.nominated_node_name
    if gates:
        held = f"It is held back by the scheduling gate{'' if len(gates) == 1 else 's'} {_and(gates)}"
        return f"{held}; apart from that, {_chances(evaluation, steps, preemption)}."
    if nominated and preemption is not None and preemption.message == STILL_TERMINATING:
        return f"It is nominated to {nominated} and waits for the pods there that it preempted to leave."
    if nominated and evaluation.nominated_node_fits:
        return f"It is nominated to {nominated}, where it fits now."
    if nominated:
        return f"It is nominated to {nominated}, where it does not fit as things are; {_chances(evaluation, steps, preemption)}."
    sentence = _chances(evaluation, steps, preemption)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _chances(evaluation: Evaluation, steps: tuple[WaterfallStep, ...], preemption: PreemptionAnswer | None) -> str:
    if evaluation.error:
        return f"nothing can be decided about it: {evaluation.error}"
    number, fitting = len(evaluation.snapshot.nodes), evaluation.feasible
    if fitting:
        best = evaluation.top_nodes or fitting
        others = f", best on {best[0]}" if len(fitting) > 1 else f", {fitting[0]}"
        if number == 1:
            return f"it fits on the only node{others}"
        return f"it fits on {len(fitting)} of {_nodes(number)}{others}"
    refused: Counter[str] = Counter()
    for step in steps:
        # A plugin that has left nodes out beforehand may refuse others later.
        refused[step.plugin] += step.refused
    if number == 1:
        return f"it does not fit on the only node: {_and([f'{plugin} refuses it' for plugin in refused])}{_room_made(preemption)}"
    told = [f"{plugin} {'' if place else 'refuses '}{nodes}" for place, (plugin, nodes) in enumerate(refused.items())]
    return f"it fits on none of {_nodes(number)}: {_and(told)}{_room_made(preemption)}"


def _room_made(preemption: PreemptionAnswer | None) -> str:
    if preemption is None:
        return ""
    if preemption.node:
        violations = preemption.num_pdb_violations
        though = f", {violations} of them against a PodDisruptionBudget" if violations else ""
        return f"; evicting {_pods(len(preemption.victims))} from {preemption.node} would make room{though}"
    return f"; {why_no_room(preemption)}"


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'}"


def _pods(number: int) -> str:
    return f"{number} pod{'' if number == 1 else 's'}"


def _and(things: list[str]) -> str:
    *others, last = things
    return f"{', '.join(others)} and {last}" if others else last

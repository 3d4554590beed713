"""Why a pod is on its node, or on none, by the scheduler's own evaluation; `questions` adds queue and records."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

import numpy as np

from extender.answers.explain.advice import Advice, Asked, NodeFact, Refusals, nearest_nodes, nearest_places
from extender.answers.explain.demand_facts import (
    feature_facts,
    label_facts,
    pod_affinity_facts,
    port_facts,
    resource_facts,
    taint_facts,
)
from extender.answers.explain.device_facts import device_facts
from extender.answers.explain.fixes import fixes
from extender.answers.explain.preemption import preemption_answer
from extender.answers.explain.queue_places import claim_notes
from extender.answers.explain.spreading_facts import spreading_facts
from extender.answers.explain.verdict_tables import best_scores, picture as picture_of, waterfall
from extender.answers.explain.volume_facts import attachment_facts, use_facts, volume_facts, zone_facts
from extender.answers.parts import PodName, requested, workload_of
from extender.answers.phrases import all_of, plural, why_no_room
from extender.answers.types import Explanation, Fact, PreemptionAnswer, WaterfallStep
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.framework import NoNodesAvailableError, fit_error_message
from extender.engine.framework.interface import listed
from extender.engine.framework.preemption import STILL_TERMINATING
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.findings import diagnosis_of, find, refused_by_pre_filter
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError, call_plugin
from extender.engine.snapshot import Snapshot
from extender.values import limits
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod


async def explain(
    framework: Framework, snapshot: Snapshot, pod: Pod, nominations: Nominations, *, picture: bool = False
) -> Explanation:
    """Returns all that the scheduler finds out about the pod. One with a node, or a finished one, is not evaluated."""
    if pod.is_terminal:
        return settled(pod, "Finished")
    if pod.spec.node_name:
        return settled(pod, "Scheduled")
    evaluation = await evaluate(Cycle(framework, snapshot, pod, nominations))
    refusals, steps = Refusals.of(evaluation), waterfall(evaluation)
    outcome = evaluation.preemption
    preemption = None if outcome is None else preemption_answer(outcome, snapshot, pod, framework.now().timestamp())
    nominated, advice = pod.status.nominated_node_name, Advice(framework, snapshot, pod, nominations)
    return Explanation(
        pod=PodName.of(pod),
        state="Gated" if pod.spec.scheduling_gates else "Nominated" if nominated else "Pending",
        node=nominated,
        workload=workload_of(pod),
        created=pod.metadata.creation_timestamp,
        requests=requested(pod),
        summary=summary(pod, evaluation, steps, preemption),
        message=evaluation.error or evaluation.message,
        total_nodes=len(snapshot.nodes),
        feasible_nodes=len(evaluation.feasible),
        waterfall=steps,
        nearest=() if refusals is None else nearest_nodes(refusals, advice),
        facts=facts(evaluation, refusals, advice, framework, pod),
        fixes=fixes(evaluation, refusals, advice, framework, pod, nominations),
        preemption=preemption,
        scores=best_scores(evaluation),
        scores_of="now" if evaluation.scores is not None else "",
        picture=picture_of(evaluation) if picture else None,
        notes=tuple(claim_notes(pod, snapshot.objects, evaluation.message)),
    )


def reason_now(framework: Framework, snapshot: Snapshot, pod: Pod, nominations: Nominations) -> str:
    """Returns why no node has room for the pod, in kube-scheduler's words before preemption; empty if one has."""
    if not len(snapshot.nodes):
        return str(NoNodesAvailableError())
    cycle = Cycle(framework, snapshot, pod, nominations)
    try:
        is_filtered = cycle.run_pre_filter_plugins().status.is_success
        findings = find(cycle) if is_filtered else refused_by_pre_filter(cycle)
    except PluginError as exc:
        return str(exc)
    if findings.verdicts.ok.any():
        return ""
    return fit_error_message(len(snapshot.nodes), diagnosis_of(cycle, findings))


def settled(
    pod: Pod, state: Literal["Waiting", "Binding", "Scheduled", "Finished", "NotOurs"], node: str = "", text: str = ""
) -> Explanation:
    """Returns what is known of a pod about which nothing is to be decided.

    `node` is the one to which it is being bound, and `text` says what it waits for.
    """
    node = node or pod.spec.node_name
    where = f" on {node}" if node else ""
    sentence = {
        "Waiting": f"{text[:1].upper()}{text[1:]}.",
        "Binding": f"It is being bound{where}.",
        "Scheduled": f"It runs{where}." if pod.status.phase == "Running" else f"It is{where}.",
        "Finished": f"It has finished{where} ({pod.status.phase}).",
        "NotOurs": f'No profile here has its schedulerName "{pod.scheduler_name}": another scheduler schedules it.',
    }
    return Explanation(
        pod=PodName.of(pod),
        state=state,
        node=node,
        workload=workload_of(pod),
        created=pod.metadata.creation_timestamp,
        requests=requested(pod),
        summary=sentence[state],
    )


def unreadable(pod: PodName, why: str) -> Explanation:
    """Returns what is known of a pod that is left out because its spec cannot be read."""
    return Explanation(
        pod=pod, state="Unreadable", summary=f"It is left out because it cannot be read: {why.removesuffix('.')}."
    )


# The summary: one sentence about the pod. It names no other pod, since the caller may not be allowed to know of it.


def summary(
    pod: Pod, evaluation: Evaluation, steps: tuple[WaterfallStep, ...], preemption: PreemptionAnswer | None
) -> str:
    """Returns a sentence that says what happens to a pending pod, and why; `steps` is the evaluation's waterfall."""
    gates, nominated = [gate.name for gate in pod.spec.scheduling_gates], pod.status.nominated_node_name
    if gates:
        gates_text = f"It is held back by the {listed('scheduling gate', gates)}"
        return f"{gates_text}; apart from that, {_chances(evaluation, steps, preemption)}."
    if nominated and preemption is not None and preemption.message == STILL_TERMINATING:
        return f"It is nominated to {nominated} and waits until the pods that it preempted there are gone."
    if nominated and evaluation.nominated_node_fits:
        return f"It is nominated to {nominated}, where it fits now."
    if nominated:
        return f"It is nominated to {nominated}, where it does not fit now; {_chances(evaluation, steps, preemption)}."
    sentence = _chances(evaluation, steps, preemption)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _chances(evaluation: Evaluation, steps: tuple[WaterfallStep, ...], preemption: PreemptionAnswer | None) -> str:
    if evaluation.error:
        return f"it cannot be evaluated: {evaluation.error}"
    number, fitting = len(evaluation.snapshot.nodes), evaluation.feasible
    if fitting:
        best = evaluation.top_nodes or fitting
        node_text = f", best on {best[0]}" if len(fitting) > 1 else f", {fitting[0]}"
        if number == 1:
            return f"it fits on the only node{node_text}"
        return f"it fits on {len(fitting)} of {plural(number, 'node')}{node_text}"
    refused: Counter[str] = Counter()
    for step in steps:
        # A plugin whose PreFilter has left nodes out may refuse others in its Filter.
        refused[step.plugin] += step.refused
    if number == 1:
        return (
            "it does not fit on the only node: "
            f"{all_of([f'{plugin} refuses it' for plugin in refused])}{_room_made(preemption)}"
        )
    refusals = [
        f"{plugin} {'' if place else 'refuses '}{nodes}" for place, (plugin, nodes) in enumerate(refused.items())
    ]
    return f"it fits on none of {plural(number, 'node')}: {all_of(refusals)}{_room_made(preemption)}"


def _room_made(preemption: PreemptionAnswer | None) -> str:
    if preemption is None:
        return ""
    if preemption.node:
        if not preemption.victims:
            return f"; the rules of its preemption choose {preemption.node} without an eviction"
        violations = preemption.num_pdb_violations
        though = f", {violations} of them against a PodDisruptionBudget" if violations else ""
        return f"; evicting {plural(len(preemption.victims), 'pod')} from {preemption.node} would make room{though}"
    return f"; {why_no_room(preemption)}"


_LOG: Final = Logger(__name__)

_BY_PLUGIN: Final[Mapping[str, Callable[[Asked], Iterator[NodeFact]]]] = {
    "DynamicResources": device_facts,
    "InterPodAffinity": pod_affinity_facts,
    "NodeAffinity": label_facts,
    "NodeDeclaredFeatures": feature_facts,
    "NodePorts": port_facts,
    "NodeResourcesFit": resource_facts,
    "NodeVolumeLimits": attachment_facts,
    "PodTopologySpread": spreading_facts,
    "TaintToleration": taint_facts,
    "VolumeBinding": volume_facts,
    "VolumeRestrictions": use_facts,
    "VolumeZone": zone_facts,
}


def facts(
    evaluation: Evaluation, refusals: Refusals | None, advice: Advice, framework: Framework, pod: Pod
) -> tuple[Fact, ...]:
    """Returns what the plugins that refuse nodes find there; equal findings of nodes are one fact."""
    if evaluation.feasible or evaluation.error or evaluation.pre_filter is None:
        return ()
    early = evaluation.pre_filter.status.plugin
    names = [early] if refusals is None else [name for name in refusals.by_plugin if refusals.refused_by(name).any()]
    names += [name for name in evaluation.pre_filter.narrowed_by if name not in names]
    names_with_facts = [name for name in names if name in _BY_PLUGIN]
    if not names_with_facts:
        return ()
    nearest = np.zeros(0, np.intp) if refusals is None else nearest_places(refusals, advice)
    all_facts: list[Fact] = []
    for name in names_with_facts:
        refused = nearest if refusals is None else nearest[refusals.refused_by(name)[nearest]]
        question = Asked(pod, evaluation.snapshot, framework, refused, refusals)
        all_facts += _facts_of(name, question)
    return tuple(all_facts)


def _facts_of(plugin: str, question: Asked) -> list[Fact]:
    """Returns the facts of one plugin. A failure leaves them out: they are no part of the decision."""
    nodes: dict[NodeFact, list[str]] = {}
    try:
        findings = call_plugin(None, plugin, "Facts", lambda: list(_BY_PLUGIN[plugin](question)))
    except PluginError as exc:
        _LOG.error(exc, "The facts of a plugin are left out", plugin=plugin, pod=question.pod.key)
        return []
    for finding in findings:
        nodes.setdefault(finding.of_all_nodes, []).extend([finding.node] if finding.node else [])
    first_facts = [*nodes.items()][: limits.FACTS]
    return [Fact(plugin=plugin, text=fact.text, nodes=tuple(names), pods=fact.pods) for fact, names in first_facts]

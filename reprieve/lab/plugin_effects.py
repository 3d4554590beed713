"""What plugins would change in a cluster: every pod is looked at by a scheduler with them and by one without them.
Nothing is written.

A pending pod is evaluated by both. A running pod is shown to the Filters of the plugins alone, on its node and without
itself there, since the scheduler without them has let it in.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import final

import numpy as np

from extender.answers.parts import PodName
from extender.answers.profiles import SingleProfile
from extender.answers.types import Answer, ReasonCount
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.framework import Framework, closed_at_the_end
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.quarantine import QUARANTINED
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod


@final
class Destination(Answer, frozen=True, kw_only=True):
    """Where a pod goes."""

    node: str = ""
    """Empty if it stays pending."""
    evicts: int = 0
    """The number of pods that have to go before."""


@final
class PendingEffect(Answer, frozen=True, kw_only=True):
    """What becomes of a pending pod with the plugins and without them."""

    pod: PodName
    before: Destination
    after: Destination
    refused: tuple[ReasonCount, ...] = ()
    """Why the plugins refuse nodes, and how many, whatever others say about those nodes."""
    message: str = ""
    """The message of the pod's event with the plugins; empty if a node fits."""


@final
class RunningEffect(Answer, frozen=True, kw_only=True):
    """A running pod that the plugins would not let onto its node."""

    pod: PodName
    node: str
    reasons: tuple[str, ...]


@final
class PluginEffects(Answer, frozen=True, kw_only=True):
    """What plugins would change in a cluster."""

    plugins: tuple[str, ...]
    nodes: int
    pending: tuple[PendingEffect, ...]
    """Every pending pod that was looked at."""
    running: tuple[RunningEffect, ...]
    looked_at: int
    """The number of running pods that the plugins judged."""
    left_out: int = 0
    """The number of pods beyond the limit."""
    errors: tuple[str, ...] = ()
    """Why plugins failed, each error once."""


async def plugin_effects(
    cluster: Cluster,
    registry: Registry,
    before: Configuration,
    after: Configuration,
    plugin_names: Collection[str],
    limit: int,
) -> PluginEffects:
    """Returns the effects of the plugins in a copy of the cluster, for up to `limit` pods. Raises ConfigErrors."""
    frameworks = [
        registry.make_frameworks(configuration, random.Random(0), live=cluster.cache, is_exhaustive=True)
        for configuration in (before, after)
    ]
    with closed_at_the_end(frameworks[0]), closed_at_the_end(frameworks[1]):
        baseline, candidates = (
            SingleProfile(*by_name.values()) if len(by_name) == 1 else by_name for by_name in frameworks
        )
        nominations = Nominations(cluster.nominees(candidates))
        pending = [pod for pod in cluster.pending.values() if _is_ours(pod, candidates)]
        snapshot = cluster.cache.update_snapshot()
        looked_at = pending[:limit]
        errors: dict[str, None] = {}
        effects = [
            await _pending_effect(pod, snapshot, nominations, baseline, candidates, plugin_names, errors)
            for pod in looked_at
        ]
        rest = [pod for pod in cluster.cache.pods if not pod.is_terminating]
        running_pods = rest[: limit - len(looked_at)]
        running = tuple(_running_effects(running_pods, snapshot, candidates, plugin_names, errors))
    return PluginEffects(
        plugins=tuple(sorted(plugin_names)),
        nodes=len(snapshot.nodes),
        pending=tuple(effects),
        running=running,
        looked_at=len(running_pods),
        left_out=len(pending) + len(rest) - len(looked_at) - len(running_pods),
        # That a plugin is quarantined follows from errors that are listed.
        errors=tuple(islice((error for error in errors if QUARANTINED not in error), 10)),
    )


def _is_ours(pod: Pod, frameworks: Mapping[str, Framework]) -> bool:
    return pod.scheduler_name in frameworks or isinstance(frameworks, SingleProfile)


async def _pending_effect(
    pod: Pod,
    snapshot: Snapshot,
    nominations: Nominations,
    baseline: Mapping[str, Framework],
    candidates: Mapping[str, Framework],
    plugin_names: Collection[str],
    errors: dict[str, None],
) -> PendingEffect:
    first = await evaluate(Cycle(baseline[pod.scheduler_name], snapshot, pod, nominations))
    then = await evaluate(Cycle(candidates[pod.scheduler_name], snapshot, pod, nominations))
    if then.error and then.error != first.error:
        errors[then.error] = None
    # Where others refuse the nodes before, a plugin that fails is no error of the attempt.
    for verdicts in _of(plugin_names, then):
        failed = verdicts.codes == fwk.Code.ERROR
        errors.update(dict.fromkeys(reason for reason, mask in verdicts.reasons if (mask & failed).any()))
    return PendingEffect(
        pod=PodName.of(pod),
        before=_destination(first, ()),
        after=_destination(then, first.top_nodes),
        refused=_refused(then, plugin_names),
        message=then.error or then.message,
    )


def _destination(evaluation: Evaluation, preferred: Sequence[str]) -> Destination:
    """Returns one of the best nodes, a preferred one if it is among them; else the node that preemption frees."""
    best, chosen = evaluation.top_nodes, evaluation.preemption.chosen if evaluation.preemption is not None else None
    if chosen is not None and not best:
        return Destination(node=chosen.node, evicts=len(chosen.victims))
    return Destination(node=next((name for name in preferred if name in best), next(iter(best), "")))


def _refused(evaluation: Evaluation, plugin_names: Collection[str]) -> tuple[ReasonCount, ...]:
    counts: Counter[str] = Counter()
    for verdicts in _of(plugin_names, evaluation):
        for reason, mask in verdicts.reasons:
            counts[reason] += int(np.count_nonzero(mask & (verdicts.codes != fwk.Code.ERROR)))
    counts += Counter()  # without those that are errors alone
    return tuple(ReasonCount(reason=reason, nodes=nodes) for reason, nodes in counts.most_common())


def _of(plugin_names: Collection[str], evaluation: Evaluation) -> Iterator[fwk.Verdicts]:
    return (verdicts for name, verdicts in (evaluation.by_plugin or {}).items() if name in plugin_names)


def _running_effects(
    pods: Sequence[Pod],
    snapshot: Snapshot,
    frameworks: Mapping[str, Framework],
    plugin_names: Collection[str],
    errors: dict[str, None],
) -> Iterator[RunningEffect]:
    slots = {snapshot.pod_at(slot).uid: slot for on_node in snapshot.pods.on_node for slot in on_node}
    for pod in pods:
        place, slot = snapshot.nodes.index.get(pod.spec.node_name), slots.get(pod.uid)
        if place is None or slot is None or not _is_ours(pod, frameworks):
            continue
        framework = frameworks[pod.scheduler_name]
        filters = [(name, plugin) for name, plugin in framework.plugins.filter if name in plugin_names]
        without_itself = PodChanges(np.array([0], np.intp), np.array([slot], np.intp), np.array([-1], np.int64))
        row = Rows.of(snapshot, np.array([place], np.intp)).changed(without_itself)
        cycle = Cycle(framework, snapshot, pod)
        try:
            reasons = list(_reasons(cycle, filters, row))
        except PluginError as exc:
            errors[str(exc)] = None
            continue
        if reasons:
            yield RunningEffect(pod=PodName.of(pod), node=pod.spec.node_name, reasons=tuple(reasons))


def _reasons(cycle: Cycle, filters: Sequence[tuple[str, fwk.FilterPlugin]], row: Rows) -> Iterator[str]:
    if not filters or not cycle.run_pre_filter_plugins().status.is_success:
        return
    for name, plugin in filters:
        if name not in cycle.skip_filter_plugins:
            yield from cycle.run_filter_plugin(name, plugin, row).reasons_of(0)

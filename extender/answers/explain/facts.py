"""What is lacking: facts about the nodes that a plugin refuses, worked out only for an explanation."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from extender.answers.explain.advice import Advice, Refusals, nearest_places
from extender.answers.explain.demand_facts import (
    label_facts,
    pod_affinity_facts,
    port_facts,
    resource_facts,
    taint_facts,
)
from extender.answers.explain.device_facts import device_facts
from extender.answers.explain.findings import Asked, NodeFact
from extender.answers.explain.spreading_facts import spreading_facts
from extender.answers.explain.volume_facts import attachment_facts, volume_facts, zone_facts
from extender.answers.types import Fact
from extender.engine.evaluation.evaluate import Evaluation
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError, call_plugin
from extender.values import limits
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)

_BY_PLUGIN: Final[Mapping[str, Callable[[Asked], Iterator[NodeFact]]]] = {
    "DynamicResources": device_facts,
    "InterPodAffinity": pod_affinity_facts,
    "NodeAffinity": label_facts,
    "NodePorts": port_facts,
    "NodeResourcesFit": resource_facts,
    "NodeVolumeLimits": attachment_facts,
    "PodTopologySpread": spreading_facts,
    "TaintToleration": taint_facts,
    "VolumeBinding": volume_facts,
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
    told = [name for name in names if name in _BY_PLUGIN]
    if not told:
        return ()
    nearest = np.zeros(0, np.intp) if refusals is None else nearest_places(refusals, advice)
    found: list[Fact] = []
    for name in told:
        refused = nearest if refusals is None else nearest[refusals.refused_by(name)[nearest]]
        asked = Asked(pod, evaluation.snapshot, framework, refused, refusals)
        found += _told(name, asked)
    return tuple(found)


def _told(plugin: str, asked: Asked) -> list[Fact]:
    """Returns the facts of one plugin. A failure leaves them out: they are no part of the decision."""
    nodes: dict[NodeFact, list[str]] = {}
    try:
        findings = call_plugin(None, plugin, "Facts", lambda: list(_BY_PLUGIN[plugin](asked)))
    except PluginError as exc:
        _LOG.error(exc, "The facts of a plugin are left out", plugin=plugin, pod=asked.pod.key)
        return []
    for finding in findings:
        nodes.setdefault(finding.of_all_nodes, []).extend([finding.node] if finding.node else [])
    shown = [*nodes.items()][: limits.FACTS]
    return [Fact(plugin=plugin, text=each.text, nodes=tuple(names), pods=each.pods) for each, names in shown]

"""Findings: the results of PreFilter and the Filters for a pod, the diagnosis when no node is feasible, and the
PostFilter that follows.

Upstream: pkg/scheduler/schedule_one.go, findNodesThatFitPod; framework/types.go, Diagnosis;
framework/runtime/framework.go, RunPostFilterPlugins.
"""

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import final

import msgspec
import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.plugin_calls import PluginError, call_plugin_async, post_filter_result
from extender.engine.snapshot import Rows


@final
class Findings(msgspec.Struct, frozen=True):
    """The results of PreFilter and the Filters, as arrays that hold until the next snapshot."""

    rows: Rows
    """The nodes that were filtered; none if PreFilter refused the pod."""
    verdicts: fwk.Verdicts
    """(R,) their verdicts."""
    pre_filter: fwk.Status = fwk.SUCCESS
    narrowed_by: tuple[str, ...] = ()
    """PreFilter plugins that left only some nodes in play."""
    by_extenders: Mapping[str, fwk.Status] = msgspec.field(default_factory=dict)
    """Node name -> why an extender refused a node that passed the Filters."""


def refused_by_pre_filter(cycle: Cycle) -> Findings:
    no_node = Rows.of(cycle.snapshot, np.zeros(0, np.intp))
    return Findings(no_node, fwk.accept(0), cycle.pre_filter.status, cycle.pre_filter.narrowed_by)


def find(cycle: Cycle) -> Findings:
    """Returns the verdicts of all Filters on all nodes that PreFilter left in play. Raises PluginError."""
    rows = Rows.of(cycle.snapshot, cycle.within)
    return Findings(
        rows, cycle.run_filters_with_nominated_pods(rows), cycle.pre_filter.status, cycle.pre_filter.narrowed_by
    )


def diagnosis_of(cycle: Cycle, findings: Findings) -> fwk.Diagnosis:
    """Returns why no node is feasible."""
    outcome = cycle.pre_filter
    if not outcome.status.is_success:
        plugins = frozenset(outcome.narrowed_by) | ({outcome.status.plugin} if outcome.status.plugin else frozenset())
        return fwk.Diagnosis(
            fwk.NodeStatuses(absent=outcome.status), plugins, pre_filter_message=outcome.status.message
        )
    rows, verdicts = findings.rows, findings.verdicts
    plugins = frozenset(outcome.narrowed_by) | {name for name, mask in verdicts.refused_by if mask.any()}
    waits = verdicts.codes == fwk.Code.PENDING
    pending = frozenset(name for name, mask in verdicts.refused_by if (mask & waits).any())
    return fwk.Diagnosis(fwk.NodeStatuses.refused(verdicts, rows, status_out_of_play(cycle)), plugins, pending)


def status_out_of_play(cycle: Cycle) -> fwk.Status:
    """Returns the status of the nodes that PreFilter excluded."""
    if cycle.pre_filter.node_names is None:
        return fwk.unresolvable()
    return fwk.unresolvable(out_of_play_reason(cycle.pre_filter.narrowed_by))


def out_of_play_reason(plugins: Iterable[str]) -> str:
    """Returns the reason of nodes that are out of play, since these plugins narrowed the search to others."""
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"


async def run_post_filter_plugins(cycle: Cycle, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
    """Runs the PostFilter plugins on the nodes' statuses, until one succeeds or gives the pod up.

    None is asked about a pod that demands too much. Returns the result of the one that succeeded, else the combined
    refusals or an Error status. Raises PluginError.
    """
    if cycle.demands_too_much:
        return fwk.PostFilterResult(fwk.unschedulable())
    reasons: list[str] = []
    refuser = ""
    nominated_node: str | None = None
    preemption: fwk.PreemptionOutcome | None = None
    retry_after = math.inf
    for plugin in cycle.framework.plugins.post_filter:
        try:
            call = partial(post_filter_result, plugin, cycle, cycle.pod, statuses)
            answer = await call_plugin_async(cycle.observe, plugin.name, "PostFilter", call)
        except PluginError as exc:
            # A plugin whose PreFilter did not run finds no state. Upstream's returns an Error status then, which ends
            # the chain.
            if isinstance(exc.__cause__, fwk.NotFoundError):
                return fwk.PostFilterResult(fwk.error(exc.why).by(plugin.name), preemption=preemption)
            raise
        status, preemption = answer.status, answer.preemption or preemption
        retry_after = min(retry_after, answer.retry_after)
        if status.is_success:
            return replace(answer, preemption=preemption, plugin=plugin.name)
        if status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return fwk.PostFilterResult(status.by(plugin.name), answer.nominated_node, preemption=preemption)
        if not status.is_rejected:
            failed = fwk.Status(fwk.Code.ERROR, status.reasons, plugin.name)
            return fwk.PostFilterResult(failed, preemption=preemption)
        if answer.nominated_node is not None:
            nominated_node = answer.nominated_node
        reasons += status.reasons
        refuser = refuser or plugin.name
    refused = fwk.Status(fwk.Code.UNSCHEDULABLE, tuple(reasons), refuser)
    return fwk.PostFilterResult(refused, nominated_node, preemption=preemption, retry_after=retry_after)

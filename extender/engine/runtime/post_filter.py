"""PostFilter: what plugins do for a pod that fits no node.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunPostFilterPlugins (v1.36.2).
"""

import math
from dataclasses import replace
from functools import partial

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.plugin_calls import PluginError, call_plugin_async
from extender.engine.runtime.plugin_results import post_filter_result


async def run_post_filter_plugins(cycle: Cycle, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
    """Runs the PostFilter plugins until one succeeds or answers that the pod cannot be helped. None is asked about a
    pod that demands too much.

    Arguments:
        statuses: why each node refused the pod.

    Returns:
        The result of the plugin that succeeded; else the combined refusals, or an Error status.

    Raises:
        PluginError: a plugin raised.
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

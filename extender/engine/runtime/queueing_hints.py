"""The queue's view of the plugins of a profile: the events that they registered for, and the one that gates a pod.

Upstream: pkg/scheduler/scheduler.go, buildQueueingHintMap; backend/queue/scheduling_queue.go, runPreEnqueuePlugins.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.engine import framework as fwk
from extender.engine.framework.events import QueueingHintFunction, QueueingHintMap, always_queue
from extender.engine.runtime.demands import DEMANDS, REGISTRATIONS
from extender.engine.runtime.framework import PluginsByPoint
from extender.engine.runtime.plugin_calls import PluginError, call_plugin
from extender.values.klog.logger import Logger
from extender.values.metrics import ObservePlugin
from extender.values.objects.pod import Pod

EXTENDER: Final = "Extender"
"""The name of all HTTP extenders among the plugins that refused a pod. Upstream: framework.ExtenderName."""

_LOG: Final = Logger(__name__)
_NODE_TAINT_CHANGE: Final = fwk.ClusterEvent(fwk.EventResource.NODE, fwk.ActionType.UPDATE_NODE_TAINT)


def registrations(
    plugins: PluginsByPoint, *, has_extenders: bool = False
) -> dict[str, Sequence[fwk.ClusterEventWithHint]]:
    """Returns plugin -> its registrations, for those that can refuse a pod, and all events for `EXTENDER`.

    A PostFilter without registrations of its own is left out, because it refuses no pod by itself.

    Upstream: runtime/framework.go, NewFramework, enqueueExtensions.
    """
    refusing: dict[str, fwk.Plugin] = {plugin.name: plugin for plugin in (*plugins.pre_enqueue, *plugins.pre_filter)}
    refusing |= dict(plugins.filter)
    refusing |= {plugin.name: plugin for plugin in (*plugins.reserve, *plugins.permit)}
    registered = {name: plugin.events_to_register() for name, plugin in refusing.items()}
    for plugin in plugins.post_filter:
        events = plugin.events_to_register()
        if events is not fwk.ALL_EVENTS:
            registered[plugin.name] = events
    return registered | ({EXTENDER: fwk.ALL_EVENTS} if has_extenders else {})


def hints_of_profile(plugins: PluginsByPoint, *, has_extenders: bool = False) -> QueueingHintMap:
    """Returns event -> hints of all that can refuse a pod: plugins, extenders, and the check of its demands."""
    return queueing_hint_map({**registrations(plugins, has_extenders=has_extenders), DEMANDS: REGISTRATIONS})


def queueing_hint_map(registered: Mapping[str, Sequence[fwk.ClusterEventWithHint]]) -> QueueingHintMap:
    """Returns event -> its hints; those for new nodes also at taints, which nodes often lose later."""
    hints: dict[fwk.ClusterEvent, list[QueueingHintFunction]] = {}
    for name, events in registered.items():
        for registration in events:
            hints.setdefault(registration.event, []).append(
                QueueingHintFunction(name, registration.hint or always_queue)
            )
        of_nodes = [
            registration.event.action
            for registration in events
            if registration.event.resource is fwk.EventResource.NODE
        ]
        adds_nodes = any(fwk.ActionType.ADD in action for action in of_nodes)
        if adds_nodes and not any(fwk.ActionType.UPDATE_NODE_TAINT in action for action in of_nodes):
            hints.setdefault(_NODE_TAINT_CHANGE, []).append(QueueingHintFunction(name, always_queue))
    return hints


def gating_plugin(
    plugins: Sequence[fwk.PreEnqueuePlugin], pod: Pod, last_gated_by: str = "", observe: ObservePlugin | None = None
) -> str:
    """Returns the first plugin that gates the pod, "" if none does. The last one to do so runs first."""
    in_order = sorted(plugins, key=lambda plugin: plugin.name != last_gated_by) if last_gated_by else plugins
    for plugin in in_order:
        try:
            status: fwk.Status | None = call_plugin(observe, plugin.name, "PreEnqueue", plugin.pre_enqueue, pod)
        except PluginError as exc:
            _LOG.exception(
                exc.__cause__ or exc, "Unexpected error running PreEnqueue plugin", pod=pod, plugin=plugin.name
            )
            return plugin.name
        if status is not None and not status.is_success:
            if status.code is fwk.Code.ERROR:
                _LOG.error(status.message, "Unexpected error running PreEnqueue plugin", pod=pod, plugin=plugin.name)
            else:
                _LOG.info(
                    4, "Status after running PreEnqueue plugin", pod=pod, plugin=plugin.name, status=status.message
                )
            return plugin.name
    return ""

"""The extension points of a pod that has a node (Reserve to PostBind), and what each status means there.

A plugin that raises counts as one that answered Error, one that returns None as one that answered Success, as nil is
upstream.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunReservePluginsReserve and the functions after it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from functools import partial
from typing import Final, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.plugin_calls import PluginError, call_plugin, call_plugin_async
from extender.engine.runtime.waiting_pods import MAX_TIMEOUT
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

ASKED_TO_WAIT: Final = "one or more plugins asked to wait and no plugin rejected pod"

_LOG: Final = Logger(__name__)


def run_reserve_plugins(cycle: Cycle, pod: Pod, node: str, but: Container[str] = ()) -> fwk.Status:
    """Runs every Reserve but those that the caller has run; unless it succeeds, `run_unreserve_plugins` follows."""
    for plugin in cycle.framework.plugins.reserve:
        if plugin.name in but:
            continue
        try:
            answer = call_plugin(cycle.observe, plugin.name, "Reserve", plugin.reserve, cycle, pod, node)
            status = _or_success(answer, plugin, "Reserve")
        except PluginError as exc:
            return _raised(exc, pod)
        if not status.is_success:
            return _refused(status, "Reserve", plugin, pod)
    return fwk.SUCCESS


def run_unreserve_plugins(cycle: Cycle, pod: Pod, node: str, but: Container[str] = ()) -> None:
    """Withdraws the reservations of all plugins, in reverse order, whether or not others fail."""
    for plugin in reversed(cycle.framework.plugins.reserve):
        if plugin.name in but:
            continue
        try:
            call_plugin(cycle.observe, plugin.name, "Unreserve", plugin.unreserve, cycle, pod, node)
        except PluginError as exc:
            _LOG.exception(exc.__cause__ or exc, "Plugin failed to unreserve", plugin=plugin.name, pod=pod)


def run_permit_plugins(cycle: Cycle, pod: Pod, node: str) -> tuple[fwk.Status, Mapping[str, float]]:
    """Runs every Permit: Success, a refusal, an error, or Wait with each plugin's seconds."""
    timeouts: dict[str, float] = {}
    reasons: list[str] = []
    for plugin in cycle.framework.plugins.permit:
        try:
            answer: object = call_plugin(cycle.observe, plugin.name, "Permit", plugin.permit, cycle, pod, node)
            decision, seconds = answer if isinstance(answer, tuple) else (answer, 0.0)
            status = _or_success(decision, plugin, "Permit")
        except PluginError as exc:
            return _raised(exc, pod), {}
        if status.is_success:
            continue
        if status.code is not fwk.Code.WAIT:
            return _refused(status, "Permit", plugin, pod), {}
        timeouts[plugin.name] = float(min(seconds, MAX_TIMEOUT))
        reasons += status.reasons
    if not timeouts:
        return fwk.SUCCESS, {}
    _LOG.info(4, "One or more plugins asked to wait and no plugin rejected pod", pod=pod)
    return fwk.Status(fwk.Code.WAIT, (*reasons, ASKED_TO_WAIT)), timeouts


def _or_success(answer: object, plugin: fwk.Plugin, point: str) -> fwk.Status:
    if answer is None:
        return fwk.SUCCESS
    if not isinstance(answer, fwk.Status):
        raise PluginError(plugin.name, point, f"it returned {type(answer).__name__}, not Status")
    return answer


def _raised(exc: PluginError, pod: Pod) -> fwk.Status:
    _LOG.exception(exc.__cause__ or exc, "Plugin failed", plugin=exc.plugin, pod=pod)
    return fwk.error(str(exc)).by(exc.plugin)


def _refused(status: fwk.Status, point: str, plugin: fwk.Plugin, pod: Pod) -> fwk.Status:
    if status.is_rejected:
        _LOG.info(4, "Pod rejected by plugin", pod=pod, plugin=plugin.name, status=status.message)
        return status.by(plugin.name)
    _LOG.error(status.message, "Plugin failed", plugin=plugin.name, pod=pod)
    return _error(plugin, point, status.message)


def _error(plugin: fwk.Plugin, point: str, why: str) -> fwk.Status:
    return fwk.error(str(PluginError(plugin.name, point, why))).by(plugin.name)


@final
class PreBindPlan(msgspec.Struct, frozen=True):
    """The PreBind plugins that have something to do for a pod, in groups that may run at the same time."""

    status: fwk.Status
    """Success if there is a group, Skip if there is none, or Error."""
    groups: Sequence[Sequence[fwk.PreBindPlugin]] = ()


def run_pre_bind_pre_flights(cycle: Cycle, pod: Pod, node: str) -> PreBindPlan:
    """Returns the PreBind plugins with something to do; one that cannot run beside others is its own group.

    Upstream: RunPreBindPreFlights, getPreBindPluginGroups.
    """
    groups: list[list[fwk.PreBindPlugin]] = []
    may_join = False
    for plugin in cycle.framework.plugins.pre_bind:
        try:
            flight: fwk.PreFlight | None = call_plugin(
                cycle.observe, plugin.name, "PreBindPreFlight", plugin.pre_bind_pre_flight, cycle, pod, node
            )
        except PluginError as exc:
            _LOG.exception(exc.__cause__ or exc, "Plugin failed", plugin=plugin.name, pod=pod, node=node)
            return PreBindPlan(fwk.error(str(exc)).by(plugin.name))
        flight = flight or fwk.PreFlight(fwk.SUCCESS)
        status = flight.status
        if status.is_skip:
            continue
        if status.code is fwk.Code.ERROR:
            return PreBindPlan(_error(plugin, "PreBindPreFlight", status.message))
        if not status.is_success:
            unsupported = f'PreBindPreFlight {plugin.name} returned "{status.code}", which is unsupported.'
            return PreBindPlan(
                fwk.error(f"{unsupported} It is supposed to return Success, Skip, or Error status").by(plugin.name)
            )
        if may_join and flight.allow_parallel:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
        may_join = flight.allow_parallel
    return PreBindPlan(fwk.SUCCESS if groups else fwk.SKIP, groups)


def without_pre_flights(cycle: Cycle, but: Container[str] = ()) -> PreBindPlan:
    """Returns all PreBind plugins one after the other, for callers without pre-flights."""
    groups = [[plugin] for plugin in cycle.framework.plugins.pre_bind if plugin.name not in but]
    return PreBindPlan(fwk.SUCCESS if groups else fwk.SKIP, groups)


async def run_pre_bind_plugins(plan: PreBindPlan, cycle: Cycle, pod: Pod, node: str) -> fwk.Status:
    for group in plan.groups:
        if len(group) == 1:
            statuses = [await _pre_bound(group[0], cycle, pod, node)]
        else:
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(_pre_bound(plugin, cycle, pod, node)) for plugin in group]
            statuses = [task.result() for task in tasks]
        for status in statuses:
            if not status.is_success:
                return status
    return fwk.SUCCESS


async def _pre_bound(plugin: fwk.PreBindPlugin, cycle: Cycle, pod: Pod, node: str) -> fwk.Status:
    status = await _status_of(plugin, "PreBind", partial(plugin.pre_bind, cycle, pod, node), cycle, pod, node)
    return _concluded(status, "PreBind", plugin, pod, node)


async def run_bind_plugins(cycle: Cycle, pod: Pod, node: str) -> fwk.Status:
    """Returns the status of the first Bind plugin that does not skip the pod; Skip, which is no success, if all do."""
    for plugin in cycle.framework.plugins.bind:
        status = await _status_of(plugin, "Bind", partial(plugin.bind, cycle, pod, node), cycle, pod, node)
        if not status.is_skip:
            return _concluded(status, "Bind", plugin, pod, node)
    return fwk.SKIP


def _concluded(status: fwk.Status, point: str, plugin: fwk.Plugin, pod: Pod, node: str) -> fwk.Status:
    if status.is_rejected:
        _LOG.info(4, f"Pod rejected by {point} plugin", pod=pod, node=node, plugin=plugin.name, status=status.message)
        return status.by(plugin.name)
    return status if status.is_success else _error(plugin, point, status.message)


async def run_post_bind_plugins(cycle: Cycle, pod: Pod, node: str) -> None:
    """Runs every PostBind. Failures are logged and change nothing."""
    for plugin in cycle.framework.plugins.post_bind:
        await _status_of(plugin, "PostBind", partial(plugin.post_bind, cycle, pod, node), cycle, pod, node)


async def _status_of(
    plugin: fwk.Plugin, point: str, call: Callable[[], Awaitable[object]], cycle: Cycle, pod: Pod, node: str
) -> fwk.Status:
    """Returns the plugin's status; Error, which is logged, if it raised."""
    failed = "Plugin Failed" if point == "Bind" else "Plugin failed"  # upstream's spelling
    try:
        status = _or_success(await call_plugin_async(cycle.observe, plugin.name, point, call), plugin, point)
    except PluginError as exc:
        _LOG.exception(exc.__cause__ or exc, failed, plugin=plugin.name, pod=pod, node=node)
        return fwk.error(exc.why)
    if not (status.is_success or status.is_skip or status.is_rejected):
        _LOG.error(status.message, failed, plugin=plugin.name, pod=pod, node=node)
    return status

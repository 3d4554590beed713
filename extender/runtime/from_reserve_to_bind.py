"""The extension points of a pod that has a node: Reserve, Permit, PreBind, Bind, PostBind; what each answer means there.

A plugin that raises has answered Error.

Upstream: pkg/scheduler/framework/runtime/framework.go, RunReservePluginsReserve and the functions after it (v1.36.2).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, final

from extender import framework as fwk
from extender.klog.logger import Logger
from extender.objects.pod import Pod
from extender.runtime.framework import PluginsByPoint
from extender.runtime.timing import timed, timed_wait
from extender.runtime.waiting_pods import MAX_TIMEOUT

ASKED_TO_WAIT: Final = "one or more plugins asked to wait and no plugin rejected pod"

_LOG: Final = Logger(__name__)


def run_reserve_plugins(plugins: PluginsByPoint, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
    """Let plugins keep what the pod needs. After anything but Success, `run_unreserve_plugins` is due."""
    for plugin in plugins.reserve:
        try:
            if state.observe_plugin is None:
                status = plugin.reserve(state, pod, node)
            else:
                status = timed(state.observe_plugin, plugin.name, "Reserve", plugin.reserve, state, pod, node)
        except Exception as exc:
            _LOG.exception(exc, "Plugin failed", plugin=plugin.name, pod=pod)
            return fwk.error(f'running Reserve plugin "{plugin.name}": {exc}').by(plugin.name)
        if status.is_success:
            continue
        if status.is_rejected:
            _LOG.info(4, "Pod rejected by plugin", pod=pod, plugin=plugin.name, status=status.message)
            return status.by(plugin.name)
        _LOG.error(status.message, "Plugin failed", plugin=plugin.name, pod=pod)
        return fwk.error(f'running Reserve plugin "{plugin.name}": {status.message}').by(plugin.name)
    return fwk.SUCCESS


def run_unreserve_plugins(plugins: PluginsByPoint, state: fwk.CycleState, pod: Pod, node: str) -> None:
    """Let all plugins give back what they keep, the last first; one that fails does not keep the others from it."""
    for plugin in reversed(plugins.reserve):
        try:
            if state.observe_plugin is None:
                plugin.unreserve(state, pod, node)
            else:
                timed(state.observe_plugin, plugin.name, "Unreserve", plugin.unreserve, state, pod, node)
        except Exception as exc:
            _LOG.exception(exc, "Plugin failed to unreserve", plugin=plugin.name, pod=pod)


def run_permit_plugins(plugins: PluginsByPoint, state: fwk.CycleState, pod: Pod, node: str) -> tuple[fwk.Status, Mapping[str, float]]:
    """Ask plugins for leave.

    Returns:
        Success; a refusal or an error; or Wait, and for how many seconds at most each plugin holds the pod.
    """
    timeouts: dict[str, float] = {}
    for plugin in plugins.permit:
        try:
            if state.observe_plugin is None:
                status, seconds = plugin.permit(state, pod, node)
            else:
                status, seconds = timed(state.observe_plugin, plugin.name, "Permit", plugin.permit, state, pod, node)
        except Exception as exc:
            _LOG.exception(exc, "Plugin failed", plugin=plugin.name, pod=pod)
            return fwk.error(f'running Permit plugin "{plugin.name}": {exc}').by(plugin.name), {}
        if status.is_success:
            continue
        if status.is_rejected:
            _LOG.info(4, "Pod rejected by plugin", pod=pod, plugin=plugin.name, status=status.message)
            return status.by(plugin.name), {}
        if status.code is not fwk.Code.WAIT:
            _LOG.error(status.message, "Plugin failed", plugin=plugin.name, pod=pod)
            return fwk.error(f'running Permit plugin "{plugin.name}": {status.message}').by(plugin.name), {}
        timeouts[plugin.name] = min(seconds, MAX_TIMEOUT)
    if not timeouts:
        return fwk.SUCCESS, {}
    _LOG.info(4, "One or more plugins asked to wait and no plugin rejected pod", pod=pod)
    return fwk.Status(fwk.Code.WAIT, (ASKED_TO_WAIT,)), timeouts


@final
@dataclass(frozen=True, slots=True)
class PreBindPlan:
    """Which PreBind plugins have something to do for a pod, in groups that may run at the same time."""

    status: fwk.Status
    """Success if any has, Skip if none has, Error."""
    groups: Sequence[Sequence[fwk.PreBindPlugin]] = field(default=())


def run_pre_bind_pre_flights(plugins: PluginsByPoint, state: fwk.CycleState, pod: Pod, node: str) -> PreBindPlan:
    """Ask who has something to do. A plugin that cannot run beside others is a group of its own.

    Upstream: framework.go, RunPreBindPreFlights, getPreBindPluginGroups.
    """
    groups: list[list[fwk.PreBindPlugin]] = []
    may_join = False
    for plugin in plugins.pre_bind:
        try:
            if state.observe_plugin is None:
                flight = plugin.pre_bind_pre_flight(state, pod, node)
            else:
                flight = timed(state.observe_plugin, plugin.name, "PreBindPreFlight", plugin.pre_bind_pre_flight, state, pod, node)
        except Exception as exc:
            _LOG.exception(exc, "Plugin failed", plugin=plugin.name, pod=pod, node=node)
            flight = fwk.PreFlight(fwk.error(str(exc)))
        status = flight.status
        if status.is_skip:
            continue
        if status.code is fwk.Code.ERROR:
            return PreBindPlan(fwk.error(f'running PreBindPreFlight "{plugin.name}": {status.message}').by(plugin.name))
        if not status.is_success:
            said = f'PreBindPreFlight {plugin.name} returned "{status.code}", which is unsupported.'
            return PreBindPlan(fwk.error(f"{said} It is supposed to return Success, Skip, or Error status").by(plugin.name))
        if may_join and flight.allow_parallel:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
        may_join = flight.allow_parallel
    return PreBindPlan(fwk.SUCCESS if groups else fwk.SKIP, groups)


async def run_pre_bind_plugins(plan: PreBindPlan, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
    """Let those who have something to do for the pod do it, group by group."""
    for group in plan.groups:
        if len(group) == 1:
            statuses = [await _pre_bound(group[0], state, pod, node)]
        else:
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(_pre_bound(plugin, state, pod, node)) for plugin in group]
            statuses = [task.result() for task in tasks]
        for status in statuses:
            if not status.is_success:
                return status
    return fwk.SUCCESS


async def _pre_bound(plugin: fwk.PreBindPlugin, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
    ask = partial(timed_wait, state.observe_plugin, plugin.name, "PreBind", partial(plugin.pre_bind, state, pod, node))
    status = await _answer(ask, "Plugin failed", plugin, pod, node)
    if status.is_success:
        return status
    if status.is_rejected:
        _LOG.info(4, "Pod rejected by PreBind plugin", pod=pod, node=node, plugin=plugin.name, status=status.message)
        return status.by(plugin.name)
    return fwk.error(f'running PreBind plugin "{plugin.name}": {status.message}').by(plugin.name)


async def run_bind_plugins(plugins: PluginsByPoint, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
    """Have the pod bound by the first plugin that does not skip it; Skip if all do, which is no success."""
    for plugin in plugins.bind:
        ask = partial(timed_wait, state.observe_plugin, plugin.name, "Bind", partial(plugin.bind, state, pod, node))
        status = await _answer(ask, "Plugin Failed", plugin, pod, node)
        if status.is_skip:
            continue
        if status.is_success:
            return status
        if status.is_rejected:
            _LOG.info(4, "Pod rejected by Bind plugin", pod=pod, node=node, plugin=plugin.name, status=status.message)
            return status.by(plugin.name)
        return fwk.error(f'running Bind plugin "{plugin.name}": {status.message}').by(plugin.name)
    return fwk.SKIP


async def run_post_bind_plugins(plugins: PluginsByPoint, state: fwk.CycleState, pod: Pod, node: str) -> None:
    """Tell plugins that the pod is bound. Nothing can go wrong any more."""
    for plugin in plugins.post_bind:
        ask = partial(timed_wait, state.observe_plugin, plugin.name, "PostBind", partial(_post_bound, plugin, state, pod, node))
        await _answer(ask, "Plugin failed", plugin, pod, node)


async def _post_bound(plugin: fwk.PostBindPlugin, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
    await plugin.post_bind(state, pod, node)
    return fwk.SUCCESS


async def _answer(ask: Callable[[], Awaitable[fwk.Status]], failed: str, plugin: fwk.Plugin, pod: Pod, node: str) -> fwk.Status:
    """What the plugin says; what went wrong is logged as `failed`."""
    try:
        status = await ask()
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Not we were cancelled, but something that the plugin waits for: an error like any other.
        _LOG.exception(exc, failed, plugin=plugin.name, pod=pod, node=node)
        return fwk.error("context canceled")
    except Exception as exc:
        _LOG.exception(exc, failed, plugin=plugin.name, pod=pod, node=node)
        return fwk.error(str(exc))
    if not (status.is_success or status.is_skip or status.is_rejected):
        _LOG.error(status.message, failed, plugin=plugin.name, pod=pod, node=node)
    return status

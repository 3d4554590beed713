"""binding_cycle(): what was decided is done.

Upstream: pkg/scheduler/schedule_one.go, bindingCycle, handleBindingCycleError (v1.36.2).
"""

import asyncio
from typing import Final

from extender import framework as fwk
from extender.framework.events import EVENT_ASSIGNED_POD_DELETE
from extender.klog.logger import Logger
from extender.objects.pod import Pod
from extender.runtime.framework import Framework
from extender.runtime.from_reserve_to_bind import (
    run_bind_plugins,
    run_post_bind_plugins,
    run_pre_bind_plugins,
    run_pre_bind_pre_flights,
    run_unreserve_plugins,
)
from extender.scheduler.extenders import bound_by_extender
from extender.scheduler.world import Decided, Failure, World, activate_pods, refused_on_one_node

_LOG: Final = Logger(__name__)


async def binding_cycle(world: World, framework: Framework, decided: Decided) -> Failure | None:
    """Bind the pod; if that fails, everything that was kept for it is free again.

    Returns:
        None once the pod is bound, else why it is not. If it was refused, `others_may_have_its_room` is due once it is back in the queue.
    """
    pod, now, points = decided.pod, asyncio.get_running_loop().time, world.metrics.points
    try:
        failure = await _bind(world, framework, decided)
    except Exception as exc:
        _LOG.exception(exc, "Error occurred in the binding cycle", pod=pod, node=decided.node)
        world.waiting_pods.remove(pod.uid)
        failure = Failure(fwk.error(str(exc) or type(exc).__name__))
    if failure is None:
        await _after_binding(world, framework, decided)
        return None
    began = now()
    run_unreserve_plugins(framework.plugins, decided.state, pod, decided.node)
    points.observe(now() - began, "Unreserve", "Success", framework.profile_name)
    world.cluster.forget(pod.uid)
    if not failure.status.is_rejected:
        world.queue.move_all_to_active_or_backoff_queue(EVENT_ASSIGNED_POD_DELETE, pod, None)
    return failure


async def _after_binding(world: World, framework: Framework, decided: Decided) -> None:
    """Whoever wants to know is told. The pod is bound, and nothing that goes wrong here can change that."""
    pod, now = decided.pod, asyncio.get_running_loop().time
    try:
        framework.record_event(pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {decided.node}")
        _LOG.info(
            2,
            "Successfully bound pod to node",
            pod=pod,
            node=decided.node,
            evaluatedNodes=decided.evaluated_nodes,
            feasibleNodes=decided.feasible_nodes,
        )
        began = now()
        await run_post_bind_plugins(framework.plugins, decided.state, pod, decided.node)
        world.metrics.points.observe(now() - began, "PostBind", "Success", framework.profile_name)
        activate_pods(world, decided.state)
    except Exception as exc:
        _LOG.exception(exc, "Error occurred after the pod was bound", pod=pod, node=decided.node)


def others_may_have_its_room(world: World, pod: Pod) -> None:
    """The room of a pod that was refused late is free, for others: the pod itself would only be refused again.

    Told while the pod is in flight it would be kept for it, too, and bring it back.
    """
    world.queue.move_all_to_active_or_backoff_queue(EVENT_ASSIGNED_POD_DELETE, pod, None, lambda info: info.pod.uid != pod.uid)


async def _bind(world: World, framework: Framework, decided: Decided) -> Failure | None:
    """Why the pod was not bound; None if it was."""
    pod, node, state = decided.pod, decided.node, decided.state
    now, points = asyncio.get_running_loop().time, world.metrics.points

    # 1 whoever looks at the pod while it waits sees where it is expected to go
    began = now()
    plan = run_pre_bind_pre_flights(framework.plugins, state, pod, node)
    points.observe(now() - began, "PreBindPreFlight", str(plan.status.code), framework.profile_name)
    if not (plan.status.is_success or plan.status.is_skip):
        world.waiting_pods.remove(pod.uid)
        return Failure(plan.status)
    if plan.status.is_success or decided.waiting is not None:
        _LOG.info(3, "Updating pod condition and nominated node name", pod=pod, nominatedNodeName=node, nominatingMode="Override")
        world.dispatcher.submit(fwk.PatchPodStatus.of(pod, nominated_node_name=node))

    # 2 leave
    if decided.waiting is not None:
        _LOG.info(4, "Pod waiting on permit", pod=pod)
        began = now()
        try:
            status = await decided.waiting.wait()
        finally:
            world.waiting_pods.remove(pod.uid)
        world.metrics.permit_wait.observe(now() - began, str(status.code))
        if status.is_rejected:
            _LOG.info(4, "Pod rejected while waiting on permit", pod=pod, status=status.message)
            return refused_on_one_node(status)
        if not status.is_success:
            _LOG.error(status.message, "Failed waiting on permit for pod", pod=pod)
            return Failure(fwk.error(f"waiting on permit for pod: {status.message}"))

    # 3 what happens in the cluster cannot change the outcome any more
    world.queue.done(pod.uid)

    # 4 volumes and devices
    if plan.groups:
        pre_bind = asyncio.ensure_future(run_pre_bind_plugins(plan, state, pod, node))
        began = now()
        status = await world.pods_in_pre_bind.run(pod.uid, pre_bind)
        points.observe(now() - began, "PreBind", str(status.code), framework.profile_name)
        if not status.is_success:
            return Failure(status)

    # 5 the binding itself: an extender's affair, if there is one for it
    began = now()
    with world.binds:
        bound = await bound_by_extender(world.extenders, pod, node, world.fence)
        status = bound if bound is not None else await run_bind_plugins(framework.plugins, state, pod, node)
    points.observe(now() - began, "Bind", str(status.code), framework.profile_name)
    if status.is_success:
        return None
    _LOG.info(1, "Failed to bind pod", pod=pod)
    return Failure(status)

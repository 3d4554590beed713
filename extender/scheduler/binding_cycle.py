"""binding_cycle(): binds a pod to the node that the scheduling cycle chose.

`UnconfirmedBindings` holds the pods whose binding the API server confirmed but which no watch has shown on their node yet. Usually that
takes milliseconds. An API server that was restored from a backup may have forgotten the binding: no watch would ever report it, and the
pod would stay assumed for ever. Upstream leaves it there until the scheduler is restarted.

Upstream: pkg/scheduler/schedule_one.go, bindingCycle, handleBindingCycleError (v1.36.2).
"""

import asyncio
from typing import Final, final

from extender import framework as fwk
from extender.framework.events import EVENT_ASSIGNED_POD_DELETE
from extender.klog.logger import Logger
from extender.objects.pod import Pod
from extender.runtime.framework import Framework
from extender.runtime.reserve_to_bind import (
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
    """Binds the pod; if that fails, everything that was reserved for it is free again.

    Returns:
        None once the pod is bound, else why it is not. If it was refused, `free_its_room_for_others` is due once it is back in the queue.
    """
    pod = decided.pod
    try:
        failure = await _bind(world, framework, decided)
    except Exception as exc:
        _LOG.exception(exc, "Error occurred in the binding cycle", pod=pod, node=decided.node)
        world.waiting_pods.remove(pod.uid)
        failure = Failure(fwk.error(str(exc) or type(exc).__name__))
    if failure is None:
        await _after_binding(world, framework, decided)
        return None
    with world.metrics.timed("Unreserve", framework.profile_name, asyncio.get_running_loop().time):
        run_unreserve_plugins(decided.cycle, pod, decided.node)
    world.cluster.forget(pod.uid)
    if not failure.status.is_rejected:
        world.queue.move_all_to_active_or_backoff_queue(EVENT_ASSIGNED_POD_DELETE, pod, None)
    return failure


async def _after_binding(world: World, framework: Framework, decided: Decided) -> None:
    """Records the event and runs PostBind. The pod is bound, and nothing that goes wrong here can change that."""
    pod, node = decided.pod, decided.node
    try:
        framework.record_event(pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}")
        numbers = {"evaluatedNodes": decided.evaluated_nodes, "feasibleNodes": decided.feasible_nodes}
        _LOG.info(2, "Successfully bound pod to node", pod=pod, node=node, **numbers)
        with world.metrics.timed("PostBind", framework.profile_name, asyncio.get_running_loop().time):
            await run_post_bind_plugins(decided.cycle, pod, node)
        activate_pods(world, decided.cycle)
    except Exception as exc:
        _LOG.exception(exc, "Error occurred after the pod was bound", pod=pod, node=node)


def free_its_room_for_others(world: World, pod: Pod) -> None:
    """Wakes the pods that may take the room of a pod that was refused late; the pod itself would only be refused again.

    This comes after the pod is back in the queue: an event that comes while it is in flight is kept for it, and would bring it back.
    """
    world.queue.move_all_to_active_or_backoff_queue(EVENT_ASSIGNED_POD_DELETE, pod, None, lambda info: info.pod.uid != pod.uid)


async def _bind(world: World, framework: Framework, decided: Decided) -> Failure | None:
    """Returns why the pod was not bound; None if it was."""
    pod, node, cycle = decided.pod, decided.node, decided.cycle
    now, profile, timed = asyncio.get_running_loop().time, framework.profile_name, world.metrics.timed

    # 1 those who look at the pod while it waits see where it is expected to go
    with timed("PreBindPreFlight", profile, now) as point:
        plan = run_pre_bind_pre_flights(cycle, pod, node)
        point.status = str(plan.status.code)
    if not (plan.status.is_success or plan.status.is_skip):
        world.waiting_pods.remove(pod.uid)
        return Failure(plan.status)
    if plan.status.is_success or decided.waiting is not None:
        _LOG.info(3, "Updating pod condition and nominated node name", pod=pod, nominatedNodeName=node, nominatingMode="Override")
        world.dispatcher.submit(fwk.PatchPodStatus.of(pod, nominated_node_name=node))

    # 2 Permit
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
        with timed("PreBind", profile, now) as point:
            pre_bind = asyncio.ensure_future(run_pre_bind_plugins(plan, cycle, pod, node))
            status = await world.pods_in_pre_bind.run(pod.uid, pre_bind)
            point.status = str(status.code)
        if not status.is_success:
            return Failure(status)

    # 5 the binding itself: an extender's affair, if there is one for it
    with timed("Bind", profile, now) as point, world.binds:
        bound = await bound_by_extender(world.extenders, pod, node, world.fence)
        status = bound if bound is not None else await run_bind_plugins(cycle, pod, node)
        point.status = str(status.code)
    if status.is_success:
        return None
    _LOG.info(1, "Failed to bind pod", pod=pod)
    return Failure(status)


LOOK_EVERY: Final = 30.0
"""Seconds between two looks."""
SOON_ENOUGH: Final = 60.0
"""Seconds in which a watch usually has told."""


@final
class UnconfirmedBindings:
    """Says again what was said, to the same pod and node: if the server knows it, nothing changes. State: whom it is about, and since when.

    The room stays taken all the time. A pod that is elsewhere or gone by now is the watch's to tell.
    """

    def __init__(self, world: World) -> None:
        """Nothing is looked after before `run`."""
        self._world = world
        self._since: dict[str, tuple[Pod, float]] = {}

    def add(self, pod: Pod) -> None:
        """The pod was bound to its node just now."""
        self._since[pod.uid] = pod, asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Look from time to time, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._look(asyncio.get_running_loop().time())

    def _look(self, now: float) -> None:
        self._since = {uid: found for uid, found in self._since.items() if self._world.cluster.cache.is_assumed(found[0])}
        for uid, (pod, since) in self._since.items():
            if now - since >= SOON_ENOUGH:
                self._since[uid] = pod, now
                self._world.dispatcher.submit(fwk.BindPod.of(pod, pod.spec.node_name))

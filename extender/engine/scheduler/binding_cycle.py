"""binding_cycle(): binds a pod to the node that the scheduling cycle chose.

`UnconfirmedBindings` holds the pods whose binding the API server confirmed but which no watch has shown on their node
yet. Usually that takes milliseconds. An API server that was restored from a backup may have forgotten the binding: no
watch would ever report it, and the pod would stay assumed forever. Upstream leaves it there until the scheduler is
restarted.

Upstream: pkg/scheduler/schedule_one.go, bindingCycle, handleBindingCycleError.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, final

from extender.engine import framework as fwk
from extender.engine.framework.events import EVENT_ASSIGNED_POD_DELETE
from extender.engine.runtime import reserve_to_bind
from extender.engine.runtime.framework import Framework
from extender.engine.scheduler.extenders import bound_by_extender
from extender.engine.scheduler.world import AssumedPod, Failure, World, activate_pods, refused_on_one_node
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)


async def binding_cycle(world: World, framework: Framework, assumed: AssumedPod) -> Failure | None:
    """Binds the pod; on failure, releases everything reserved for it, and returns the reason.

    After a refusal, call `wake_other_pods` once the pod is back in the queue.
    """
    pod = assumed.pod
    try:
        failure = await _bind(world, framework, assumed)
    except Exception as exc:
        _LOG.exception(exc, "Error occurred in the binding cycle", pod=pod, node=assumed.node)
        world.waiting_pods.remove(pod.uid)
        failure = Failure(fwk.error(str(exc) or type(exc).__name__))
    if failure is None:
        await _after_binding(world, framework, assumed)
        return None
    with world.metrics.timed("Unreserve", framework.profile_name):
        reserve_to_bind.run_unreserve_plugins(assumed.cycle, pod, assumed.node)
    world.cluster.forget(pod.uid)
    if not failure.status.is_rejected:
        world.queue.move_all_to_active_or_backoff_queue(EVENT_ASSIGNED_POD_DELETE, pod, None)
    return failure


async def _after_binding(world: World, framework: Framework, assumed: AssumedPod) -> None:
    """Records the event and runs PostBind. The pod is bound, and no failure in here can change that."""
    pod, node = assumed.pod, assumed.node
    try:
        framework.record_event(pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}")
        numbers = {"evaluatedNodes": assumed.evaluated_nodes, "feasibleNodes": assumed.feasible_nodes}
        _LOG.info(2, "Successfully bound pod to node", pod=pod, node=node, **numbers)
        with world.metrics.timed("PostBind", framework.profile_name):
            await reserve_to_bind.run_post_bind_plugins(assumed.cycle, pod, node)
        activate_pods(world, assumed.cycle)
    except Exception as exc:
        _LOG.exception(exc, "Error occurred after the pod was bound", pod=pod, node=node)


def wake_other_pods(world: World, pod: Pod) -> None:
    """Requeues the pods that may fit where the refused pod was assumed, but not that pod itself.

    Call it after the pod is back in the queue: an event during its attempt is kept for it, and would requeue it.
    """
    world.queue.move_all_to_active_or_backoff_queue(
        EVENT_ASSIGNED_POD_DELETE, pod, None, lambda info: info.pod.uid != pod.uid
    )


async def _bind(world: World, framework: Framework, assumed: AssumedPod) -> Failure | None:
    pod, node, cycle = assumed.pod, assumed.node, assumed.cycle
    now, profile, timed = asyncio.get_running_loop().time, framework.profile_name, world.metrics.timed

    # 1 the nominated node, so that others see where a pod is expected to go that may wait for long
    if world.nominates_before_binding:
        with timed("PreBindPreFlight", profile) as point:
            plan = reserve_to_bind.run_pre_bind_pre_flights(cycle, pod, node)
            point.status = str(plan.status.code)
    else:
        plan = reserve_to_bind.without_pre_flights(cycle)
    if not (plan.status.is_success or plan.status.is_skip):
        world.waiting_pods.remove(pod.uid)
        return Failure(plan.status)
    if world.nominates_before_binding and (plan.status.is_success or assumed.waiting is not None):
        _LOG.info(
            3,
            "Updating pod condition and nominated node name",
            pod=pod,
            nominatedNodeName=node,
            nominatingMode="Override",
        )
        world.dispatcher.submit(fwk.PatchPodStatus.of(pod, nominated_node_name=node))

    # 2 Permit
    if assumed.waiting is not None:
        _LOG.info(4, "Pod waiting on permit", pod=pod)
        began = now()
        try:
            status = await assumed.waiting.wait()
        finally:
            world.waiting_pods.remove(pod.uid)
        world.metrics.permit_wait.observe(now() - began, str(status.code))
        if status.is_rejected:
            _LOG.info(4, "Pod rejected while waiting on permit", pod=pod, status=status.message)
            return refused_on_one_node(status)
        if not status.is_success:
            _LOG.error(status.message, "Failed waiting on permit for pod", pod=pod)
            return Failure(fwk.error(f"waiting on permit for pod: {status.message}"))

    # 3 the pod is no longer in flight: no event can change the outcome any more
    world.queue.done(pod.uid)

    # 4 PreBind: volumes and devices
    if plan.groups:
        with timed("PreBind", profile) as point:
            pre_bind = asyncio.ensure_future(reserve_to_bind.run_pre_bind_plugins(plan, cycle, pod, node))
            status = await world.pods_in_pre_bind.run(pod.uid, pre_bind)
            point.status = str(status.code)
        if not status.is_success:
            return Failure(status)

    # 5 the binding itself, by an extender if one binds such pods
    with timed("Bind", profile) as point, world.binds:
        bound = await bound_by_extender(world.extenders, pod, node, world.fence) if world.extenders else None
        status = bound if bound is not None else await reserve_to_bind.run_bind_plugins(cycle, pod, node)
        point.status = str(status.code)
    if status.is_success:
        return None
    _LOG.info(1, "Failed to bind pod", pod=pod)
    return Failure(status)


CHECK_PERIOD: Final = 10.0
"""Seconds between two checks."""
CONFIRMED_WITHIN: Final = 30.0
"""Seconds after which a binding that no watch has shown is requested again."""


@final
class UnconfirmedBindings:
    """Requests unconfirmed bindings again; nothing changes if the server knows them.

    State: the bindings, each with its time. Their pods stay assumed all the time; a watch reports pods that are
    elsewhere or gone.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: dict[str, tuple[tuple[str, str, str, str, Mapping[str, str]], float]] = {}
        """Pod UID -> the fields of its binding, of which few are requested again, and since when it is unconfirmed."""

    def add(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        """Adds a binding that was performed just now."""
        binding = pod.namespace, pod.name, pod.uid, node, annotations or {}
        self._since[pod.uid] = binding, asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Checks periodically until cancelled."""
        while True:
            await asyncio.sleep(CHECK_PERIOD)
            self._check(asyncio.get_running_loop().time())

    def _check(self, now: float) -> None:
        assumed = self._world.cluster.cache.assumed_pods
        self._since = {uid: binding for uid, binding in self._since.items() if uid in assumed}
        for uid, (binding, since) in self._since.items():
            if now - since >= CONFIRMED_WITHIN:
                self._since[uid] = binding, now
                self._world.dispatcher.submit(fwk.BindPod(*binding))

"""scheduling_cycle(): finds a node for a popped pod, or the reason why there is none.

Upstream: pkg/scheduler/schedule_one.go, schedulingCycle, schedulingAlgorithm, prepareForBindingCycle.
"""

from collections.abc import Awaitable, Callable, Container, Mapping
from time import perf_counter
from typing import Final

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.reserve_to_bind import run_permit_plugins, run_reserve_plugins, run_unreserve_plugins
from extender.engine.scheduler.extenders import schedule_pod_with_extenders
from extender.engine.scheduler.schedule_pod import FitError, ScheduleResult, SchedulingAlgorithm
from extender.engine.scheduler.world import AssumedPod, Failure, World, activate_pods, refused_on_one_node
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)


EvictNow = Callable[[Framework, Pod, fwk.Candidate, str], Awaitable[None]]
"""(framework, preemptor, candidate, PostFilter plugin) -> evicts the victims, or raises CallError."""


async def scheduling_cycle(
    world: World,
    algorithm: SchedulingAlgorithm,
    framework: Framework,
    pod: Pod,
    percentage: int,
    evict_now: EvictNow | None = None,
) -> AssumedPod | Failure:
    """Returns the pod assumed on a node, or its failure. Only `evict_now` writes to the API server.

    It evicts the victims of a preemption in the cycle; without it, the candidate of the Failure is left to the caller.
    """
    # 1 the snapshot of this cycle, after nominated pods got their slots in the cache
    nominations = nominations_of(world)
    try:
        snapshot = world.cluster.cache.update_snapshot()
    except Exception as exc:
        return Failure(fwk.error(str(exc)))
    cycle = Cycle(framework, snapshot, pod, nominations, observe=world.metrics.plugins.sampled())
    cycle.write(fwk.PODS_TO_ACTIVATE, {})

    # 2 find a node, or a candidate for preemption
    began = perf_counter()
    try:
        result = await find_node(world, algorithm, cycle, percentage, evict_now)
    finally:
        world.metrics.algorithm.observe(perf_counter() - began)
    if isinstance(result, Failure):
        return result
    if result.choice is not None:
        world.reporter.scored(pod, result.choice)

    return assume_and_permit(world, cycle, result)


def assume_and_permit(world: World, cycle: Cycle, result: ScheduleResult) -> AssumedPod | Failure:
    """Returns the pod assumed on the chosen node, or its failure (assumeAndReserve)."""
    # 3 assume the pod, so that it counts on its node from now on
    pod, node = cycle.pod, result.suggested_host
    world.queue.delete_nominated_pod_if_exists(pod)
    try:
        assumed = world.cluster.assume(pod.uid, node)
    except ValueError as exc:
        _LOG.error(exc, "Scheduler cache AssumePod failed", pod=pod)
        return Failure(fwk.error(str(exc)))
    if assumed is None:
        why = f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed"
        _LOG.error(why, "Scheduler cache AssumePod failed", pod=pod)
        return Failure(fwk.error(why))

    # 4 Reserve and Permit
    status, timeouts = reserve_and_permit(world, cycle, assumed)
    if status.is_success or status.code is fwk.Code.WAIT:
        waiting = None if status.is_success else world.waiting_pods.add(assumed, timeouts)
        activate_pods(world, cycle)
        return AssumedPod(assumed, cycle, waiting, result.evaluated_nodes, result.feasible_nodes)
    unreserve_and_forget(world, cycle, assumed)
    return refused_on_one_node(status) if status.is_rejected else Failure(status)


def unreserve_and_forget(world: World, cycle: Cycle, assumed: Pod) -> None:
    with world.metrics.timed("Unreserve", cycle.framework.profile_name):
        run_unreserve_plugins(cycle, assumed, assumed.spec.node_name)
    world.cluster.forget(assumed.uid)


async def find_node(
    world: World,
    algorithm: SchedulingAlgorithm,
    cycle: Cycle,
    percentage: int,
    evict_now: EvictNow | None,
    *,
    post_filters: bool = True,
) -> ScheduleResult | Failure:
    """Returns the node for the pod, or the failure with the candidate that PostFilter chose.

    Without `post_filters` none runs (SetSkipAllPostFilterPlugins).
    """
    try:
        if world.extenders:
            return await schedule_pod_with_extenders(algorithm, world.extenders, cycle, percentage)
        return algorithm.schedule_pod(cycle, percentage)
    except fwk.NoNodesAvailableError as exc:
        return Failure(fwk.unresolvable(str(exc)))
    except FitError as exc:
        if cycle.placement is not None:
            exc = FitError(len(cycle.placement), exc.diagnosis, exc.findings)
        if not post_filters:
            plugins, pending = exc.diagnosis.unschedulable_plugins, exc.diagnosis.pending_plugins
            return Failure(fwk.unschedulable(str(exc)), plugins, pending)
        return await _after_post_filter(world, cycle, exc, evict_now)
    except (PluginError, fwk.ExtenderError) as exc:
        _LOG.error(exc, "Error selecting node for pod", pod=cycle.pod)
        return Failure(fwk.error(str(exc)))


def reserve_and_permit(world: World, cycle: Cycle, assumed: Pod) -> tuple[fwk.Status, Mapping[str, float]]:
    """Runs Reserve and, unless it refuses, Permit; returns the status, and plugin -> seconds that it holds the pod."""
    metrics, profile, node = world.metrics, cycle.framework.profile_name, assumed.spec.node_name
    try:
        with metrics.timed("Reserve", profile) as point:
            status = run_reserve_plugins(cycle, assumed, node)
            if not status.is_success:
                point.status = str(status.code)
                return status, {}
        world.cluster.cache.annotate(assumed.uid, cycle.find(fwk.BINDING_ANNOTATIONS))
        with metrics.timed("Permit", profile) as point:
            status, timeouts = run_permit_plugins(cycle, assumed, node)
            if not status.is_success:
                point.status = str(status.code)
        return status, timeouts
    except Exception as exc:
        # A plugin returned something that is no status. What the others reserved is given back all the same.
        _LOG.exception(exc, "Error selecting node for pod", pod=cycle.pod)
        return fwk.error(str(exc) or type(exc).__name__), {}


def nominations_of(world: World, but: Container[str] = ()) -> Nominations:
    """Returns the queue's nominated pods that can be read, but for these UIDs, each with a slot in the cache."""
    by_node: dict[str, tuple[tuple[int, Pod], ...]] = {}
    for node, pods in world.queue.nominated_pods().items():
        slots: list[tuple[int, Pod]] = []
        for pod in pods:
            if pod.uid in but:
                continue
            try:
                slots.append((world.cluster.cache.nominate(pod), pod))
            except ValueError as exc:
                _LOG.error(exc, "A pod that is nominated to a node cannot be read", pod=pod, node=node)
        by_node[node] = tuple(slots)
    return Nominations(by_node) if by_node else NO_NOMINATIONS


async def _after_post_filter(world: World, cycle: Cycle, refusal: FitError, evict_now: EvictNow | None) -> Failure:
    framework, pod, diagnosis = cycle.framework, cycle.pod, refusal.diagnosis
    world.reporter.refused(pod, refusal.findings)
    plugins, pending = diagnosis.unschedulable_plugins, diagnosis.pending_plugins
    if diagnosis.pre_filter_message:
        _LOG.info(5, "Status after running PreFilter plugins for pod", pod=pod, status=diagnosis.pre_filter_message)
    if not framework.plugins.post_filter:
        _LOG.info(3, "No PostFilter plugins are registered, so no preemption will be performed", pod=pod)
        return Failure(fwk.unschedulable(str(refusal)), plugins, pending)
    with world.metrics.timed("PostFilter", framework.profile_name) as point:
        try:
            result = await run_post_filter_plugins(cycle, diagnosis.statuses)
            is_attempt = result.preemption is not None
            _report(world, pod, result)
            if evict_now is not None and result.candidate is not None:
                result = await _preempted(evict_now, cycle, result, result.candidate)
        except PluginError as exc:
            _LOG.exception(exc, "Status after running PostFilter plugins for pod", pod=pod, status=str(exc))
            result = fwk.PostFilterResult(fwk.error(str(exc)))
            is_attempt = any(
                plugin.name == exc.plugin and plugin.chooses_candidates for plugin in framework.plugins.post_filter
            )
        else:
            if result.status.code is fwk.Code.ERROR:
                _LOG.error(
                    None, "Status after running PostFilter plugins for pod", pod=pod, status=result.status.message
                )
            else:
                _LOG.info(5, "Status after running PostFilter plugins for pod", pod=pod, status=result.status.message)
        point.status = str(result.status.code)
    world.metrics.preemption_attempts += is_attempt
    return Failure(
        fwk.unschedulable(refusal.message_after(result.status)),
        plugins,
        pending,
        result.nominated_node,
        result.candidate,
        preempted_by=result.plugin,
        retry_after=result.retry_after,
    )


def _report(world: World, pod: Pod, result: fwk.PostFilterResult) -> None:
    preemption = result.preemption
    if result.candidate is not None and (preemption is None or preemption.chosen is not result.candidate):
        # A plugin chose the candidate without the Evaluator, so that the reporter gets what is known of it.
        preemption = fwk.PreemptionOutcome(result.status, result.nominated_node, chosen=result.candidate)
    if preemption is not None:
        world.reporter.preemption_tried(pod, preemption)


async def _preempted(
    evict_now: EvictNow, cycle: Cycle, result: fwk.PostFilterResult, candidate: fwk.Candidate
) -> fwk.PostFilterResult:
    """Returns the result once the victims are evicted: only a nomination, or an error if an eviction failed."""
    try:
        await evict_now(cycle.framework, cycle.pod, candidate, result.plugin)
    except fwk.CallError as exc:
        return fwk.PostFilterResult(fwk.error(f"preemption: {exc}"))
    return fwk.PostFilterResult(result.status, result.nominated_node)

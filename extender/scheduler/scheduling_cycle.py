"""scheduling_cycle(): a popped pod gets a node, or a reason.

Upstream: pkg/scheduler/schedule_one.go, schedulingCycle, schedulingAlgorithm, prepareForBindingCycle (v1.36.2).
"""

from time import perf_counter
from typing import Final

from extender import framework as fwk
from extender.klog.logger import Logger
from extender.objects.pod import Pod
from extender.preemption import OUTCOME, PreemptionOutcome
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework
from extender.runtime.from_reserve_to_bind import run_permit_plugins, run_reserve_plugins, run_unreserve_plugins
from extender.runtime.nominations import Nominations
from extender.scheduler.extenders import schedule_pod_with_extenders
from extender.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.scheduler.world import Decided, Failure, World, activate_pods, refused_on_one_node

_LOG: Final = Logger(__name__)


async def scheduling_cycle(
    world: World, algorithm: SchedulingAlgorithm, framework: Framework, pod: Pod, percentage: int
) -> Decided | Failure:
    """Decide about one pod. Nothing is written to the API server.

    Arguments:
        percentage: see `SchedulingAlgorithm.schedule_pod`.
    """
    metrics, began = world.metrics, perf_counter()

    # 1 the cluster of this cycle; who was promised room counts in it
    nominations = _nominations(world)
    try:
        snapshot = world.cluster.cache.update_snapshot()
    except Exception as exc:
        return Failure(fwk.error(str(exc)))
    state = framework.begin_cycle(snapshot, nominations)
    state.write(fwk.PODS_TO_ACTIVATE, {})
    state.observe_plugin = metrics.plugins.sampled()

    # 2 a node, or room for the pod once others have gone
    try:
        if world.extenders:
            search = algorithm.begin(framework, snapshot, pod, nominations, state=state)
            result = await schedule_pod_with_extenders(algorithm, world.extenders, search, percentage)
        else:
            result = algorithm.schedule_pod(framework, snapshot, pod, nominations, state=state, percentage_of_nodes_to_score=percentage)
    except fwk.NoNodesAvailableError as exc:
        metrics.algorithm.observe(perf_counter() - began)
        return Failure(fwk.unresolvable(str(exc)))
    except FitError as exc:
        failure = await _after_post_filter(world, framework, state, pod, exc)
        metrics.algorithm.observe(perf_counter() - began)
        return failure
    except (PluginError, fwk.ExtenderError) as exc:
        metrics.algorithm.observe(perf_counter() - began)
        _LOG.error(exc, "Error selecting node for pod", pod=pod)
        return Failure(fwk.error(str(exc)))
    metrics.algorithm.observe(perf_counter() - began)
    node = result.suggested_host
    if result.choice is not None:
        world.reporter.chose(pod, result.choice.rows, result.choice.total, result.choice.highest)

    # 3 from now on the pod takes its room
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

    # 4 what the pod needs is kept for it; whoever must agree does, or lets it wait
    points, profile, began = metrics.points, framework.profile_name, perf_counter()
    try:
        status = run_reserve_plugins(framework.plugins, state, assumed, node)
        points.observe((reserved := perf_counter()) - began, "Reserve", str(status.code), profile)
        if status.is_success:
            status, timeouts = run_permit_plugins(framework.plugins, state, assumed, node)
            points.observe(perf_counter() - reserved, "Permit", str(status.code), profile)
            if status.is_success or status.code is fwk.Code.WAIT:
                waiting = None if status.is_success else world.waiting_pods.add(assumed, timeouts)
                activate_pods(world, state)
                return Decided(assumed, state, waiting, result.evaluated_nodes, result.feasible_nodes)
    except Exception as exc:
        # An answer that is none. What others have kept for the pod is given back all the same.
        _LOG.exception(exc, "Error selecting node for pod", pod=pod)
        status = fwk.error(str(exc) or type(exc).__name__)
    began = perf_counter()
    run_unreserve_plugins(framework.plugins, state, assumed, node)
    points.observe(perf_counter() - began, "Unreserve", "Success", profile)
    world.cluster.forget(pod.uid)
    return refused_on_one_node(status) if status.is_rejected else Failure(status)


def _nominations(world: World) -> Nominations:
    """The promises of the queue, each with a slot in the cache. Pods that cannot be read are promised nothing."""
    by_node: dict[str, tuple[tuple[int, Pod], ...]] = {}
    for node, pods in world.queue.nominated_pods().items():
        slots: list[tuple[int, Pod]] = []
        for pod in pods:
            try:
                slots.append((world.cluster.cache.nominate(pod), pod))
            except ValueError as exc:
                _LOG.error(exc, "A pod that is nominated to a node cannot be read", pod=pod, node=node)
        by_node[node] = tuple(slots)
    return Nominations(by_node)


async def _after_post_filter(world: World, framework: Framework, state: fwk.CycleState, pod: Pod, refusal: FitError) -> Failure:
    """No node takes the pod as things are. Perhaps room can be made."""
    diagnosis = refusal.diagnosis
    world.reporter.refused(pod, refusal.findings)
    plugins, pending = diagnosis.unschedulable_plugins, diagnosis.pending_plugins
    if diagnosis.pre_filter_message:
        _LOG.info(5, "Status after running PreFilter plugins for pod", pod=pod, status=diagnosis.pre_filter_message)
    if not framework.plugins.post_filter:
        _LOG.info(3, "No PostFilter plugins are registered, so no preemption will be performed", pod=pod)
        return Failure(fwk.unschedulable(str(refusal)), plugins, pending)
    began = perf_counter()
    try:
        result = await framework.run_post_filter_plugins(state, pod, diagnosis.statuses)
    except PluginError as exc:
        _LOG.exception(exc, "Status after running PostFilter plugins for pod", pod=pod, status=str(exc))
        result = fwk.PostFilterResult(fwk.error(str(exc)))
    else:
        if result.status.code is fwk.Code.ERROR:
            _LOG.error(None, "Status after running PostFilter plugins for pod", pod=pod, status=result.status.message)
        else:
            _LOG.info(5, "Status after running PostFilter plugins for pod", pod=pod, status=result.status.message)
    world.metrics.points.observe(perf_counter() - began, "PostFilter", str(result.status.code), framework.profile_name)
    world.metrics.preemption_attempts += 1
    outcome = state.find(OUTCOME)
    if result.victims is not None and (outcome is None or outcome.victims is not result.victims):
        outcome = PreemptionOutcome(result.status, result.nominated_node, victims=result.victims)  # found by a plugin in a way of its own
    if outcome is not None:
        world.reporter.sought_room(pod, outcome)
    told = fwk.Diagnosis(
        diagnosis.statuses, plugins, pending, diagnosis.pre_filter_message, "" if result.status.is_success else result.status.message
    )
    message = fwk.fit_error_message(refusal.num_all_nodes, told)
    return Failure(fwk.unschedulable(message), plugins, pending, result.nominated_node, result.victims)

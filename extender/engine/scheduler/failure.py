"""handle_scheduling_failure(): puts the pod of a failed attempt back into the queue, with its event and condition.

Upstream: pkg/scheduler/schedule_one.go, handleSchedulingFailure, updatePod.
"""

from typing import Final

from extender.engine import framework as fwk
from extender.engine.framework.pod_calls import PodCondition
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import AlreadyQueuedError
from extender.engine.runtime.framework import Framework
from extender.engine.scheduler.world import Failure, World, record_failed_scheduling
from extender.values.golang.quoting import quoted
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"

_LOG: Final = Logger(__name__)


def handle_scheduling_failure(
    world: World, framework: Framework, info: QueuedPodInfo, failure: Failure
) -> fwk.PatchPodStatus | None:
    """Requeues the pod, then updates its nomination, then records the event.

    Returns the patch of the pod's condition and nomination that is still to be written, if any.
    """
    # The order is upstream's: first the queue, then the nominator, the event, and the condition.
    pod, message = info.pod, failure.status.message
    _log_failure(pod, failure)
    info.set_rejector_plugins(failure.unschedulable_plugins, failure.pending_plugins)
    info.retry_after = failure.retry_after
    current = world.pod_by_key(pod.key)
    if current is not None and current.uid != pod.uid:
        # Another pod has this name by now, and an entry of its own in the queue.
        world.queue.done(pod.uid)
        return None
    if current is None or current.spec.node_name:
        if current is None:
            err = f"pod {quoted(pod.metadata.name)} not found"
            _LOG.info(0, "Pod doesn't exist in informer cache", pod=pod, err=err)
        else:
            node = current.spec.node_name
            _LOG.info(0, "Pod has been assigned to node. Abort adding it back to queue.", pod=pod, node=node)
        world.queue.done(pod.uid)
    else:
        info.pod = pod = current
        try:
            world.queue.add_unschedulable_if_not_present(info)
        except AlreadyQueuedError as exc:
            _LOG.error(exc, "Error occurred", pod=pod)
    if failure.nominate == "":
        world.queue.delete_nominated_pod_if_exists(pod)
    else:
        world.queue.add_nominated_pod(pod, failure.nominate)
    if failure.status.code in (fwk.Code.SKIP, fwk.Code.WAIT):
        # No error, as upstream sees it: every binder skipped the pod. There is no event and no condition.
        return None
    is_rejected = failure.status.is_rejected
    record_failed_scheduling(framework, pod, message)
    condition = PodCondition(
        "PodScheduled",
        "False",
        REASON_UNSCHEDULABLE if is_rejected else REASON_SCHEDULER_ERROR,
        message,
        world.judged_generation(pod),
    )
    _LOG.info(
        3,
        "Updating pod condition and nominated node name",
        pod=pod,
        conditionType=condition.type,
        conditionStatus=condition.status,
        conditionReason=condition.reason,
        nominatedNodeName=failure.nominate or "",
        nominatingMode="Noop" if failure.nominate is None else "Override",
    )
    return fwk.PatchPodStatus.of(pod, condition, nominated_node_name=failure.nominate)


def _log_failure(pod: Pod, failure: Failure) -> None:
    message = failure.status.message
    if message == str(fwk.NoNodesAvailableError()):
        _LOG.info(2, "Unable to schedule pod; no nodes are registered to the cluster; waiting", pod=pod)
    elif failure.unschedulable_plugins or failure.pending_plugins:
        _LOG.info(2, "Unable to schedule pod; no fit; waiting", pod=pod, err=message)
    else:
        _LOG.error(message, "Error scheduling pod; retrying", pod=pod)

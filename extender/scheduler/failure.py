"""handle_scheduling_failure(): an attempt came to nothing; the pod goes back to the queue, and people are told why.

Upstream: pkg/scheduler/schedule_one.go, handleSchedulingFailure, updatePod (v1.36.2).
"""

import logging
from typing import Final

from extender import framework as fwk
from extender.framework.pod_calls import PodCondition
from extender.queue.queued_pod_info import QueuedPodInfo
from extender.queue.scheduling_queue import AlreadyQueuedError
from extender.runtime.framework import Framework
from extender.scheduler.world import Failure, World, record_failed_scheduling

REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"

_LOGGER: Final = logging.getLogger(__name__)


def handle_scheduling_failure(world: World, framework: Framework, info: QueuedPodInfo, failure: Failure) -> fwk.PatchPodStatus | None:
    """Requeue first, then the promise, then the event, then the condition.

    Returns:
        What remains to be written: the condition, and the promise; None if there is nothing.
    """
    pod = info.pod
    info.set_rejector_plugins(failure.unschedulable_plugins, failure.pending_plugins)
    known = world.pod_by_key(pod.key)
    if known is not None and known.uid != pod.uid:
        # Another pod of that name; it has an entry of its own.
        world.queue.done(pod.uid)
        return None
    if known is None or known.spec.node_name:
        _LOGGER.info("pod %s has gone, or has been assigned to a node; it is not added back to the queue", pod.key)
        world.queue.done(pod.uid)
    else:
        info.pod = pod = known
        try:
            world.queue.add_unschedulable_if_not_present(info)
        except AlreadyQueuedError:
            _LOGGER.exception("Error occurred")
    if failure.nominate is not None:
        world.queue.add_nominated_pod(pod, failure.nominate) if failure.nominate else world.queue.delete_nominated_pod_if_exists(pod)
    else:
        world.queue.add_nominated_pod(pod, None)
    message = failure.status.message
    if failure.status.code in (fwk.Code.SKIP, fwk.Code.WAIT):
        # No error, as upstream reads it: every binder said that the pod is none of its business. Nothing to be told.
        return None
    is_rejected = failure.status.is_rejected
    (_LOGGER.info if is_rejected else _LOGGER.error)("Unable to schedule pod %s: %s", pod.key, message)
    record_failed_scheduling(framework, pod, message)
    condition = PodCondition(
        "PodScheduled", "False", REASON_UNSCHEDULABLE if is_rejected else REASON_SCHEDULER_ERROR, message, pod.metadata.generation
    )
    return fwk.PatchPodStatus.of(pod, condition, nominated_node_name=failure.nominate)

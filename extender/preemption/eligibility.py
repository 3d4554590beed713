"""Whether a pod may preempt at all.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, PodEligibleToPreemptOthers (v1.36.2).
"""

from collections.abc import Callable

from extender.framework import Code, NodeStatuses
from extender.objects.pod import Pod
from extender.objects.preemption_messages import STILL_TERMINATING
from extender.snapshot import Snapshot

NEVER = "not eligible due to preemptionPolicy=Never."


def why_not_eligible(pod: Pod, snapshot: Snapshot, statuses: NodeStatuses, is_eligible: Callable[[Pod], bool] | None = None) -> str | None:
    """Why the pod may not preempt, None if it may.

    A pod that has preempted before waits until its victims are gone, unless its nominated node turned out to be hopeless.
    """
    if pod.spec.preemption_policy == "Never":
        return NEVER
    nominated = pod.status.nominated_node_name
    if not nominated or statuses.of(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return None
    place = snapshot.nodes.index.get(nominated)
    if place is None:
        return None
    for slot in snapshot.pods.on_node[place]:
        other = snapshot.pod_at(slot)
        if other.priority < pod.priority and (is_eligible is None or is_eligible(other)) and _is_leaving_for_another(other):
            return STILL_TERMINATING
    return None


def _is_leaving_for_another(pod: Pod) -> bool:
    if not pod.is_terminating:
        return False
    condition = next((condition for condition in pod.status.conditions if condition.type == "DisruptionTarget"), None)
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"

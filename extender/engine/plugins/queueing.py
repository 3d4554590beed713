"""The plugins of the queue: PrioritySort chooses the next pod, and SchedulingGates holds pods back."""

from collections.abc import Sequence
from typing import final

from extender.engine import framework as fwk


@final
class PrioritySort(fwk.QueueSortPlugin):
    """Orders the queue by spec.priority, then by time of entry.

    Upstream: framework/plugins/queuesort/priority_sort.go.
    """

    def sort_key(self, pod: fwk.Pod, timestamp: float) -> tuple[int, float]:
        return -pod.priority, timestamp


@final
class SchedulingGates(fwk.PreEnqueuePlugin):
    """Keeps a pod out of the queue while spec.schedulingGates is not empty.

    Upstream: framework/plugins/schedulinggates/scheduling_gates.go.
    """

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        gates_gone = fwk.ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return [fwk.on(fwk.EventResource.POD, gates_gone, lambda pod, old, new: fwk.queue_if(new.uid == pod.uid))]

    def pre_enqueue(self, pod: fwk.Pod) -> fwk.Status:
        """Returns unresolvable with the names of the gates."""
        if not pod.spec.scheduling_gates:
            return fwk.SUCCESS
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return fwk.unresolvable(f"waiting for scheduling gates: [{gates}]")

"""Pods that wait. Knows events, not plugins; no I/O and no clock of its own in here.

A pod that waits is in one place: activeQ (to be tried next), backoffQ (to be tried after a pause), or among the unschedulable pods (to be
tried when something changes; gated ones are not to be tried at all). One that was popped is in flight until it is done.

| event | from | to |
|---|---|---|
| pod added | - | activeQ; unschedulable if a PreEnqueue gates it |
| popped | activeQ; backoffQ if that is empty | in flight |
| refused, and nothing has changed meanwhile that might help | in flight | unschedulable |
| refused, but something has | in flight | backoffQ; activeQ if a plugin waited for just that |
| failed | in flight | backoffQ, where nobody pops it early |
| a change that a refusing plugin's hint thinks may help | unschedulable | backoffQ while it pauses, else activeQ |
| the pause is over | backoffQ | activeQ |
| waited too long | unschedulable | backoffQ while it pauses, else activeQ |
| activated | unschedulable, backoffQ | activeQ |

Upstream: pkg/scheduler/backend/queue (v1.36.2).
"""

from extender.queue.queued_pod_info import QueuedPodInfo
from extender.queue.scheduling_queue import AlreadyQueuedError, SchedulingQueue

__all__ = ["AlreadyQueuedError", "QueuedPodInfo", "SchedulingQueue"]

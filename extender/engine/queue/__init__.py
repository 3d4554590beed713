"""The scheduling queue: pods that wait. It knows events but no plugins, does no I/O, and gets its clock from outside.

A waiting pod is in one place: activeQ (to be tried next), backoffQ (to be tried after its backoff), or among the
unschedulable pods (to be tried when something changes; gated ones are not to be tried at all). A popped pod is in
flight until it is done.

| event | from | to |
|---|---|---|
| pod added | - | activeQ; unschedulable if a PreEnqueue plugin gates it |
| popped | activeQ; backoffQ if that is empty | in flight |
| refused, without a change meanwhile that may help | in flight | unschedulable |
| refused, with such a change | in flight | backoffQ; activeQ if a plugin was pending on that change |
| failed | in flight | backoffQ, from which it is not popped early |
| refused with its pod group | in flight | backoffQ, from which it is not popped early |
| a change that may help, by a refusing plugin's hint | unschedulable | backoffQ during backoff, else activeQ |
| backoff complete | backoffQ | activeQ |
| waited too long | unschedulable | backoffQ during backoff, else activeQ |
| activated | unschedulable, backoffQ | activeQ |

Upstream: pkg/scheduler/backend/queue.
"""

from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import (
    AlreadyQueuedError,
    SchedulingQueue,
)

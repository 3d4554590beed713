"""SchedulingQueue: holds the waiting pods, and moves them between its queues.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue. Queueing hints are always on.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, final

from extender.engine.framework.events import (
    BACKOFF_COMPLETE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    EVENT_UNSCHEDULED_POD_ADD,
    EVENT_UNSCHEDULED_POD_UPDATE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF_Q,
    SCHEDULE_ATTEMPT_FAILURE,
    ClusterEvent,
    QueueingHintMap,
    match_any,
)
from extender.engine.queue.nominator import Nominator, PodLister
from extender.engine.queue.pod_queues import (
    DEFAULT_POD_INITIAL_BACKOFF,
    DEFAULT_POD_MAX_BACKOFF,
    ActiveQueue,
    BackoffQueue,
    SortKey,
    in_order,
)
from extender.engine.queue.queued_pod_info import QueuedPodInfo, UnschedulablePods
from extender.engine.queue.queueing_hints import (
    ChangeToHint,
    QueueingHints,
    QueueingStrategy,
    best_strategy,
    may_move,
    strategy_for,
)
from extender.values.klog.logger import Logger
from extender.values.metrics import PluginMetrics
from extender.values.objects.pod import Pod

DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS: Final = 300.0
"""Seconds after which an unschedulable pod is tried again without an event."""
FLUSH_BACKOFF_EVERY: Final = 1.0
FLUSH_UNSCHEDULABLE_EVERY: Final = 30.0

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"
GATED: Final = "gated"

ACTIVE_Q: Final = "Active"
BACKOFF_Q: Final = "Backoff"
UNSCHEDULABLE_Q: Final = "Unschedulable"
"""The names of the queues in the log."""

PreEnqueue = Callable[[Pod, str], str]
"""(pod, the plugin that gates it now or "") -> the plugin that gates it, "" if none does."""
PreCheck = Callable[[QueuedPodInfo], bool]
"""Returns whether a change can concern a pod at all."""

_LOG: Final = Logger(__name__)
_POD_ADD: Final = EVENT_UNSCHEDULED_POD_ADD.label
_POD_UPDATE: Final = EVENT_UNSCHEDULED_POD_UPDATE.label
_MOVED: Final = "Pod moved to an internal scheduling queue"
_NOT_IN_FLIGHT: Final = (
    "in flight Pod isn't found in the scheduling queue. If you see this error log, it's likely a bug in the scheduler"
)


class AlreadyQueuedError(Exception):
    """A pod comes back from an attempt, but is in a queue already. The message is upstream's."""


@final
class SchedulingQueue:
    """The waiting pods; the table in this package's docstring shows how they move.

    Only `pop` and `run` suspend. Between two awaits the queue does not change, so that no change is lost between
    checking and moving.
    """

    def __init__(
        self,
        sort_key: SortKey,
        hints: Mapping[str, QueueingHintMap],
        pre_enqueue: PreEnqueue,
        *,
        now: Callable[[], float],
        pod_lister: PodLister,
        initial_backoff: float = DEFAULT_POD_INITIAL_BACKOFF,
        max_backoff: float = DEFAULT_POD_MAX_BACKOFF,
        max_in_unschedulable_pods: float = DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS,
        metrics: PluginMetrics | None = None,
        pops_from_backoff_q: bool = True,
    ) -> None:
        """Makes an empty queue.

        Arguments:
            hints: by profile, which is the scheduler name of pods.
            now: seconds since any start; the event loop's time, if `run` is used.
            pod_lister: pods as the API server has them, for nominations.
            pops_from_backoff_q: whether backoffQ helps an empty activeQ out; else pods are gated as they leave it.
        """
        self.incoming: Counter[tuple[str, str]] = Counter()
        """(queue, event) -> number of pods added. Upstream: the metric queue_incoming_pods_total."""
        self._now = now
        self._pre_enqueue = pre_enqueue
        self._max_in_unschedulable_pods = max_in_unschedulable_pods
        self._hints = QueueingHints(hints, (metrics or PluginMetrics()).hints)
        order = in_order(sort_key)
        self._active = ActiveQueue(order)
        self._backoff = BackoffQueue(now, order, initial_backoff, max_backoff, pops_early=pops_from_backoff_q)
        self._unschedulable = UnschedulablePods()
        self._nominator = Nominator(pod_lister)
        self._resumed: deque[QueuedPodInfo] = deque()
        self._pops_from_backoff_q = pops_from_backoff_q
        self._pod_came = asyncio.Event()
        self._is_closed = False

    # Changes of pods.

    def add(self, pod: Pod) -> None:
        self._move_to_active(QueuedPodInfo(pod, self._now()), _POD_ADD)

    def update(self, old: Pod, new: Pod, events: Iterable[ClusterEvent]) -> None:
        """Updates a pod without a node.

        For a pod in flight the changes are kept until it comes back. In activeQ and backoffQ it stays where it is. An
        unschedulable pod is requeued by the first of the events, most specific first, whose hints say that it may help.
        """
        changes = [self._hints.change(event, old, new) for event in events]
        if self._active.add_changes_if_in_flight(new.uid, changes):
            _LOG.info(
                6,
                "The pod doesn't need to be queued for now because it's being scheduled and will be queued back if "
                "necessary",
                pod=new,
            )
            return
        waiting = self._active.queue.update(old.key, new) or self._backoff.update(old.key, new)
        if waiting is not None:
            self._nominator.update(old, new)
            return
        info = self._unschedulable.get(new.key)
        if info is None:
            self._move_to_active(QueuedPodInfo(new, self._now()), _POD_UPDATE)
            return
        info.pod = new
        self._nominator.update(old, new)
        for change in changes:
            queue = self._requeue(info, strategy_for(info, change), change.label)
            if queue != UNSCHEDULABLE_Q:
                _LOG.info(5, f"{_MOVED} because the Pod is updated", pod=new, event=change.label, queue=queue)
                return

    def delete(self, pod: Pod) -> None:
        """Removes a pod that was deleted or has got a node. An attempt under way is not disturbed."""
        self._nominator.delete(pod.uid)
        key = pod.key
        for queue in (self._active.queue, self._backoff, self._unschedulable):
            if queue.remove(key) is not None:
                return

    # Attempts.

    async def pop(self) -> QueuedPodInfo | None:
        """Pops the next pod once there is one; it is in flight until `done`. None: the queue is closed and empty."""
        while (info := self.pop_nowait()) is None:
            if self._is_closed:
                _LOG.info(2, "Scheduling queue is closed")
                return None
            self._pod_came.clear()
            await self._pod_came.wait()
        return info

    def pop_nowait(self) -> QueuedPodInfo | None:
        """Pops the next pod, if there is one; from backoffQ, before its backoff is over, if activeQ is empty."""
        if self._resumed:
            return self._resumed.popleft()
        while True:
            info = self._active.queue.pop()
            if info is None:
                info = self._backoff.pop_early()
                if info is None:
                    return None
                self.incoming[ACTIVE, POP_FROM_BACKOFF_Q] += 1
                if info.woken_by == SCHEDULE_ATTEMPT_FAILURE:
                    info.woken_by = POP_FROM_BACKOFF_Q
            if self._active.move_to_in_flight(info):
                return info
            error = f"the same pod is tracked in multiple places in the scheduler: {info.key}"
            _LOG.error(error, "Discarding the popped entity", type="Pod", entity=info.pod)

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        """Pops a waiting pod out of turn, in backoff or not; None if it does not wait, or is gated."""
        if pod.key not in self._active.queue and (pod.key in self._backoff or pod.key in self._unschedulable):
            self.activate([pod])
        info = self._active.queue.remove(pod.key)
        return info if info is not None and self._active.move_to_in_flight(info) else None

    def resume(self, info: QueuedPodInfo) -> None:
        """Lets a pod in flight be popped next, to begin the cycle of its attempt again. This is no further attempt."""
        self._resumed.append(info)
        self._pod_came.set()

    def done(self, uid: str) -> None:
        """Ends the pod's attempt, or the part of it in which events matter."""
        self._active.done(uid)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> None:
        """Requeues a popped pod after its attempt; AlreadyQueuedError if it is in a queue already."""
        try:
            for queue, name in (
                (self._unschedulable, "unschedulable queue"),
                (self._active.queue, "the active queue"),
                (self._backoff, "the backoff queue"),
            ):
                if info.key in queue:
                    raise AlreadyQueuedError(f"Pod {info.key} is already present in {name}")
            if info.has_failed:
                info.consecutive_errors_count += 1
            else:
                info.unschedulable_count += 1
                info.consecutive_errors_count = 0
            info.timestamp = self._now()
            info.backoff_expiration = None
            info.was_flushed_from_unschedulable = False
            strategy = self._strategy_after_attempt(info)
            put_into = self._requeue(info, strategy, SCHEDULE_ATTEMPT_FAILURE)
            refused_by = {"unschedulable plugins": info.unschedulable_plugins | info.pending_plugins}
            _LOG.info(
                3,
                _MOVED,
                pod=info.pod,
                event=SCHEDULE_ATTEMPT_FAILURE,
                queue=put_into,
                schedulingCycle=self.scheduling_cycle,
                hint=strategy.value,
                **refused_by,
            )
        finally:
            self._active.done(info.pod.uid)

    def _strategy_after_attempt(self, info: QueuedPodInfo) -> QueueingStrategy:
        """Returns a pod's destination by the changes since it was popped (determineSchedulingHintForInFlightPod)."""
        if info.has_failed or info.is_member:
            return QueueingStrategy.QUEUE_AFTER_BACKOFF
        changes = self._active.changes_for(info.pod.uid)
        if changes is None:
            _LOG.error(_NOT_IN_FLIGHT, "Error getting cluster events for pod", pod=info.pod)
            return QueueingStrategy.QUEUE_AFTER_BACKOFF
        return best_strategy(info, changes)

    def requeue_failed(self, info: QueuedPodInfo) -> None:
        """Puts a popped pod into backoffQ after an unforeseen error; it may have been requeued before that."""
        self._active.done(info.pod.uid)
        if self.get(info.key) is None:
            self._count_error(info)
            self._backoff.add(info)
            self.incoming[BACKOFF, SCHEDULE_ATTEMPT_FAILURE] += 1
        else:
            self.retry_after_failure(info.pod)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Moves waiting pods to activeQ; one in flight is requeued when it comes back, even if refused."""
        for pod in pods:
            info = self._unschedulable.get(pod.key) or self._backoff.get(pod.key)
            if info is None or not self._move_to_active(info, FORCE_ACTIVATE, from_backoff=pod.key in self._backoff):
                self._active.add_changes_if_in_flight(pod.uid, [self._hints.change(EVENT_FORCE_ACTIVATE, None, pod)])

    def retry_after_failure(self, pod: Pod) -> None:
        """Puts a pod into backoffQ after an error since it was requeued, unless it is in activeQ or in flight.

        Upstream activates it, so that a persistent error leads to one attempt after the other without backoff.
        """
        info = self._unschedulable.remove(pod.key) or self._backoff.remove(pod.key)
        if info is None:
            return
        self._count_error(info)
        self._requeue(info, QueueingStrategy.QUEUE_AFTER_BACKOFF, SCHEDULE_ATTEMPT_FAILURE)

    def _count_error(self, info: QueuedPodInfo) -> None:
        info.set_rejector_plugins(())
        info.consecutive_errors_count += 1
        info.timestamp = self._now()
        info.backoff_expiration = None

    # Changes of the cluster, and timeouts.

    def move_all_to_active_or_backoff_queue(
        self, event: ClusterEvent, old: object, new: object, pre_check: PreCheck | None = None
    ) -> None:
        """Requeues the unschedulable pods that pass `pre_check` and that the event may help, by hints."""
        change = self._hints.change(event, old, new)
        if change.is_of_interest:
            # The log tells of each pod that stays where it is.
            concerned = self._unschedulable.refused(lambda refusal: _LOG.enabled(5) or may_move(change, refusal))
            self._move(concerned if pre_check is None else filter(pre_check, concerned), change)

    def flush_backoff_q_completed(self) -> None:
        """Moves the pods whose backoff is over to activeQ."""
        for info in self._backoff.pop_all_backoff_completed():
            self._move_to_active(info, BACKOFF_COMPLETE, from_backoff=True)

    def flush_unschedulable_pods_leftover(self) -> None:
        """Requeues pods that were unschedulable for so long that a helpful event may have been missed."""
        now = self._now()
        leftover = [
            info
            for info in self._unschedulable
            if now - info.timestamp > min(self._max_in_unschedulable_pods, info.retry_after)
        ]
        if leftover:
            for info in leftover:
                info.was_flushed_from_unschedulable = True
            self._move(leftover, self._hints.change(EVENT_UNSCHEDULABLE_TIMEOUT, None, None))

    async def run(self) -> None:
        """Flushes both queues periodically, on whole seconds, on which backoffs end, until cancelled."""
        async with asyncio.TaskGroup() as flushing:
            flushing.create_task(self._flush_backoff_forever(), name="flush of backoffQ")
            flushing.create_task(self._flush_unschedulable_forever(), name="flush of unschedulable pods")

    def close(self) -> None:
        """Makes `pop` return None once the queue is empty, rather than wait."""
        self._is_closed = True
        self._pod_came.set()

    async def _flush_backoff_forever(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_BACKOFF_EVERY - self._now() % FLUSH_BACKOFF_EVERY)
            self.flush_backoff_q_completed()

    async def _flush_unschedulable_forever(self) -> None:
        while True:
            self.flush_unschedulable_pods_leftover()
            await asyncio.sleep(FLUSH_UNSCHEDULABLE_EVERY)

    def _move(self, pods: Iterable[QueuedPodInfo], change: ChangeToHint) -> None:
        """Upstream: movePodsToActiveOrBackoffQueue."""
        for info in pods:
            self._consider(info, change)
        if self._active.add_change_if_any_in_flight(change):
            _LOG.info(5, "Event received while pods are in flight", event=change.label)

    def _consider(self, info: QueuedPodInfo, change: ChangeToHint) -> None:
        if self._unschedulable.get(info.key) is not info or (
            info.is_gated and not match_any(info.gating_plugin_events, change.event)
        ):
            return
        strategy = strategy_for(info, change)
        if strategy is QueueingStrategy.QUEUE_SKIP:
            _LOG.info(5, "Event is not making pod schedulable", pod=info.pod, event=change.label)
            return
        self._unschedulable.remove(info.key)
        self._requeue(info, strategy, change.label)

    # Moves between the queues.

    def _requeue(self, info: QueuedPodInfo, strategy: QueueingStrategy, label: str) -> str:
        """Puts the pod into the queue of the strategy; returns the queue's name (requeuePodWithQueueingStrategy)."""
        if strategy is QueueingStrategy.QUEUE_SKIP:
            self._add_to_unschedulable(info, label)
            return UNSCHEDULABLE_Q
        if strategy is QueueingStrategy.QUEUE_AFTER_BACKOFF and self._backoff.is_pod_backing_off(info):
            return BACKOFF_Q if self._move_to_backoff(info, label) else UNSCHEDULABLE_Q
        return ACTIVE_Q if self._move_to_active(info, label) else UNSCHEDULABLE_Q

    def _move_to_active(self, info: QueuedPodInfo, label: str, *, from_backoff: bool = False) -> bool:
        """Puts the pod into activeQ; or, if it is gated, among the unschedulable pods, and returns False."""
        if not (from_backoff and self._pops_from_backoff_q):
            self._run_pre_enqueue(info)
        if info.is_gated:
            if not any(info.key in queue for queue in (self._active.queue, self._backoff, self._unschedulable)):
                self._add_to_unschedulable(info, label)
                _LOG.info(5, f"{_MOVED}, because the pod is gated", pod=info.pod, event=label, queue=UNSCHEDULABLE_Q)
            return False
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp = self._now()
        self._unschedulable.remove(info.key)
        self._backoff.remove(info.key)
        self._active.queue.add_or_update(info)
        self.incoming[ACTIVE, label] += 1
        if label != BACKOFF_COMPLETE or info.woken_by == SCHEDULE_ATTEMPT_FAILURE:
            info.woken_by = label
        _LOG.info(5, _MOVED, pod=info.pod, event=label, queue=ACTIVE_Q)
        if label in (_POD_ADD, _POD_UPDATE):
            self._nominator.add(info.pod, None)
        self._pod_came.set()
        return True

    def _move_to_backoff(self, info: QueuedPodInfo, label: str) -> bool:
        """As `_move_to_active`, into backoffQ."""
        if self._pops_from_backoff_q:
            self._run_pre_enqueue(info)
            if info.is_gated:
                self._add_to_unschedulable(info, label)
                _LOG.info(5, _MOVED, pod=info.pod, event=label, queue=UNSCHEDULABLE_Q)
                return False
        self._unschedulable.remove(info.key)
        self._backoff.add(info)
        self.incoming[BACKOFF, label] += 1
        info.woken_by = label
        _LOG.info(5, _MOVED, pod=info.pod, event=label, queue=BACKOFF_Q)
        self._pod_came.set()
        return True

    def _add_to_unschedulable(self, info: QueuedPodInfo, label: str) -> None:
        if info.key not in self._unschedulable:
            self.incoming[GATED if info.is_gated else UNSCHEDULABLE, label] += 1
        self._unschedulable.add_or_update(info)

    def _run_pre_enqueue(self, info: QueuedPodInfo) -> None:
        """Upstream: runPreEnqueuePlugins."""
        gating_plugin = self._pre_enqueue(info.pod, info.gating_plugin)
        info.gating_plugin = gating_plugin
        if gating_plugin:
            info.unschedulable_plugins |= {gating_plugin}
            info.gating_plugin_events = self._hints.events_of(gating_plugin)
            if info.key in self._unschedulable:
                self._unschedulable.add_or_update(info)

    # Nominations.

    def add_nominated_pod(self, pod: Pod, node: str | None) -> None:
        """Nominates a pending pod to the node; None for the node in its status."""
        self._nominator.add(pod, node)

    def delete_nominated_pod_if_exists(self, pod: Pod) -> None:
        self._nominator.delete(pod.uid)

    def nominated_pods(self) -> dict[str, list[Pod]]:
        """Returns node -> the pods nominated there, in order of nomination, as they are now."""
        by_node = self._nominator.by_node()
        if not by_node:
            return {}

        def current(pod: Pod) -> Pod:
            info = self.get(pod.key)
            return info.pod if info is not None and info.pod.uid == pod.uid else pod

        return {node: [*map(current, pods)] for node, pods in by_node.items()}

    # Read access.

    @property
    def scheduling_cycle(self) -> int:
        """The number of pods popped."""
        return self._active.scheduling_cycle

    def pending_counts(self) -> dict[str, int]:
        """Returns queue -> the number of waiting pods. Upstream: the metric pending_pods."""
        gated = self._unschedulable.num_gated
        return {
            ACTIVE: len(self._active.queue),
            BACKOFF: len(self._backoff),
            UNSCHEDULABLE: len(self._unschedulable) - gated,
            GATED: gated,
        }

    def get(self, key: str) -> QueuedPodInfo | None:
        """Returns the waiting pod namespace/name, None if there is none. Callers must not modify it."""
        return self._active.queue.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def backoff_time(self, info: QueuedPodInfo) -> float | None:
        """Returns the end of a pod's backoff; None if it has none."""
        return self._backoff.backoff_time(info)

    def pods_in_active_q(self) -> list[QueuedPodInfo]:
        """Returns the pods of activeQ in the order in which they will be tried."""
        return [*self._active.queue]

    def pods_in_backoff_q(self, *, failed: bool = False) -> list[QueuedPodInfo]:
        """Returns the refused (or the failed) pods of backoffQ, in the order in which their backoff ends."""
        return [*(self._backoff.failed if failed else self._backoff.refused)]

    def unschedulable_pods(self) -> list[QueuedPodInfo]:
        """Returns the refused pods and the gated ones."""
        return [*self._unschedulable]

    def in_flight_pods(self) -> list[QueuedPodInfo]:
        return self._active.in_flight_pods()

    def in_flight_log(self) -> list[QueuedPodInfo | ClusterEvent]:
        """Returns the pods in flight and the events since they were popped, in order."""
        return [entry.event if isinstance(entry, ChangeToHint) else entry for entry in self._active.in_flight_log()]

"""SchedulingQueue: where every pod that waits is, and what moves it.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue (v1.36.2). Always on there by now, and so not asked here: queueing
hints, and popping pods early from backoffQ.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

from extender.framework.events import (
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
from extender.klog.logger import Logger
from extender.metrics import PluginMetrics
from extender.objects.pod import Pod
from extender.queue.active_queue import ActiveQueue
from extender.queue.backoff_queue import DEFAULT_POD_INITIAL_BACKOFF, DEFAULT_POD_MAX_BACKOFF, BackoffQueue
from extender.queue.nominator import Nominator, PodLister
from extender.queue.queued_pod_info import QueuedPodInfo
from extender.queue.queueing_hints import ChangeToHint, QueueingHints, QueueingStrategy, best_strategy, strategy_for
from extender.queue.unschedulable_pods import UnschedulablePods

DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS: Final = 300.0
"""Seconds after which a pod is tried again although nothing has changed that should help."""
FLUSH_BACKOFF_EVERY: Final = 1.0
FLUSH_UNSCHEDULABLE_EVERY: Final = 30.0

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"
GATED: Final = "gated"

ACTIVE_Q: Final = "Active"
BACKOFF_Q: Final = "Backoff"
UNSCHEDULABLE_Q: Final = "Unschedulable"
"""What the log calls them."""

SortKey = Callable[[Pod, float], tuple[Any, ...]]
"""(pod, when it was queued) -> smaller is tried first."""
PreEnqueue = Callable[[Pod, str], str]
"""(pod, the plugin that gates it by now or "") -> the plugin that gates it, "" if none does."""
PreCheck = Callable[[QueuedPodInfo], bool]
"""Whether a change may concern a pod at all."""

_LOG: Final = Logger(__name__)
_POD_ADD: Final = EVENT_UNSCHEDULED_POD_ADD.label
_POD_UPDATE: Final = EVENT_UNSCHEDULED_POD_UPDATE.label
_MOVED: Final = "Pod moved to an internal scheduling queue"
_NOT_IN_FLIGHT: Final = "in flight Pod isn't found in the scheduling queue. If you see this error log, it's likely a bug in the scheduler"


class AlreadyQueuedError(Exception):
    """A pod came back from an attempt, but waits already. The message is upstream's."""


@final
class SchedulingQueue:
    """The pods that wait, in the table of this package's docstring.

    Nothing in here waits but `pop` and `run`; between two awaits the queue is one piece, so that no change is lost between looking and
    moving.
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
    ) -> None:
        """Make an empty queue.

        Arguments:
            hints: by profile, which is to say: by the scheduler name of pods.
            now: seconds, from whatever start; of the event loop, where `run` is used.
            pod_lister: pods as the API server has them, for nominations.
            initial_backoff, max_backoff, max_in_unschedulable_pods: seconds.
            metrics: told how long hints take.
        """

        def in_order(info: QueuedPodInfo) -> tuple[Any, ...]:
            try:
                key = sort_key(info.pod, info.timestamp)
                if isinstance(key, tuple):
                    return 0, key
                raise TypeError(f"{key!r} is no tuple")
            except Exception as exc:
                # A stranger's plugin. Whom it cannot place comes last, so that it keeps nobody else from being tried.
                _LOG.exception(exc, "Plugin failed", extensionPoint="QueueSort", pod=info.pod)
                return 1, (info.timestamp,)

        self.incoming: Counter[tuple[str, str]] = Counter()
        """(queue, event) -> how many pods it brought there. Upstream: the metric queue_incoming_pods_total."""
        self._now = now
        self._pre_enqueue = pre_enqueue
        self._max_in_unschedulable_pods = max_in_unschedulable_pods
        self._hints = QueueingHints(hints, (metrics or PluginMetrics()).hints)
        self._active = ActiveQueue(in_order)
        self._backoff = BackoffQueue(now, in_order, initial_backoff, max_backoff)
        self._unschedulable = UnschedulablePods()
        self._nominator = Nominator(pod_lister)
        self._something_came = asyncio.Event()
        self._is_closed = False

    # Pods come, change and go.

    def add(self, pod: Pod) -> None:
        """A pod without a node has appeared."""
        self._move_to_active(QueuedPodInfo(pod, self._now()), _POD_ADD)

    def update(self, old: Pod, new: Pod, events: Iterable[ClusterEvent]) -> None:
        """A pod without a node has changed.

        In flight, the changes are kept for when it comes back. Where it is to be tried anyhow, it stays. Otherwise the first of the events
        that a hint thinks may help sends it back.

        Arguments:
            events: what changed of it, most special first.
        """
        changes = [self._hints.change(event, old, new) for event in events]
        if self._active.add_changes_if_in_flight(new.uid, changes):
            _LOG.info(
                6, "The pod doesn't need to be queued for now because it's being scheduled and will be queued back if necessary", pod=new
            )
            return
        waiting = self._active.update(old.key, new) or self._backoff.update(old.key, new)
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
                _LOG.info(
                    5,
                    "Pod moved to an internal scheduling queue because the Pod is updated",
                    pod=new,
                    event=change.label,
                    queue=queue,
                )
                return

    def delete(self, pod: Pod) -> None:
        """The pod is gone, or has a node. An attempt that is under way is not disturbed."""
        self._nominator.delete(pod.uid)
        for queue in (self._active.queue, self._backoff, self._unschedulable):
            if queue.remove(pod.key) is not None:
                return

    # Attempts.

    async def pop(self) -> QueuedPodInfo | None:
        """The pod to be tried next, which is in flight from now on until `done`; waits for one. None once the queue is closed and empty."""
        while (info := self.pop_nowait()) is None:
            if self._is_closed:
                _LOG.info(2, "Scheduling queue is closed")
                return None
            self._something_came.clear()
            await self._something_came.wait()
        return info

    def pop_nowait(self) -> QueuedPodInfo | None:
        """The pod to be tried next, which is in flight from now on until `done`; None if there is none.

        When nothing else is to be done, pods that pause need not wait for the end of their pause, unless they failed.
        """
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
            why = f"the same pod is tracked in multiple places in the scheduler: {info.key}"
            _LOG.error(why, "Discarding the popped entity", type="Pod", entity=info.pod)

    def done(self, uid: str) -> None:
        """The attempt of the pod is over, or cannot be undone by events any more."""
        self._active.done(uid)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> None:
        """A popped pod comes back, `info.set_rejector_plugins` having been told who refused it; its attempt is done.

        Raises:
            AlreadyQueuedError: it waits already.
        """
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
            if _LOG.enabled(3):
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
        """What has happened since the pod was popped may already help it. Upstream: determineSchedulingHintForInFlightPod."""
        if info.has_failed:
            return QueueingStrategy.QUEUE_AFTER_BACKOFF
        changes = self._active.changes_for(info.pod.uid)
        if changes is None:
            _LOG.error(_NOT_IN_FLIGHT, "Error getting cluster events for pod", pod=info.pod)
            return QueueingStrategy.QUEUE_AFTER_BACKOFF
        return best_strategy(info, changes)

    def take_back(self, info: QueuedPodInfo) -> None:
        """A popped pod comes back, or has come back, although something unforeseen has gone wrong: it pauses as one that failed."""
        self._active.done(info.pod.uid)
        if self.get(info.key) is None:
            info.set_rejector_plugins(())
            self._pause_after_error(info)
            self._backoff.add(info)
            self.incoming[BACKOFF, SCHEDULE_ATTEMPT_FAILURE] += 1
        else:
            self.retry_after_failure(info.pod)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods next, whatever they wait for. One that is in flight is not to wait when it comes back; others are left alone."""
        for pod in pods:
            info, is_pausing = self._unschedulable.get(pod.key), False
            if info is None:
                info, is_pausing = self._backoff.get(pod.key), True
            if info is None or not self._move_to_active(info, FORCE_ACTIVATE, was_pausing=is_pausing):
                self._active.add_changes_if_in_flight(pod.uid, [self._hints.change(EVENT_FORCE_ACTIVATE, None, pod)])

    def retry_after_failure(self, pod: Pod) -> None:
        """Something went wrong after the pod had come back refused: it pauses as one that failed. One that is tried already is left alone.

        Upstream activates it, so that what keeps going wrong is tried again and again at once.
        """
        info = self._unschedulable.remove(pod.key) or self._backoff.remove(pod.key)
        if info is None:
            return
        info.set_rejector_plugins(())
        self._pause_after_error(info)
        self._requeue(info, QueueingStrategy.QUEUE_AFTER_BACKOFF, SCHEDULE_ATTEMPT_FAILURE)

    def _pause_after_error(self, info: QueuedPodInfo) -> None:
        info.consecutive_errors_count += 1
        info.timestamp = self._now()
        info.backoff_expiration = None

    # The cluster changes, and time passes.

    def move_all_to_active_or_backoff_queue(self, event: ClusterEvent, old: object, new: object, pre_check: PreCheck | None = None) -> None:
        """Something has changed: pods that were refused are tried again, if a hint of a plugin that refused them thinks it may help.

        Arguments:
            old, new: the object before and after; None where there is none.
            pre_check: lets only some pods be considered.
        """
        change = self._hints.change(event, old, new)
        if change.is_of_interest:
            self._move([info for info in self._unschedulable if pre_check is None or pre_check(info)], change)

    def flush_backoff_q_completed(self) -> None:
        """Pods whose pause is over are tried again."""
        for info in self._backoff.pop_all_backoff_completed():
            self._move_to_active(info, BACKOFF_COMPLETE, was_pausing=True)

    def flush_unschedulable_pods_leftover(self) -> None:
        """Pods that have waited too long are tried again: some change that helps may have been missed."""
        now = self._now()
        leftover = [info for info in self._unschedulable if now - info.timestamp > self._max_in_unschedulable_pods]
        if leftover:
            for info in leftover:
                info.was_flushed_from_unschedulable = True
            self._move(leftover, self._hints.change(EVENT_UNSCHEDULABLE_TIMEOUT, None, None))

    async def run(self) -> None:
        """Flush both queues from time to time, until cancelled. Pauses end on whole seconds, and so that is when they are looked at."""
        async with asyncio.TaskGroup() as flushing:
            flushing.create_task(self._flush_backoff_for_ever(), name="flush of backoffQ")
            flushing.create_task(self._flush_unschedulable_for_ever(), name="flush of unschedulable pods")

    def close(self) -> None:
        """No more pods are waited for."""
        self._is_closed = True
        self._something_came.set()

    async def _flush_backoff_for_ever(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_BACKOFF_EVERY - self._now() % FLUSH_BACKOFF_EVERY)
            self.flush_backoff_q_completed()

    async def _flush_unschedulable_for_ever(self) -> None:
        while True:
            self.flush_unschedulable_pods_leftover()
            await asyncio.sleep(FLUSH_UNSCHEDULABLE_EVERY)

    def _move(self, pods: Iterable[QueuedPodInfo], change: ChangeToHint) -> None:
        """Upstream: movePodsToActiveOrBackoffQueue."""
        says_so = _LOG.enabled(5)
        for info in pods:
            if info.is_gated and not match_any(info.gating_plugin_events, change.event):
                continue
            strategy = strategy_for(info, change)
            if strategy is QueueingStrategy.QUEUE_SKIP:
                if says_so:
                    _LOG.info(5, "Event is not making pod schedulable", pod=info.pod, event=change.label)
                continue
            self._unschedulable.remove(info.key)
            self._requeue(info, strategy, change.label)
        if self._active.add_change_if_any_in_flight(change) and says_so:
            _LOG.info(5, "Event received while pods are in flight", event=change.label)

    # Where a pod goes.

    def _requeue(self, info: QueuedPodInfo, strategy: QueueingStrategy, label: str) -> str:
        """Put the pod where the strategy sends it; what the log calls that.

        Upstream: requeuePodWithQueueingStrategy.
        """
        if strategy is QueueingStrategy.QUEUE_SKIP:
            self._add_to_unschedulable(info, label)
            return UNSCHEDULABLE_Q
        if strategy is QueueingStrategy.QUEUE_AFTER_BACKOFF and self._backoff.is_pod_backing_off(info):
            return BACKOFF_Q if self._move_to_backoff(info, label) else UNSCHEDULABLE_Q
        return ACTIVE_Q if self._move_to_active(info, label) else UNSCHEDULABLE_Q

    def _move_to_active(self, info: QueuedPodInfo, label: str, *, was_pausing: bool = False) -> bool:
        """Put the pod into activeQ, or among the unschedulable pods if it is gated; False then. A pod that pauses is not gated."""
        if not was_pausing:
            self._ask_pre_enqueue(info)
        if info.is_gated:
            if not any(info.key in queue for queue in (self._active.queue, self._backoff, self._unschedulable)):
                self._add_to_unschedulable(info, label)
                _LOG.info(
                    5,
                    "Pod moved to an internal scheduling queue, because the pod is gated",
                    pod=info.pod,
                    event=label,
                    queue=UNSCHEDULABLE_Q,
                )
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
        self._something_came.set()
        return True

    def _move_to_backoff(self, info: QueuedPodInfo, label: str) -> bool:
        """Put the pod into backoffQ, or among the unschedulable pods if it is gated; False then."""
        self._ask_pre_enqueue(info)
        if info.is_gated:
            self._add_to_unschedulable(info, label)
            _LOG.info(5, _MOVED, pod=info.pod, event=label, queue=UNSCHEDULABLE_Q)
            return False
        self._unschedulable.remove(info.key)
        self._backoff.add(info)
        self.incoming[BACKOFF, label] += 1
        info.woken_by = label
        _LOG.info(5, _MOVED, pod=info.pod, event=label, queue=BACKOFF_Q)
        self._something_came.set()
        return True

    def _add_to_unschedulable(self, info: QueuedPodInfo, label: str) -> None:
        if info.key not in self._unschedulable:
            self.incoming[GATED if info.is_gated else UNSCHEDULABLE, label] += 1
        self._unschedulable.add_or_update(info)

    def _ask_pre_enqueue(self, info: QueuedPodInfo) -> None:
        """Upstream: runPreEnqueuePlugins."""
        gating_plugin = self._pre_enqueue(info.pod, info.gating_plugin)
        info.gating_plugin = gating_plugin
        if gating_plugin:
            info.unschedulable_plugins |= {gating_plugin}
            info.gating_plugin_events = self._hints.events_of(gating_plugin)

    # Promises of room.

    def add_nominated_pod(self, pod: Pod, node: str | None) -> None:
        """Promise room on the node to a pending pod; None for the node that its status names."""
        self._nominator.add(pod, node)

    def delete_nominated_pod_if_exists(self, pod: Pod) -> None:
        """Take the promise back."""
        self._nominator.delete(pod.uid)

    def nominated_pods(self) -> dict[str, list[Pod]]:
        """Node -> the pods that were promised room there, in order of nomination, as they are now."""
        return {node: [self._as_it_is_now(pod) for pod in pods] for node, pods in self._nominator.by_node().items()}

    def _as_it_is_now(self, pod: Pod) -> Pod:
        info = self.get(pod.key)
        return info.pod if info is not None and info.pod.uid == pod.uid else pod

    # What there is to see.

    @property
    def scheduling_cycle(self) -> int:
        """How many pods were popped."""
        return self._active.scheduling_cycle

    def pending_counts(self) -> dict[str, int]:
        """How many pods wait where. Upstream: the metric pending_pods."""
        gated = self._unschedulable.num_gated
        return {
            ACTIVE: len(self._active.queue),
            BACKOFF: len(self._backoff),
            UNSCHEDULABLE: len(self._unschedulable) - gated,
            GATED: gated,
        }

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod that waits under namespace/name, None if there is none. Whoever looks at it does not change it."""
        return self._active.queue.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def backoff_time(self, info: QueuedPodInfo) -> float | None:
        """When the pause of a pod ends, or ended; None if it has none."""
        return self._backoff.backoff_time(info)

    def pods_in_active_q(self) -> list[QueuedPodInfo]:
        """In the order in which they will be tried."""
        return [*self._active.queue]

    def pods_in_backoff_q(self, *, failed: bool = False) -> list[QueuedPodInfo]:
        """Pods that were refused (or those that failed), in the order in which their pauses end."""
        return [*(self._backoff.failed if failed else self._backoff.refused)]

    def unschedulable_pods(self) -> list[QueuedPodInfo]:
        """Refused pods and gated ones."""
        return [*self._unschedulable]

    def in_flight_pods(self) -> list[QueuedPodInfo]:
        """In the order in which they were popped."""
        return self._active.in_flight_pods()

    def in_flight_log(self) -> list[QueuedPodInfo | ClusterEvent]:
        """Pods in flight, and what has happened since, in order."""
        return [entry.event if isinstance(entry, ChangeToHint) else entry for entry in self._active.in_flight_log()]

"""Decides whether a change makes a pod worth another attempt, by the queueing hints of the plugins that refused it.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, isEventOfInterest, isPodWorthRequeuing.
"""

import enum
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Final, final

import msgspec

from extender.engine.framework.events import ClusterEvent, QueueingHint, QueueingHintFunction, QueueingHintMap
from extender.engine.queue.queued_pod_info import QueuedPodInfo, Refusal
from extender.values.klog.logger import Logger
from extender.values.metrics import Histogram
from extender.values.objects.meta import ApiObject
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)


@final
class QueueingStrategy(enum.Enum):
    """The destination of a pod after a change. The log shows the numbers, which are upstream's."""

    QUEUE_SKIP = 0
    QUEUE_AFTER_BACKOFF = 1
    QUEUE_IMMEDIATELY = 2


@final
class ChangeToHint(msgspec.Struct, frozen=True, eq=False):
    """An event, the object before and after it, and the hints registered for it."""

    event: ClusterEvent
    label: str
    hints: Mapping[str, Sequence[QueueingHintFunction]]
    """By profile."""
    is_wildcard: bool
    is_of_interest: bool
    """True if a plugin of any profile registered for it."""
    times: Histogram
    """Observes the duration of each hint."""
    old: object = None
    new: object = None


@final
class QueueingHints:
    """The registered hints of all profiles. State: the hints for each event that has occurred so far."""

    def __init__(self, by_profile: Mapping[str, QueueingHintMap], times: Histogram) -> None:
        self._by_profile = by_profile
        self._times = times
        self._changes: dict[ClusterEvent, partial[ChangeToHint]] = {}
        self._events_of: defaultdict[str, list[ClusterEvent]] = defaultdict(list)
        for registered in by_profile.values():
            for event, functions in registered.items():
                for function in functions:
                    self._events_of[function.plugin_name].append(event)

    def events_of(self, plugin_name: str) -> tuple[ClusterEvent, ...]:
        return tuple(self._events_of.get(plugin_name, ()))

    def change(self, event: ClusterEvent, old: object, new: object) -> ChangeToHint:
        change = self._changes.get(event)
        if change is None:
            change = self._changes[event] = self._change(event)
        return change(old=old, new=new)

    def _change(self, event: ClusterEvent) -> partial[ChangeToHint]:
        hints = {
            profile: tuple(
                function
                for registration, functions in registered.items()
                if registration.matches(event)
                for function in functions
            )
            for profile, registered in self._by_profile.items()
        }
        is_of_interest = event.is_wildcard or any(hints.values())
        return partial(ChangeToHint, event, event.label, hints, event.is_wildcard, is_of_interest, self._times)


def may_move(change: ChangeToHint, refusal: Refusal) -> bool:
    """Returns whether `strategy_for` may move pods with this refusal: only refusing plugins' hints count."""
    profile, refused_by = refusal
    hints = change.hints.get(profile)
    return change.is_wildcard or not refused_by or hints is None or any(name in refused_by for name, _ in hints)


def strategy_for(info: QueuedPodInfo, change: ChangeToHint) -> QueueingStrategy:
    """Returns the pod's destination after this change, by refusing plugins' hints; one that raises counts as Queue.

    A wildcard event concerns all pods, or the one pod that is its object.
    """
    if info.has_failed:
        return QueueingStrategy.QUEUE_AFTER_BACKOFF
    if change.is_wildcard:
        concerns_pod = change.new is None or (isinstance(change.new, Pod) and change.new.uid == info.pod.uid)
        return QueueingStrategy.QUEUE_AFTER_BACKOFF if concerns_pod else QueueingStrategy.QUEUE_SKIP
    hints = change.hints.get(info.pod.scheduler_name)
    if hints is None:
        _LOG.error(
            None, "No QueueingHintMap is registered for this profile", profile=info.pod.scheduler_name, pod=info.pod
        )
        return QueueingStrategy.QUEUE_AFTER_BACKOFF
    # A pod with pending plugins may still be queued immediately by a later hint; without any, the first hint that says
    # Queue decides.
    strategy = QueueingStrategy.QUEUE_SKIP
    unschedulable, pending = info.unschedulable_plugins, info.pending_plugins
    for name, hint in hints:
        if name not in unschedulable and name not in pending:
            continue
        began = perf_counter()
        try:
            answer = hint(info.pod, change.old, change.new)
            result = "QueueSkip" if answer is QueueingHint.QUEUE_SKIP else "Queue"
        except Exception as exc:
            result = "Error"
            changed = (("oldObj", change.old), ("newObj", change.new))
            objects = {key: api_object for key, api_object in changed if isinstance(api_object, ApiObject)}
            _LOG.error(exc, "QueueingHintFn returns error", event=change.label, plugin=name, pod=info.pod, **objects)
            answer = QueueingHint.QUEUE
        change.times.observe(perf_counter() - began, name, change.label, result)
        if answer is QueueingHint.QUEUE_SKIP:
            continue
        if name in pending:
            return QueueingStrategy.QUEUE_IMMEDIATELY
        strategy = QueueingStrategy.QUEUE_AFTER_BACKOFF
        if not pending:
            break
    return strategy


def best_strategy(info: QueuedPodInfo, changes: Sequence[ChangeToHint]) -> QueueingStrategy:
    """Returns the pod's destination after all these changes, the best that any of them gives."""
    best = QueueingStrategy.QUEUE_SKIP
    for change in changes:
        strategy = strategy_for(info, change)
        if strategy is QueueingStrategy.QUEUE_IMMEDIATELY:
            return strategy
        if strategy is QueueingStrategy.QUEUE_AFTER_BACKOFF:
            best = strategy
            if not info.pending_plugins:
                break
    return best

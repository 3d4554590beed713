"""Tap: how something attaches to a backend, such as a recording, or a scheduler that decides beside another one."""

import random
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, final

from prometheus_client.metrics_core import Metric

from extender.client.http_extender import ExtenderCalls, Through
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster, Subscriber
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.reporter import Reporter
from extender.values.config.configuration import Extender
from extender.values.objects.meta import HasMetadata


def _unheard(old: HasMetadata | None, new: HasMetadata | None) -> None: ...


def _same_dispatcher(dispatcher: fwk.Dispatcher) -> fwk.Dispatcher:
    return dispatcher


def _same_chance(rng: random.Random) -> random.Random:
    return rng


def _same_calls(config: Extender, calls: ExtenderCalls) -> ExtenderCalls:
    return calls


def _unseen(cluster: Cluster, queue: SchedulingQueue | None) -> None: ...


@final
@dataclass(frozen=True, slots=True)
class Tap:
    """The doors through which something comes in or goes out. By default nothing is attached to any of them."""

    changed: Subscriber = _unheard
    """Hears of every change of the cluster, after the scheduler."""
    reporter: Reporter | None = None
    """Hears what is decided, after the records."""
    dispatcher: Callable[[fwk.Dispatcher], fwk.Dispatcher] = _same_dispatcher
    """Returns what the scheduler's writes go through."""
    chance: Callable[[random.Random], random.Random] = _same_chance
    """Returns what the scheduler draws from."""
    through: Through = _same_calls
    """Returns what the scheduler's calls to an extender go through."""
    attached: Callable[[Cluster, SchedulingQueue | None], None] = _unseen
    """Told before anything changes what is going to change: the cluster, and the queue if pods are scheduled."""
    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs as long as the backend, and is cancelled at its end."""
    metrics: Callable[[], Iterable[Metric]] = tuple
    """Returns further metrics."""

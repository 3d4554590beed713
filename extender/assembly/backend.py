"""The backend of the HTTP routes, pages and commands, and the taps that attach to it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar, final

import msgspec
from prometheus_client.metrics_core import Metric

from extender import answers, rules
from extender.answers.what_if.admission import Admission
from extender.client.http_extender import ExtenderCalls, Through
from extender.client.informers.informers import Informers
from extender.client.informers.reflector_state import Health
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster, Subscriber
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.reporter import Reporter
from extender.values.config.configuration import Configuration, Extender
from extender.values.objects.meta import HasMetadata
from extender.verbs import Verbs

T = TypeVar("T")


def _unheard(old: HasMetadata | None, new: HasMetadata | None) -> None: ...


def _same(part: T) -> T:
    return part


def _same_calls(config: Extender, calls: ExtenderCalls) -> ExtenderCalls:
    return calls


def _unseen(cluster: Cluster, queue: SchedulingQueue | None) -> None: ...


@final
class Tap(msgspec.Struct, frozen=True):
    """The attachment of something to a backend, such as a recording. The defaults attach nothing."""

    changed: Subscriber = _unheard
    """Receives every change of the cluster, after the scheduler."""
    reporter: Reporter | None = None
    """Receives the decisions, after the records."""
    dispatcher: Callable[[fwk.Dispatcher], fwk.Dispatcher] = _same
    """Returns the dispatcher for the scheduler's writes."""
    chance: Callable[[random.Random], random.Random] = _same
    """Returns the source of chance of the scheduler."""
    through: Through = _same_calls
    """Returns the transport of the scheduler's calls to an extender."""
    attached: Callable[[Cluster, SchedulingQueue | None], None] = _unseen
    """Receives, before any change, the cluster, and the queue if pods are scheduled."""
    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs as long as the backend, and is cancelled at its end."""
    metrics: Callable[[], Iterable[Metric]] = tuple
    """Returns further metrics."""


def empty_api_server(seed: int = 0) -> Admission:
    """Returns an API server with the default features and without objects."""
    return rules.trial(seed=seed)


async def nothing_to_do() -> None: ...


async def _no_metrics() -> bytes:
    return b""


@final
class Backend(msgspec.Struct, frozen=True):
    """One cluster, with its state, answers and decisions. The defaults are those without a scheduler."""

    verbs: Verbs
    evaluate: Callable[[Mapping[str, Any]], Coroutine[Any, Any, dict[str, Any]]]
    """Evaluates a scenario in a cluster of its own; see `extender.engine.evaluation.scenario`."""
    is_ready: Callable[[], bool] = lambda: True
    """Returns whether the cluster is completely known."""
    make_questions: "Callable[[], answers.Questions | None]" = lambda: None
    """Returns what answers people's questions, the same each time; None in tests that serve only the verbs."""
    configuration: Configuration | None = None
    """The configuration in force; None if it is not known."""
    informers: Informers | None = None
    """The objects of the API server, kept up to date; None if no cluster is followed."""
    leadership: Callable[[], str] | None = None
    """Returns the problem of this replica's leadership, empty without one; None without leader election."""
    metrics: Callable[[], bytes] = bytes
    """Returns all metrics in Prometheus' text format."""
    metric_families: Callable[[], Iterable[Metric]] = tuple
    """Returns the same as values, for the page that describes them."""
    resource_metrics: Callable[[], Awaitable[bytes]] = _no_metrics
    """Returns the requests and limits of every pod in Prometheus' text format; empty while another replica leads."""
    quarantined: Callable[[], Sequence[str]] = tuple
    """Returns a line for each plugin from outside the tree that is not called at the moment."""
    finish: Callable[[], Awaitable[None]] = nothing_to_do
    """Stops the scheduler, and returns once everything it decided is done. The cluster is still followed."""
    why_over: Callable[[], str] = str
    """Returns why the scheduler stopped without being asked to; empty while it runs."""
    debug: Callable[[], None] = lambda: None
    """Logs the known state of the cluster, and its differences from the API server's."""

    @property
    def questions(self) -> "answers.Questions | None":
        return self.make_questions()

    def health(self) -> Sequence[Health]:
        return () if self.informers is None else self.informers.health(asyncio.get_running_loop().time())

    async def wait_for_sync(self) -> None:
        """Returns once every object of the cluster is known."""
        if self.informers is not None:
            await self.informers.wait_for_sync()

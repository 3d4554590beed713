"""The backend that follows a cluster: informers bring its changes, the dispatcher performs writes."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, final

from extender import answers
from extender.answers.records.records import Records
from extender.answers.standing import NO_WAITING_PODS
from extender.answers.what_if.admission import Admits
from extender.assembly.backend import Backend, Tap, empty_api_server, nothing_to_do
from extender.assembly.debugger import CacheDebugger
from extender.assembly.exposition import Exposition, ResourceExposition
from extender.assembly.lifecycle import Lifecycle
from extender.assembly.scheduling import Scheduling, assemble_scheduler
from extender.client.client import Client
from extender.client.event_reader import EventReader
from extender.client.http_extender import ExtenderCalls, Transports, no_transport, reads_whole
from extender.client.informers.informers import Informers
from extender.client.informers.store import Change
from extender.client.leader_election import LeaderElector
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine import framework as fwk
from extender.engine.cache import Cache, CacheError
from extender.engine.cache.cluster import Cluster, ClusterFeed
from extender.engine.evaluation.scenario import evaluate_scenario
from extender.engine.plugins import IN_TREE
from extender.engine.queue.scheduling_queue import DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS
from extender.engine.reporter import Reporters
from extender.engine.runtime.quarantine import QUARANTINES, Quarantines
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration, Extender
from extender.values.klog.logger import Logger
from extender.values.metrics.tracing import Tracer
from extender.values.objects.kinds import KINDS
from extender.values.objects.meta import HasMetadata
from extender.verbs import Verbs

SECONDS_TO_FINISH: Final = 5.0
"""The time for writes that are in flight at the end."""
SECONDS_TO_LET_GO: Final = 1.0
"""The time after a change in which a snapshot is taken, so that no earlier one holds what was deleted."""

_LOG: Final = Logger(__name__)


@final
@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of a live backend besides its configuration."""

    decides: bool = False
    """True to schedule the pods of the configuration's profiles, too."""
    transports: Transports = no_transport
    """Returns the transport for the calls to an extender of the configuration; None for sockets."""
    max_in_unschedulable_pods: float = DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS
    """Seconds after which an unschedulable pod is tried again without any event."""
    disabled_metrics: Collection[str] = ()
    """Names of metrics that are not exposed."""
    dropped_log_lines: Callable[[], int] = int
    """Returns how many lines of the log could not be written."""
    admits: Admits = empty_api_server
    """Makes the API server that the objects of what-ifs pass through."""
    taps: Sequence[Tap] = ()
    """Further attachments to the cluster and the scheduler, such as a recording."""
    tracer: Tracer | None = None
    """Traces attempts; None if nothing is traced."""


@asynccontextmanager
async def live_backend(
    configuration: Configuration,
    client: Client,
    options: LiveOptions = LiveOptions(),
    *,
    elector: LeaderElector | None = None,
    rng: random.Random | None = None,
    records: Records | None = None,
) -> AsyncIterator[Backend]:
    """Opens a backend that follows the client's cluster until the end of the block. It is ready once everything was
    listed. Raises ConfigErrors for all that is wrong with the configuration or with a plugin.

    Arguments:
        elector: decides when this replica leads, so that it may schedule and write; None without other replicas. The
            client must have its fence, too.
        rng: breaks ties between nodes, and spreads retries.
    """
    rng, records = rng or random.Random(), records or Records()
    fence: Callable[[], str | None] = (lambda: None) if elector is None else elector.fence  # a single one may write

    # 1 the parts, each subscribed to the changes it needs
    parts = _assembled(configuration, client, options, fence, rng, records)

    # 2 the scheduler's start and end. A replica that follows the cluster only once it leads needs no memory before.
    may_follow = asyncio.Event()
    scheduling, lifecycle = parts.scheduling, None
    if scheduling is not None:
        lifecycle = Lifecycle(parts.informers, scheduling, parts.dispatcher, elector, may_follow)
    if lifecycle is None or elector is None or not configuration.delay_cache_until_active:
        may_follow.set()

    # 3 what answers. A scheduler that calls extenders has a cluster of its own, which is the one to debug.
    cluster, informers, world = parts.cluster, parts.informers, None if scheduling is None else scheduling.world
    profiles = [profile.scheduler_name for profile in configuration.profiles]
    debugged, queue = (cluster, None) if world is None else (world.cluster, world.queue)
    debugger = CacheDebugger(informers, debugged, queue, profiles)
    exposition = Exposition(
        informers=informers,
        dispatcher=parts.dispatcher,
        scheduling=scheduling,
        elector=elector,
        now=asyncio.get_running_loop().time,
        disabled=options.disabled_metrics,
        dropped_log_lines=options.dropped_log_lines,
        quarantines=parts.quarantines,
        feature_gates=configuration.feature_gates,
        extra=[tap.metrics for tap in options.taps],
    )
    backend = Backend(
        verbs=parts.verbs,
        evaluate=partial(evaluate_scenario, configuration=configuration),
        is_ready=informers.is_ready,
        make_questions=cache(partial(_questions, configuration, client, options, parts, records)),
        configuration=configuration,
        informers=informers,
        leadership=None if elector is None else elector.check,
        metrics=exposition.text,
        metric_families=exposition.collect,
        resource_metrics=partial(_resource_metrics, informers, fence),
        quarantined=parts.quarantines.reasons,
        finish=nothing_to_do if lifecycle is None else lifecycle.finish,
        why_over=str if lifecycle is None else lambda: lifecycle.why_over,
        debug=debugger.debug,
    )

    # 4 run them until the end of the block
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_run_informers(informers, may_follow), name="informers"),
            group.create_task(parts.dispatcher.run(), name="dispatcher"),
        ]
        tasks += [group.create_task(tap.run(), name="tap") for tap in options.taps if tap.run is not None]
        if lifecycle is not None:
            lifecycle.start(group)
        try:
            yield backend
        finally:
            await backend.finish()
            if lifecycle is None:
                await parts.dispatcher.drain(SECONDS_TO_FINISH)
            for task in tasks:
                task.cancel()


def _questions(
    configuration: Configuration, client: Client, options: LiveOptions, parts: "_Parts", records: Records
) -> "answers.Questions":
    world = None if parts.scheduling is None else parts.scheduling.world
    queue, waiting = (None, NO_WAITING_PODS) if world is None else (world.queue, world.waiting_pods)
    events = EventReader(client, asyncio.get_running_loop().time).of
    return answers.Questions(
        configuration, parts.cluster, options.admits, queue=queue, waiting=waiting, records=records, events=events
    )


@final
@dataclass(frozen=True, slots=True)
class _Parts:
    cluster: Cluster
    informers: Informers
    dispatcher: ApiDispatcher
    scheduling: Scheduling | None
    """None if the backend only answers."""
    verbs: Verbs
    quarantines: Quarantines


def _assembled(
    configuration: Configuration,
    client: Client,
    options: LiveOptions,
    fence: Callable[[], str | None],
    rng: random.Random,
    records: Records,
) -> _Parts:
    dispatcher = ApiDispatcher(client, rng=rng, instance=socket.gethostname())
    called = configuration.extenders if options.decides else ()
    informers, cluster = Informers(client, rng=rng, is_whole=reads_whole(called)), Cluster()
    reporter = Reporters(records, *(tap.reporter for tap in options.taps if tap.reporter is not None))
    scheduling: Scheduling | None = None
    if options.decides:
        tapped: fwk.Dispatcher = dispatcher
        chance = rng
        for tap in options.taps:
            tapped, chance = tap.dispatcher(tapped), tap.chance(chance)
        scheduling = assemble_scheduler(
            configuration,
            cluster,
            tapped,
            chance,
            transports=options.transports,
            through=partial(_through, options.taps),
            fence=fence,
            reporter=reporter,
            tracer=options.tracer,
            max_in_unschedulable_pods=options.max_in_unschedulable_pods,
        )
    if scheduling is not None and scheduling.world.cluster is cluster:
        feed, frameworks = ClusterFeed(scheduling.handlers.changed), scheduling.frameworks
    else:
        # A scheduler that calls extenders has a cluster of its own, so that the verbs need plugins over this one.
        feed = ClusterFeed(cluster.changed)
        frameworks = Registry(IN_TREE).make_frameworks(
            configuration, rng, dispatcher=dispatcher, live=cluster.cache, may_defer=True
        )
        if scheduling is not None:
            feed.subscribe(scheduling.handlers.changed)
    verbs = Verbs(frameworks, cluster, dispatcher=dispatcher, reporter=reporter)
    feed.subscribe(verbs.changed)
    feed.subscribe(_LettingGo(cluster.cache).changed)
    if scheduling is not None and scheduling.world.cluster is not cluster:
        feed.subscribe(_LettingGo(scheduling.world.cluster.cache, lambda: scheduling.scheduler.is_waiting).changed)
    for tap in options.taps:
        if scheduling is None:
            tap.attached(cluster, None)
        else:
            tap.attached(scheduling.world.cluster, scheduling.world.queue)
        feed.subscribe(tap.changed)
    for kind in KINDS:
        if not kind.gate or configuration.feature_gates.enabled(kind.gate):
            informers.add(kind, partial(_feed, feed))
    deciding = next(iter((frameworks if scheduling is None else scheduling.frameworks).values()))
    quarantines = deciding.shared(QUARANTINES, lambda: Quarantines(deciding.now))
    return _Parts(cluster, informers, dispatcher, scheduling, verbs, quarantines)


@final
class _LettingGo:
    """Takes a snapshot soon after a change, since a snapshot holds its pods until the next one, which may be days away.
    State: whether it is about to.

    Arguments: may: returns whether no cycle reads the last snapshot now; the next cycle lets go then.
    """

    def __init__(self, cache: Cache, may: Callable[[], bool] = lambda: True) -> None:
        self._cache, self._may = cache, may
        self._is_due = False

    def changed(self, old: HasMetadata | None, _: HasMetadata | None) -> None:
        if old is not None and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(SECONDS_TO_LET_GO, self._let_go)

    def _let_go(self) -> None:
        self._is_due = False
        if self._may():
            try:
                self._cache.update_snapshot()
            except CacheError as exc:
                _LOG.error(exc, "A snapshot, which lets go of what was deleted, was taken from an inconsistent cache")


async def _resource_metrics(informers: Informers, fence: Callable[[], object]) -> bytes:
    """Returns the requests and limits of every pod; nothing while another replica leads, which exposes them."""
    if fence() is not None:
        return b""
    # In a thread: of 50,000 pods the text takes more than a second.
    return await asyncio.to_thread(ResourceExposition(tuple(informers.pods())).text)


def _through(taps: Sequence[Tap], config: Extender, calls: ExtenderCalls) -> ExtenderCalls:
    for tap in taps:
        calls = tap.through(config, calls)
    return calls


def _feed(feed: ClusterFeed, changes: Collection[Change[Any]]) -> None:
    for change in changes:
        feed.changed(change.old, change.new)


async def _run_informers(informers: Informers, may_follow: asyncio.Event) -> None:
    await may_follow.wait()
    await informers.run()

"""Following a cluster: what its API server says comes in through informers, what is decided goes out through the dispatcher."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from extender.answers.questions import Questions
from extender.answers.what_if.admission import Admits
from extender.apiserver.client import Client
from extender.apiserver.informers.health import Health
from extender.apiserver.informers.informers import Informers
from extender.apiserver.informers.kinds import KINDS
from extender.apiserver.informers.store import Change
from extender.apiserver.lease.leader_election import LeaderElector
from extender.apiserver.writes.dispatcher import Dispatcher
from extender.assembly.debugger import CacheDebugger
from extender.assembly.exposition import Exposition, ResourceExposition
from extender.assembly.lifecycle import Deciding
from extender.assembly.standalone import standalone
from extender.cache.cluster import Cluster
from extender.config import Configuration
from extender.embedded.trial_registry import TrialRegistry
from extender.http_extender import Transports, no_transport
from extender.klog.logger import Logger
from extender.objects.cluster_state import TABLES
from extender.queue.scheduling_queue import DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS
from extender.records import Records
from extender.verbs.engine import Engine

_LOG: Final = Logger(__name__)

SECONDS_TO_FINISH: Final = 5.0
"""For writes that are under way at the end."""

_TABLE_OF: Final[Mapping[type, str]] = {table.kind: table.field for table in TABLES}


def _tell(engine: Engine, table: str, changes: Sequence[Change[Any]]) -> None:
    for change in changes:
        try:
            engine.changed(table, change.old, change.new)
        except Exception as exc:
            # One object that nobody has reckoned with must not keep the others from being known.
            _LOG.exception(exc, "A change was not taken in", table=table, oldObj=change.old, newObj=change.new)


@final
@dataclass(frozen=True, slots=True)
class Following:
    """An engine that knows a cluster as its API server does."""

    engine: Engine
    informers: Informers
    metrics: Callable[[], bytes]
    """All of them now, in Prometheus' text format."""
    resource_metrics: Callable[[], bytes]
    """The same of what every pod asks for; empty while another replica leads."""
    finish: Callable[[], Awaitable[None]]
    """Nothing more is decided; what was decided is done. The cluster is still followed."""
    debug: Callable[[], None]
    """Writes down what is believed, and where that is not what the API server says; see `CacheDebugger`."""
    why_over: Callable[[], str]
    """Why nothing more is decided although nobody said so; empty while all is well."""
    questions: Questions
    """What people ask."""

    def health(self) -> Sequence[Health]:
        """How each resource is doing."""
        return self.informers.health(asyncio.get_running_loop().time())


@asynccontextmanager
async def following(
    configuration: Configuration,
    client: Client,
    *,
    decides: bool = False,
    elector: LeaderElector | None = None,
    rng: random.Random | None = None,
    transports: Transports = no_transport,
    max_in_unschedulable_pods: float = DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS,
    disabled_metrics: Collection[str] = (),
    dropped_log_lines: Callable[[], int] = int,
    records: Records | None = None,
    admits: Admits = TrialRegistry,
) -> AsyncIterator[Following]:
    """Follow the cluster of the client for as long as the block runs. The engine is ready once everything was listed.

    Arguments:
        decides: schedule the pods of the configuration's profiles, too.
        elector: says when this replica may decide, and write; None if there is no other. The client keeps to its fence, too.
        transports: what carries the calls to the configuration's extenders then.
        max_in_unschedulable_pods: see `standalone`.
        disabled_metrics, dropped_log_lines: see `Exposition`.
        records: what was decided is kept there; None to begin with nothing.
        admits: see `Questions`.

    Raises:
        ConfigErrors: what is wrong with the configuration or with a plugin, all at once.
    """
    chance, loop = rng or random.Random(), asyncio.get_running_loop()
    fence = _open if elector is None else elector.fence
    dispatcher = Dispatcher(client, rng=chance, instance=socket.gethostname(), fence=fence)
    informers = Informers(client, rng=chance)
    cluster, records = Cluster(), records or Records()
    alone = None
    if decides:
        waits = max_in_unschedulable_pods
        alone = standalone(
            configuration,
            cluster,
            dispatcher,
            chance,
            transports=transports,
            fence=fence,
            reporter=records,
            max_in_unschedulable_pods=waits,
        )
    engine = Engine(
        configuration,
        cluster,
        is_ready=lambda: informers.has_synced and not informers.is_stale(loop.time()),
        dispatcher=dispatcher,
        take=alone.handlers.changed if alone is not None else None,
        rng=chance,
        reporter=records,
    )
    queue = None if alone is None else alone.world.queue
    questions = Questions(configuration, cluster, admits, queue=queue, records=records)
    for kind in KINDS:
        informers.add(kind, partial(_tell, engine, _TABLE_OF[kind.type]))
    async with asyncio.TaskGroup() as group:
        # Who only begins to follow once it leads needs no memory before.
        may_follow = asyncio.Event()
        if elector is None or not decides or not configuration.delay_cache_until_active:
            may_follow.set()
        tasks = [
            group.create_task(_run_once_told(may_follow, informers), name="informers"),
            group.create_task(dispatcher.run(), name="dispatcher"),
        ]
        believed, queue = (cluster, None) if alone is None else (alone.world.cluster, alone.world.queue)
        profiles = [profile.scheduler_name for profile in configuration.profiles]
        debug = CacheDebugger(informers, believed, queue, profiles).debug
        metrics = Exposition(informers, dispatcher, alone, elector, loop.time, disabled_metrics, dropped_log_lines).text
        resources = ResourceExposition(informers.pods, lambda: fence() is None).text
        if alone is None:
            found = Following(engine, informers, metrics, resources, _nothing_to_finish, debug, str, questions)
        else:
            deciding = Deciding(informers, alone, dispatcher, elector, may_follow)
            running = group.create_task(deciding.run(), name="deciding")
            finish, why_over = partial(deciding.finish, running), lambda: deciding.why_over
            found = Following(engine, informers, metrics, resources, finish, debug, why_over, questions)
        try:
            yield found
        finally:
            await found.finish()
            if alone is None:
                await dispatcher.drain(SECONDS_TO_FINISH)
            for task in tasks:
                task.cancel()


async def _run_once_told(may_follow: asyncio.Event, informers: Informers) -> None:
    await may_follow.wait()
    await informers.run()


async def _nothing_to_finish() -> None:
    """Nothing is decided here."""


def _open() -> None:
    """The fence of those who are alone."""

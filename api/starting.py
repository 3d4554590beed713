"""From settings to a service: the files are read, and what is wrong with them is said in one line; then everything is opened."""

import asyncio
import dataclasses
import logging
import os
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypedDict, final
from uuid import uuid4

from api.access import Access, OpenAccess, ReviewedAccess
from api.cluster_source import Followed, Own, choose_cluster
from api.face import AnswersVerbs
from api.fatal_errors import StartUpError
from api.overrides import overridden
from api.routes.kubernetes import KubernetesApp
from api.settings import Settings
from extender.answers.questions import Questions
from extender.apiserver.access_review import AccessReview
from extender.apiserver.client import Client
from extender.apiserver.informers.health import Health
from extender.apiserver.lease.leader_election import LeaderElector
from extender.apiserver.rate_limit import RateLimit
from extender.assembly.live_cluster import Following, following
from extender.assembly.own_cluster import own_cluster
from extender.config import ConfigErrors, Configuration, load_file
from extender.embedded.api_resources import Object
from extender.embedded.dumps.seeding import SeedReport
from extender.embedded.dumps.state_file import StateFileError, form_of, load
from extender.http_extender import check_extenders
from extender.klog.outlet import STDERR
from extender.objects.cluster_state import ClusterState
from extender.records import Records
from extender.records.file import RecordsFile, RecordsFileError, kept_in
from extender.verbs.engine import Engine

_LOGGER: Final = logging.getLogger(__name__)


async def _nothing_to_finish() -> None:
    """Nobody decides."""


def _nothing_to_write_down() -> None:
    """Nothing is believed."""


@final
@dataclass(frozen=True, slots=True)
class Service:
    """What the routes answer with."""

    engine: AnswersVerbs
    health: Callable[[], Sequence[Health]] = tuple
    """How each resource that is followed is doing."""
    kubernetes: KubernetesApp | None = None
    """The Kubernetes API of our own cluster, if we have one."""
    leadership: Callable[[], str] | None = None
    """What is wrong with how this replica leads; empty if nothing is; None if there is no other."""
    finish: Callable[[], Awaitable[None]] = _nothing_to_finish
    """Nothing more is decided; what was decided is done."""
    metrics: Callable[[], bytes] = bytes
    """All of them now, in Prometheus' text format."""
    resource_metrics: Callable[[], bytes] = bytes
    """The same of what every pod asks for."""
    configuration: Configuration | None = None
    """The one that is in force; None if that is not known."""
    debug: Callable[[], None] = _nothing_to_write_down
    """Writes into the log what is believed of the cluster."""
    why_over: Callable[[], str] = str
    """Why the service has nothing left to do; empty while all is well."""
    questions: Questions | None = None
    """Answers what people ask."""
    access: Access = OpenAccess()  # noqa: RUF009 - it holds nothing
    """Whose names callers are shown."""


Opens = Callable[[], AbstractAsyncContextManager[Service]]
"""Opens a service, and closes it at the end of the block."""


def read_configuration(path: Path | None) -> Configuration:
    """The scheduler's configuration; the default one without a file.

    Raises:
        StartUpError: the file cannot be read, or is wrong.
    """
    if path is None:
        return Configuration.default()
    try:
        return load_file(path)
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path}: {_on_one_line(exc)}") from exc


def prepare(settings: Settings) -> tuple[Followed | Own, Opens]:
    """Read all that the settings name; nothing runs yet.

    Returns:
        Which cluster it will be, and what opens the service for it.

    Raises:
        StartUpError: one of the files cannot be used.
    """
    configuration = overridden(read_configuration(settings.config), settings)
    try:
        Engine.open(configuration, ClusterState())
    except ConfigErrors as exc:
        where = f"configuration {settings.config}" if settings.config else "configuration"
        raise StartUpError(f"{where}: {_on_one_line(exc)}") from exc
    if settings.records is not None:
        try:
            RecordsFile(settings.records).read()
        except RecordsFileError as exc:
            raise StartUpError(f"{exc}; choose another --records") from exc
    cluster = choose_cluster(settings, configuration)
    if settings.access == "reviewed" and isinstance(cluster, Own):
        raise StartUpError("--access reviewed: our own cluster has no users that could be told apart; it is for one that is followed")
    if settings.schedule is True or (settings.schedule is None and isinstance(cluster, Own)):
        try:
            check_extenders(configuration)
        except ConfigErrors as exc:
            raise StartUpError(f"configuration {settings.config}: {_on_one_line(exc)}") from exc
    if isinstance(cluster, Followed):
        return cluster, partial(_followed, configuration, cluster, settings)
    try:
        objects = load(cluster.begins_with)
    except StateFileError as exc:
        raise StartUpError(f"{exc}; give a cluster with --state") from exc
    if cluster.save is not None:
        try:
            form_of(cluster.save)
        except ValueError as exc:
            raise StartUpError(str(exc)) from exc
        if not os.access(cluster.save.parent, os.W_OK):
            raise StartUpError(f"state file {cluster.save}: its folder cannot be written to; choose another --save")
    return cluster, partial(_own, configuration, cluster, objects, settings)


@asynccontextmanager
async def _followed(configuration: Configuration, cluster: Followed, settings: Settings) -> AsyncIterator[Service]:
    async with (
        _access(cluster, settings) as access,
        _records(settings) as records,
        _deciding_or_not(configuration, cluster, settings, records) as service,
    ):
        yield dataclasses.replace(service, access=access)


@asynccontextmanager
async def _access(cluster: Followed, settings: Settings) -> AsyncIterator[Access]:
    """Who may see what. The client is its own: it asks whether or not we may write."""
    if settings.access == "open":
        yield OpenAccess()
        return
    async with aclosing(Client(cluster.target, user_agent="reprieve access")) as asking:
        yield ReviewedAccess(AccessReview(asking, asyncio.get_running_loop().time))


@asynccontextmanager
async def _records(settings: Settings) -> AsyncIterator[Records]:
    """What was decided, known from before if there is a file of it."""
    if settings.records is None:
        yield Records()
        return
    async with kept_in(settings.records) as records:
        yield records


@asynccontextmanager
async def _deciding_or_not(configuration: Configuration, cluster: Followed, settings: Settings, records: Records) -> AsyncIterator[Service]:
    connection = configuration.client_connection
    limit = RateLimit(connection.qps, connection.burst) if connection.qps > 0 and connection.burst > 0 else None
    if settings.schedule is not True or not configuration.leader_election.leader_elect:
        async with (
            aclosing(Client(cluster.target, rate_limit=limit)) as client,
            following(configuration, client, decides=settings.schedule is True, records=records, **_limits(settings)) as found,
        ):
            yield _service(configuration, found)
        return
    identity = f"{socket.gethostname()}_{uuid4()}"
    async with aclosing(Client(cluster.target, user_agent="reprieve leader-election")) as own_client:
        elector = LeaderElector(own_client, configuration.leader_election, identity, rng=random.Random())
        async with (
            aclosing(Client(cluster.target, rate_limit=limit, fence=elector.fence, write_seconds=elector.write_seconds)) as client,
            following(configuration, client, decides=True, elector=elector, records=records, **_limits(settings)) as found,
        ):
            yield _service(configuration, found, leadership=elector.check)


@asynccontextmanager
async def _own(configuration: Configuration, cluster: Own, objects: list[Object], settings: Settings) -> AsyncIterator[Service]:
    address = f"{settings.host}:{settings.kubernetes_port}"
    # What the cluster begins with is its own afterwards: a service that is opened again reads it again.
    first, objects[:] = objects[:] or load(cluster.begins_with), []
    async with own_cluster(first, kubelet=cluster.kubelet, save_to=cluster.save, address=address) as own:
        _tell(own.report)
        decides = settings.schedule is not False
        async with (
            _records(settings) as records,
            aclosing(own.client()) as client,
            following(configuration, client, decides=decides, records=records, admits=own.admission, **_limits(settings)) as found,
        ):
            await found.informers.wait_for_sync()
            service = _service(configuration, found, KubernetesApp(own.api))
            yield dataclasses.replace(service, why_over=lambda: found.why_over() or own.unsaved())


def _limits(settings: Settings) -> "_Limits":
    return {
        "max_in_unschedulable_pods": settings.pod_max_in_unschedulable_pods_duration.seconds,
        "dropped_log_lines": STDERR.dropped,
        "disabled_metrics": [name.strip() for name in settings.disabled_metrics.split(",") if name.strip()],
    }


class _Limits(TypedDict):
    max_in_unschedulable_pods: float
    dropped_log_lines: Callable[[], int]
    disabled_metrics: Sequence[str]


def _service(
    configuration: Configuration,
    found: Following,
    kubernetes: KubernetesApp | None = None,
    leadership: Callable[[], str] | None = None,
) -> Service:
    return Service(
        engine=found.engine,
        health=found.health,
        kubernetes=kubernetes,
        leadership=leadership,
        finish=found.finish,
        metrics=found.metrics,
        resource_metrics=found.resource_metrics,
        configuration=configuration,
        debug=found.debug,
        why_over=found.why_over,
        questions=found.questions,
    )


def opens(settings: Settings) -> Opens:
    """What opens the service that the settings ask for; see `prepare`."""
    return prepare(settings)[1]


def _tell(report: SeedReport) -> None:
    for refusal in report.refused:
        _LOGGER.warning("%s %s is left out of the cluster: %s", refusal.kind, refusal.name, refusal.why)
    if report.left_out:
        _LOGGER.info("kinds that are not served are left out: %s", ", ".join(f"{count} {kind}" for kind, count in report.left_out.items()))
    if report.added:
        _LOGGER.info("what the cluster's objects refer to was added: %s", ", ".join(report.added))


def _on_one_line(exc: Exception) -> str:
    return " ".join(str(exc).split())

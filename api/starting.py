"""From settings to a service. Files are read first, so that an error in them is one line; then all is opened."""

import asyncio
import dataclasses
import logging
import os
import random
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from typing import Final
from uuid import uuid4

import reprieve.cluster
import reprieve.lab.recordings
import reprieve.lab.shadow
from api.callers.access import Access, CertifiedAccess, LocalAccess, OpenAccess, ReviewedAccess, is_loopback
from api.cluster_source import EmbeddedCluster, FollowedCluster, choose_cluster
from api.kubernetes import KubernetesApp
from api.service_state import QuestionWorker, ServiceState
from api.settings.configuration_file import configuration_of, try_extenders
from api.settings.settings import Settings, listed
from api.tracing import TraceReporter, check_tracing, traced
from api.verb_metrics import VerbMetrics
from extender import rules
from extender.answers.records.file import RecordsFile, RecordsFileError, kept_in
from extender.answers.records.record_store import Limits
from extender.answers.records.records import Records
from extender.answers.what_if.admission import Admits
from extender.assembly.backend import Tap
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.access_review import AccessReview
from extender.client.client import Client, RateLimit
from extender.client.leader_election import LeaderElector
from extender.rules.state_file import StateFileError, load_state, state_form
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gate_table import DEFAULT_VERSION, NOT_EMULATED
from extender.values.config.feature_gates import differences
from extender.values.config.validation import without_effect
from extender.values.klog.setup import STDERR
from extender.values.objects.meta import Object
from reprieve.errors import StartUpError
from reprieve.sources.configurations import shadow_configuration

_LOGGER: Final = logging.getLogger(__name__)


Opens = Callable[[], AbstractAsyncContextManager[ServiceState]]
"""Opens a service, and closes it at the end of the block."""


def prepare(settings: Settings, taps: Sequence[Tap] = ()) -> tuple[FollowedCluster | EmbeddedCluster, Opens]:
    """Reads all files; returns the cluster, and what opens the service for it, with taps. Raises StartUpError."""
    configuration = configuration_of(settings)
    if settings.records is not None:
        try:
            RecordsFile(settings.records).read()
        except RecordsFileError as exc:
            raise StartUpError(f"{exc}; choose another --records") from exc
    if settings.record is not None and not os.access(settings.record.parent, os.W_OK):
        raise StartUpError(f"recording {settings.record}: its folder cannot be written to; choose another --record")
    check_tracing()
    if settings.has_shadow:
        shadow_configuration(settings.shadow_config or settings.config, settings.features)
    for field, why in without_effect(configuration):
        _LOGGER.warning("%s: has no effect: %s", field, why)
    for name, is_on, why in (
        differences(settings.emulated_version) if settings.emulated_version != DEFAULT_VERSION else ()
    ):
        _LOGGER.warning("feature gate %s: is always %s here: %s", name, "on" if is_on else "off", why)
    if settings.emulated_version in NOT_EMULATED:
        _LOGGER.warning("emulated version %s: %s", settings.emulated_version, NOT_EMULATED[settings.emulated_version])
    cluster = choose_cluster(settings, configuration)
    if isinstance(cluster, EmbeddedCluster) and _asks_all(settings) and not settings.allowed_common_names:
        where = "--access reviewed" if settings.access == "reviewed" else f"--host {settings.host}"
        raise StartUpError(
            f"{where}: callers of the embedded cluster are known by client certificates only; "
            "give --client-ca-file and --client-allowed-names, or let everyone in with --access open "
            "(in a container: -e REPRIEVE_ACCESS=open)"
        )
    if decides(settings, cluster):
        try_extenders(configuration, settings.config)
    if isinstance(cluster, FollowedCluster):
        return cluster, partial(_open_followed_cluster, configuration, cluster, settings, taps)
    try:
        objects = load_state(cluster.begins_with)
    except StateFileError as exc:
        raise StartUpError(f"{exc}; give a cluster with --state") from exc
    if cluster.save is not None:
        try:
            state_form(cluster.save)
        except ValueError as exc:
            raise StartUpError(str(exc)) from exc
        if not os.access(cluster.save.parent, os.W_OK):
            raise StartUpError(f"state file {cluster.save}: its folder cannot be written to; choose another --save")
    return cluster, partial(_open_embedded_cluster, configuration, cluster, objects, settings, taps)


def decides(settings: Settings, cluster: FollowedCluster | EmbeddedCluster) -> bool:
    """Returns whether the service schedules pods: it does not decide for a cluster that it follows unless told to."""
    return settings.schedule is True or (settings.schedule is None and isinstance(cluster, EmbeddedCluster))


@asynccontextmanager
async def _open_followed_cluster(
    configuration: Configuration, cluster: FollowedCluster, settings: Settings, taps: Sequence[Tap]
) -> AsyncIterator[ServiceState]:
    async with (
        _reviewed(cluster, settings) as access,
        _elector(configuration, cluster, settings) as elector,
        aclosing(_client(configuration, cluster, elector)) as client,
        _service(configuration, cluster, settings, client, access, taps, elector=elector) as service,
    ):
        connection = configuration.client_connection
        if decides(settings, cluster) and connection.qps > 0 and connection.burst > 0:
            # Of a backlog no more pods are bound in a second.
            _LOGGER.info(
                "at most %g requests a second go to the API server, bindings included (%d at once): clientConnection, "
                "or --kube-api-qps and --kube-api-burst without --config",
                connection.qps,
                connection.burst,
            )
        yield dataclasses.replace(service, cluster=cluster.target.server)


@asynccontextmanager
async def _open_embedded_cluster(
    configuration: Configuration,
    cluster: EmbeddedCluster,
    objects: list[Object],
    settings: Settings,
    taps: Sequence[Tap],
) -> AsyncIterator[ServiceState]:
    # The objects become the cluster's own. A service that is opened again reads them again.
    first, objects[:] = objects[:] or load_state(cluster.begins_with), []
    access = _access(CertifiedAccess(settings.allowed_common_names), settings, hides_names=False)
    has_address = settings.kubernetes_port and settings.host not in ("0.0.0.0", "::")  # noqa: S104 - those are none
    address = f"{settings.host}:{settings.kubernetes_port}" if has_address else ""
    scheme = "https" if settings.tls_cert_file else "http"
    async with reprieve.cluster.own_cluster(
        first,
        kubelet=cluster.kubelet,
        save_to=cluster.save,
        saves_each_change=settings.save_each_change,
        address=address,
        features=configuration.feature_gates,
    ) as own_cluster:
        _report(own_cluster)
        async with (
            aclosing(Client.over(own_cluster.transport())) as client,
            _service(configuration, cluster, settings, client, access, taps, admits=own_cluster.admission) as service,
        ):
            await service.backend.wait_for_sync()
            yield dataclasses.replace(
                service,
                kubernetes=KubernetesApp(own_cluster.api),
                cluster=f"{scheme}://{address}" if address else "",
                unsaved=own_cluster.unsaved,
            )


@asynccontextmanager
async def _service(
    configuration: Configuration,
    cluster: FollowedCluster | EmbeddedCluster,
    settings: Settings,
    client: Client,
    access: Access,
    taps: Sequence[Tap],
    *,
    admits: Admits | None = None,
    elector: LeaderElector | None = None,
) -> AsyncIterator[ServiceState]:
    """Opens what is the same for either kind of cluster, which the client asks."""
    path, shadow = settings.shadow_config or settings.config, None
    if settings.has_shadow:
        shadow = reprieve.lab.shadow.Shadow(shadow_configuration(path, settings.features), str(path or "default"))
    shadowing = () if shadow is None else (shadow.tap(),)
    disabled = listed(settings.disabled_metrics)
    async with _records(settings) as records, _recording(configuration, settings) as recording, traced() as tracer:
        tracing = () if tracer is None else (Tap(reporter=TraceReporter(records)),)
        options = LiveOptions(
            decides=decides(settings, cluster),
            max_in_unschedulable_pods=settings.pod_max_in_unschedulable_pods_duration.seconds,
            disabled_metrics=disabled,
            dropped_log_lines=STDERR.dropped,
            admits=admits or partial(rules.trial, features=settings.features),
            taps=(*recording, *shadowing, *tracing, *taps),
            tracer=tracer,
        )
        async with live_backend(configuration, client, options, elector=elector, records=records) as backend:
            yield ServiceState(
                backend,
                access,
                verb_metrics=VerbMetrics(disabled),
                worker=QuestionWorker(settings.question_seconds, settings.question_memory),
                tracer=tracer,
                shadow=shadow,
            )


@asynccontextmanager
async def _reviewed(cluster: FollowedCluster, settings: Settings) -> AsyncIterator[Access]:
    """Opens the access to a real cluster, with a client of its own, which needs no leadership to write."""
    async with aclosing(Client(cluster.target, user_agent="reprieve access")) as asking:
        review = AccessReview(asking, asyncio.get_running_loop().time)
        yield _access(ReviewedAccess(review, settings.allowed_common_names), settings, hides_names=True)


def _access(guarded: Access, settings: Settings, *, hides_names: bool) -> Access:
    """Returns who may call and see what by --access and --host: everyone, local callers, or whom `guarded` lets in."""
    if settings.access == "open":
        return OpenAccess()
    return guarded if _asks_all(settings) else LocalAccess(guarded, hides_names=hides_names)


def _asks_all(settings: Settings) -> bool:
    """Returns whether all callers have to say who they are, local ones included."""
    return settings.access == "reviewed" or (settings.access is None and not is_loopback(settings.host))


@asynccontextmanager
async def _records(settings: Settings) -> AsyncIterator[Records]:
    limits = Limits(size=settings.record_memory)
    if settings.records is None:
        yield Records(limits)
        return
    async with kept_in(settings.records, limits) as records:
        yield records


@asynccontextmanager
async def _recording(configuration: Configuration, settings: Settings) -> AsyncIterator[Sequence[Tap]]:
    if settings.record is None:
        yield ()
        return
    try:
        async with reprieve.lab.recordings.recorded_in(
            settings.record, configuration, redacts=settings.record_without, max_bytes=settings.record_max
        ) as recording:
            yield (recording,)
    except reprieve.lab.recordings.RecordingFileError as exc:
        raise StartUpError(f"{exc}; choose another --record") from exc


@asynccontextmanager
async def _elector(
    configuration: Configuration, cluster: FollowedCluster, settings: Settings
) -> AsyncIterator[LeaderElector | None]:
    if not decides(settings, cluster) or not configuration.leader_election.leader_elect:
        yield None
        return
    identity = f"{socket.gethostname()}_{uuid4()}"
    async with aclosing(Client(cluster.target, user_agent="reprieve leader-election")) as client:
        yield LeaderElector(client, configuration.leader_election, identity, rng=random.Random())


def _client(configuration: Configuration, cluster: FollowedCluster, elector: LeaderElector | None) -> Client:
    connection = configuration.client_connection
    limit = RateLimit(connection.qps, connection.burst) if connection.qps > 0 and connection.burst > 0 else None
    if elector is None:
        return Client(cluster.target, rate_limit=limit)
    return Client(cluster.target, rate_limit=limit, fence=elector.fence, write_seconds=elector.write_seconds)


def opens(settings: Settings) -> Opens:
    """Returns what opens the service that the settings describe."""
    return prepare(settings)[1]


def _report(own_cluster: "reprieve.cluster.OwnCluster") -> None:
    report = own_cluster.report
    for refusal in report.refused:
        _LOGGER.warning("%s %s is left out of the cluster: %s", refusal.kind, refusal.name, refusal.why)
    if report.left_out:
        _LOGGER.info(
            "kinds that are not served are left out: %s",
            ", ".join(f"{count} {kind}" for kind, count in report.left_out.items()),
        )
    if report.added:
        _LOGGER.info("what the cluster's objects refer to was added: %s", ", ".join(report.added))

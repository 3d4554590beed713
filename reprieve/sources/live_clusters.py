"""Answers about a cluster behind an API server, whose objects are listed and watched."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, final

from extender import rules
from extender.answers.catalogue import Question
from extender.answers.questions import Questions
from extender.answers.types import QuestionError
from extender.assembly.backend import Backend, Tap
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.client.event_reader import EventReader
from extender.client.informers.reflector_state import Health
from extender.values.config.configuration import Configuration
from extender.values.objects.kinds import KINDS
from extender.values.targets.target import Target
from reprieve.sources.configurations import read_configuration, with_gates
from reprieve.sources.listing import Listed, UnlistedError, in_words, list_cluster
from reprieve.sources.not_known import Narrowing
from reprieve.sources.reaching import cluster_away, target_of
from reprieve.sources.retelling import Retelling

LISTING_SECONDS: Final = 30.0
"""The time for which nothing may come while objects are listed: one large list may take longer than connecting."""
FAILING_SECONDS: Final = 3.0
"""The time for which a list may fail: some are repeated with success."""
ALL_LISTED_SECONDS: Final = 300.0


@final
@dataclass(frozen=True, slots=True)
class LiveAnswers:
    """Answers about a cluster that was listed once."""

    questions: Questions
    retold: Callable[[Question[Any], Any], Awaitable[Any]]
    """Adds to an answer what is not known; see `Retelling`."""
    notes: Sequence[str] = ()
    """What could not be listed, in sentences."""
    check_trials: Callable[[], None] = lambda: None
    """Raises SourceAwayError if nothing can be tried."""


@asynccontextmanager
async def about_followed_cluster(
    kubeconfig: Path | None, context: str | None, config: Path | None, show: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Questions]:
    """Yields answers that follow the cluster; see `followed`."""
    async with followed(kubeconfig, context, config, show) as (questions, _):
        yield questions


@asynccontextmanager
async def followed(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    show: Callable[[str], None] = lambda _: None,
    taps: Sequence[Tap] = (),
    gates: Mapping[str, bool] = {},
) -> AsyncIterator[tuple[Questions, Callable[[], Sequence[Health]]]]:
    """Yields answers that follow the cluster, once all is listed, and a function for the health of each watch.

    It takes the right to list and to watch all kinds. `show` is told what is done. Raises InputError, SourceAwayError.
    """
    configuration = with_gates(read_configuration(config), gates)
    options = LiveOptions(admits=partial(rules.trial, features=configuration.feature_gates), taps=taps)
    async with following(configuration, target_of(kubeconfig, context), options, show) as backend:
        if backend.questions is None:
            raise QuestionError("the service answers no questions")
        yield backend.questions, backend.health


@asynccontextmanager
async def about_cluster(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    show: Callable[[str], None] = lambda _: None,
    namespaces: Iterable[str] = (),
    feature_gates: Mapping[str, bool] = {},
) -> AsyncIterator[LiveAnswers]:
    """Yields answers about the cluster as it is now, as far as the user may list it; nothing is watched.

    `namespaces` are those asked about, besides that of the kubeconfig; `feature_gates` go before those of the
    environment. Raises as `about_followed_cluster`.
    """
    configuration, target = with_gates(read_configuration(config), feature_gates), target_of(kubeconfig, context)
    async with aclosing(Client(target)) as client:
        listed = await _listed_once(client, target, configuration, {target.namespace, *namespaces}, show)
        narrowing = Narrowing(listed.gaps, listed.cluster)
        listed.cluster.narrow = narrowing
        admits = partial(rules.trial, features=configuration.feature_gates)
        events = EventReader(client, asyncio.get_running_loop().time).of
        questions = Questions(configuration, listed.cluster, admits, events=events)
        retelling = Retelling(questions, narrowing)
        yield LiveAnswers(questions, retelling, tuple(_notes_on(listed)), retelling.check_trials)


async def _listed_once(
    client: Client,
    target: Target,
    configuration: Configuration,
    namespaces: Collection[str],
    show: Callable[[str], None],
) -> Listed:
    kinds = [kind for kind in KINDS if not kind.gate or configuration.feature_gates.enabled(kind.gate)]
    try:
        async with asyncio.timeout(ALL_LISTED_SECONDS):
            show_progress = partial(_told, show, target)
            listed = await list_cluster(client, kinds, namespaces, FAILING_SECONDS, show_progress)
    except TimeoutError as exc:
        raise cluster_away(target, f"the lists have not come within {ALL_LISTED_SECONDS:.0f} s") from exc
    except ExceptionGroup as group:
        first = group.exceptions[0]
        if not isinstance(first, UnlistedError):
            raise
        raise cluster_away(target, str(first)) from group
    nodes, pods = listed.gaps.get("nodes"), listed.gaps.get("pods")
    if nodes is not None and pods is not None and pods.is_total:
        where = " nor ".join(["neither nodes", f"the pods of {' or '.join(sorted(namespaces))}"])
        why = f"{where} can be listed (-n names another namespace): Forbidden: {nodes.why}; {pods.why}"
        raise cluster_away(target, why)
    return listed


def _told(show: Callable[[str], None], target: Target, text: str) -> None:
    show(f"{text} of {target.server}")


def _notes_on(listed: Listed) -> Iterator[str]:
    if listed.gaps:
        yield f"{in_words(listed.gaps.values())}: what hangs on them is not known"
    for (namespace, name), why in listed.unreadable.items():
        yield f"{f'{namespace}/' if namespace else ''}{name} is left out, since it cannot be read: {why}"


@asynccontextmanager
async def following(
    configuration: Configuration, target: Target, options: LiveOptions, show: Callable[[str], None]
) -> AsyncIterator[Backend]:
    """Yields a backend of the cluster once all objects are listed. Raises SourceAwayError if they are not in time."""
    # What reflectors say about their tries is for a service, which goes on trying.
    logging.getLogger("extender.client").addHandler(logging.NullHandler())
    async with (
        aclosing(Client(target)) as client,
        _alone(),
        live_backend(configuration, client, options) as backend,
    ):
        await _listed(backend, target, show)
        yield backend


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    """Unwraps an exception of the block from the groups that a TaskGroup made of it."""
    try:
        yield
    except ExceptionGroup as group:
        errors: list[Exception] = [group]
        while len(errors) == 1 and isinstance(errors[0], ExceptionGroup):
            errors = [*errors[0].exceptions]
        if len(errors) == 1:
            raise errors[0] from errors[0].__cause__
        raise


async def _listed(backend: Backend, target: Target, show: Callable[[str], None]) -> None:
    """Returns once all objects are listed. Raises SourceAwayError if some are not in time, or nothing comes."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    listing = asyncio.create_task(backend.wait_for_sync())
    try:
        while not (await asyncio.wait((listing,), timeout=0.2))[0]:
            waited = loop.time() - began
            unsynced = [health for health in backend.health() if not health.synced]
            show(f"listing {', '.join(health.resource for health in unsynced)} of {target.server}")
            for health in unsynced:
                if (health.failing_for or 0.0) > FAILING_SECONDS:
                    raise cluster_away(target, f"{health.resource} cannot be listed: {health.last_error}")
            silent_for = (
                waited if health.silent_for is None else min(waited, health.silent_for) for health in unsynced
            )
            if waited > ALL_LISTED_SECONDS or (unsynced and min(silent_for) > LISTING_SECONDS):
                raise cluster_away(target, f"the list of {unsynced[0].resource} did not arrive within {waited:.0f} s")
        await listing
    finally:
        listing.cancel()

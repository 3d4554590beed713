"""Answers worked out in this process, about a cluster behind an API server or in a dump."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Final, TypeVar, final

from api.cli.manifest_files import state_of
from api.cli.reaching import cluster_away, target_of
from api.cli.showing import tell
from api.fatal_errors import StartUpError
from api.settings.configuration_file import read_configuration, shadow_configuration
from extender.answers.catalogue import Question, worked_out
from extender.answers.questions import Questions
from extender.answers.types import QuestionError
from extender.assembly.backend import Backend
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.cluster import HOW_TO_DUMP, TrialRegistry, load_state, read_state, templates_among
from extender.lab.recordings import Recording, is_recording
from extender.lab.shadow import Shadow
from extender.values.concurrency.child_process import in_child
from extender.values.config import Configuration
from extender.values.objects.decoding import DecodeError
from extender.values.targets.target import Target

A = TypeVar("A")

STANDARD_INPUT: Final = Path("-")


@final
class LocalAnswers:
    """Questions as the commands ask them. Simulations are done in a child process, so that Ctrl-C ends them at once."""

    remembers: Final = False

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def ask(self, question: Question[A]) -> A:
        if question.takes_worker:
            return await in_child(partial(worked_out, question, self._questions))
        made = question.ask(self._questions)
        return await made if isawaitable(made) else made


LISTING_SECONDS: Final = 30.0
"""The time for which nothing may come while objects are listed: one large list may take longer than connecting."""
FAILING_SECONDS: Final = 3.0
"""The time for which a list may fail: some are repeated with success."""
ALL_LISTED_SECONDS: Final = 300.0


@asynccontextmanager
async def about_cluster(
    kubeconfig: Path | None, context: str | None, config: Path | None, show: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Questions]:
    """Yields answers once all objects are listed; `show` is told what is done. Raises InputError, SourceAwayError."""
    configuration = read_configuration(config)
    options = LiveOptions(admits=partial(TrialRegistry, features=configuration.feature_gates))
    async with _following(configuration, target_of(kubeconfig, context), options, show) as backend:
        if backend.questions is None:
            raise QuestionError("the service answers no questions")
        yield backend.questions


@asynccontextmanager
async def shadow_of(
    kubeconfig: Path | None, context: str | None, config: Path | None, show: Callable[[str], None]
) -> AsyncIterator[Shadow]:
    """Yields a shadow of a cluster's scheduler, once all objects are listed. Raises as `about_cluster`."""
    configuration = shadow_configuration(config)
    shadow = Shadow(configuration, str(config or "default"))
    options = LiveOptions(taps=[shadow.tap()])
    async with _following(configuration, target_of(kubeconfig, context), options, show):
        yield shadow


@asynccontextmanager
async def _following(
    configuration: Configuration, target: Target, options: LiveOptions, show: Callable[[str], None]
) -> AsyncIterator[Backend]:
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
    """Raises what the block raises as it is, where a TaskGroup in between has made a group of it."""
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
            missing = [each for each in backend.health() if not each.synced]
            show(f"listing {', '.join(each.resource for each in missing)} of {target.server}")
            for each in missing:
                if (each.failing_for or 0.0) > FAILING_SECONDS:
                    raise cluster_away(target, f"{each.resource} cannot be listed: {each.last_error}")
            silent_for = (waited if each.silent_for is None else min(waited, each.silent_for) for each in missing)
            if waited > ALL_LISTED_SECONDS or (missing and min(silent_for) > LISTING_SECONDS):
                raise cluster_away(target, f"the list of {missing[0].resource} has not come within {waited:.0f} s")
        await listing
    finally:
        listing.cancel()


@asynccontextmanager
async def about_dump(dump: Path, config: Path | None, at: str | None = None) -> AsyncIterator[Questions]:
    """Yields answers about a file (- is standard input); of a recording at a moment or its end. Raises InputError."""
    recording = Recording(dump) if dump != STANDARD_INPUT and is_recording(dump) else None
    recorded = recording.configuration if recording is not None and config is None else None
    configuration = recorded or read_configuration(config)
    if recording is not None:
        objects = recording.objects_at(None if at is None else recording.seconds_of(at))
    elif at is not None:
        raise StartUpError(f"--at: {dump} is not a recording: it shows one moment only")
    else:
        objects = read_state(sys.stdin.buffer.read(), "standard input") if dump == STANDARD_INPUT else load_state(dump)
    source = "standard input" if dump == STANDARD_INPUT else dump
    try:
        state = state_of(objects)
    except DecodeError as exc:
        raise StartUpError(f"{source}: {exc}") from exc
    if recording is None and not state.nodes and not state.pods:
        kinds = ", ".join(sorted({str(obj.get("kind")) for obj in objects}))
        holds = f"it holds {kinds:.80}, and neither nodes nor pods" if kinds else "it is empty"
        raise StartUpError(f"{source}: {holds}; {HOW_TO_DUMP}")
    if not state.nodes:
        tell(f"{source} holds no nodes; {HOW_TO_DUMP}")
    yield Questions.of(
        configuration,
        state,
        partial(TrialRegistry, templates_among(objects), configuration.feature_gates),
    )

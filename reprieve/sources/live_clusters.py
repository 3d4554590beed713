"""Answers about a cluster behind an API server, whose objects are listed and watched."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from extender import rules
from extender.answers.questions import Questions
from extender.answers.types import QuestionError
from extender.assembly.backend import Backend
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.values.config.configuration import Configuration
from extender.values.targets.target import Target
from reprieve.sources.configurations import read_configuration
from reprieve.sources.reaching import cluster_away, target_of

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
    options = LiveOptions(admits=partial(rules.trial, features=configuration.feature_gates))
    async with following(configuration, target_of(kubeconfig, context), options, show) as backend:
        if backend.questions is None:
            raise QuestionError("the service answers no questions")
        yield backend.questions


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

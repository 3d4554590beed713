"""Informers: a reflector for each watched resource. A resource that fails does not affect the others."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from random import Random
from typing import Any, Final, TypedDict, TypeVar, Unpack, final

from extender.client.client import Client
from extender.client.errors import ApiError
from extender.client.informers.reading import DoubtfulAnswerError
from extender.client.informers.reflector import Reached, Reflector
from extender.client.informers.reflector_state import Backoff, Health
from extender.client.informers.store import Change
from extender.values.objects.kinds import WatchedKind
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod

T = TypeVar("T", bound=HasMetadata)

_log = logging.getLogger(__name__)

STALE_AFTER: Final = 5.0
"""Seconds for which a resource may fail before its objects count as stale. A watch that was cut is back in less."""


class ReflectorOptions(TypedDict, total=False):
    """The options for all reflectors; see `Reflector`."""

    streams_lists: bool
    relist_period: float
    page_size: int
    is_whole: Callable[[HasMetadata], bool]


@final
class Informers:
    """A reflector for each resource. Call `add` for each, then `run`."""

    def __init__(self, client: Client, *, rng: Random, **options: Unpack[ReflectorOptions]) -> None:
        self.reflectors: Final[list[Reflector[Any]]] = []
        self._client = client
        self._rng = rng
        self._options = options
        self._reached = Reached()

    def add(self, kind: WatchedKind[T], on_changes: Callable[[Sequence[Change[T]]], None]) -> Reflector[T]:
        """Adds a resource; for `on_changes` see `Reflector`."""
        # A kind that may be missing draws from a copy, so that it does not change when those are asked for that
        # decisions depend on.
        rng = copy(self._rng) if kind.is_optional or kind.gate else self._rng
        reflector = Reflector(self._client, kind, on_changes, rng=rng, reached=self._reached, **self._options)
        self.reflectors.append(reflector)
        return reflector

    async def run(self) -> None:
        """Runs all reflectors until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(reflector.run(), name=f"reflector of {reflector.kind.resource}")

    @property
    def has_synced(self) -> bool:
        """True once the first list of every resource was delivered."""
        return all(reflector.has_synced for reflector in self.reflectors)

    def is_ready(self) -> bool:
        """Returns whether every object is known, and none may be outdated for want of news."""
        now = asyncio.get_running_loop().time()
        return self.has_synced and all(
            (reflector.failing_for(now) or 0.0) <= STALE_AFTER for reflector in self.reflectors
        )

    def pods(self) -> Iterable[Pod]:
        """Returns all pods as the server last reported them."""
        return (
            pod for reflector in self.reflectors if reflector.kind.type is Pod for pod in reflector.objects.values()
        )

    async def wait_for_sync(self) -> None:
        for reflector in self.reflectors:
            await reflector.wait_for_sync()

    async def catch_up(self) -> None:
        """Returns once everything that the server knew when this was called is known here; see `Reflector.catch_up`."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(self._caught_up(reflector), name=f"catching up with {reflector.kind.resource}")

    async def _caught_up(self, reflector: Reflector[Any]) -> None:
        backoff = Backoff(self._rng)
        while True:
            await reflector.wait_for_sync()
            try:
                return await reflector.catch_up()
            except (ApiError, DoubtfulAnswerError) as exc:
                _log.warning("%s: the newest version could not be learnt: %s", reflector.kind.resource, exc)
            await asyncio.sleep(backoff.next(asyncio.get_running_loop().time()))

    def health(self, now: float) -> list[Health]:
        """Returns the health of each resource at the event loop's time."""
        return [reflector.health(now) for reflector in self.reflectors]

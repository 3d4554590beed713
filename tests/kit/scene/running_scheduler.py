"""A scheduler as a process has it, without its service: what it hears by, what it decides with, and what it writes by."""

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

from extender.assembly.scheduling import assemble_scheduler
from extender.client.client import Client
from extender.client.http_extender import Transports, no_transport, reads_whole
from extender.client.informers.informers import Informers
from extender.client.informers.store import Change
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration
from extender.values.objects.kinds import KINDS, WatchedKind

Hears = Callable[[WatchedKind[Any], Sequence[Change[Any]]], None]
"""Takes changes of a kind in."""


@final
class RunningScheduler:
    """From its start to its end, which is that of the task in which it runs."""

    def __init__(
        self,
        client: Client,
        configuration: Configuration,
        dispatcher: ApiDispatcher,
        *,
        hearing: random.Random,
        deciding: random.Random,
        writes: Callable[[fwk.Dispatcher], fwk.Dispatcher] = lambda dispatcher: dispatcher,
        plugins: Registry | None = None,
        transports: Transports = no_transport,
        by_hand: bool = False,
        **options: Any,
    ) -> None:
        """Arguments:
        hearing, deciding: chance, for the pauses of watches and for ties between nodes.
        writes: what is between the scheduler and its dispatcher.
        by_hand: pods wait until a test has one tried.
        options: of the reflectors.
        """
        self.dispatcher = dispatcher
        self.informers = Informers(client, rng=hearing, is_whole=reads_whole(configuration.extenders), **options)
        self.alone = assemble_scheduler(
            configuration, Cluster(), writes(dispatcher), deciding, transports=transports, plugins=plugins
        )
        self.by_hand = by_hand
        self._gates = configuration.feature_gates

    def follow(self, hears: Hears) -> None:
        """Before it runs: how it hears of changes."""
        for kind in KINDS:
            if not kind.gate or self._gates.enabled(kind.gate):
                self.informers.add(kind, partial(hears, kind))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for work in (self.informers.run(), self.dispatcher.run(), self._schedule()):
                group.create_task(work)

    async def _schedule(self) -> None:
        await self.informers.wait_for_sync()
        if not self.by_hand:
            await self.alone.scheduler.run()

    async def is_busy(self, num_held: int) -> bool:
        """True while it has something to do that need not wait.

        Arguments:
            num_held: requests that the story holds up.
        """
        world = self.alone.world
        if not self.by_hand and world.queue.pods_in_active_q():
            return True
        held_uids = {waiting.pod.uid for waiting in world.waiting_pods}
        if any(info.pod.uid not in held_uids for info in world.queue.in_flight_pods()):
            return True
        return not num_held and not await self.dispatcher.drain(0)

    def waits_until(self, when: float) -> bool:
        """True if something may happen by itself until then: a pause ends, or somebody lets a pod go on."""
        world = self.alone.world
        pausing = (
            [] if self.by_hand else [*world.queue.pods_in_backoff_q(), *world.queue.pods_in_backoff_q(failed=True)]
        )
        ends = [end for end in map(world.queue.backoff_time, pausing) if end is not None]
        is_on_its_way = any(world.waiting_pods) or any(
            world.cluster.cache.pod(uid) is not None for uid in world.cluster.pending
        )
        return is_on_its_way or any(end <= when for end in ends)

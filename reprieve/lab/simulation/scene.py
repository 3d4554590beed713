"""Scene: the stage of a workload, where objects come and go, time passes, and phases are measured."""

import asyncio
import gc
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, final

from extender.assembly.scheduling import Scheduling
from extender.engine.plugins.dynamic_resources.pod_claims import has_binding_conditions
from extender.engine.queue.scheduling_queue import ACTIVE, BACKOFF
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab.simulation.observation import Observation
from reprieve.lab.simulation.report import Phase
from reprieve.lab.simulation.simulated_cluster import ENDLESS, Lifetime, SimulatedCluster

GLANCE: Final = 0.001
"""Virtual seconds between two looks at whether all has come to rest. What can happen at once has happened by then."""
LONG_GLANCE: Final = 1.0


class StuckError(Exception):
    """The scheduler has stopped by itself."""


@final
@dataclass(slots=True)
class Scene:
    """A simulated cluster and its scheduler. State: the phases that were measured, and notes for the report."""

    cluster: SimulatedCluster
    scheduling: Scheduling
    observation: Observation
    rng: random.Random
    """For the workload's own chance; the scheduler has another one."""
    seed: int
    is_running: Callable[[], bool]
    """Whether the scheduler still runs."""
    phases: list[Phase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def expect_pods(self, number: int) -> None:
        """Says how many pods are going to arrive, for the progress and for when samples are taken."""
        self.observation.expected_pods += number

    def put(self, *objects: HasMetadata) -> None:
        """Creates or replaces objects that are not pods."""
        for obj in objects:
            self.cluster.put(obj)

    def create_pods(self, pods: Iterable[Pod], lifetime: Lifetime = ENDLESS) -> None:
        if not self.observation.fates:
            self._begin()
        for pod in pods:
            self.cluster.create_pod(pod, lifetime)

    def _begin(self) -> None:
        """Lays the nodes out before decisions count; the garbage collector spares them, as in the service."""
        self.scheduling.world.cluster.cache.update_snapshot()
        gc.collect()
        gc.freeze()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep_until(self, time: float) -> None:
        await asyncio.sleep(max(time - self.now(), 0))

    async def settle(self, is_done: Callable[[], bool] | None = None) -> None:
        """Waits until enough pods are placed, or nothing can place another one. Raises StuckError."""
        pause = GLANCE
        while True:
            # Virtual time only passes when nothing is ready, so that whatever could happen now has happened after it.
            await asyncio.sleep(pause)
            if not self.is_running():
                raise StuckError("the scheduler has stopped by itself")
            if (is_done is not None and is_done()) or not self._is_busy():
                return
            if pause >= LONG_GLANCE and self._waits_for_drivers():
                return
            pause = min(2 * pause, LONG_GLANCE)

    def _is_busy(self) -> bool:
        world, cluster = self.scheduling.world, self.cluster
        counts = world.queue.pending_counts()
        if counts[ACTIVE] or counts[BACKOFF] or world.queue.in_flight_pods() or any(world.waiting_pods):
            return True
        if cluster.num_calls or cluster.num_stopping or any(world.metrics.running.values()):
            return True
        return bool(cluster.num_running_out and world.cluster.pending)

    def _waits_for_drivers(self) -> bool:
        """Whether only pods are under way whose devices a driver has to prepare: the workload is the driver."""
        awaited = {
            consumer.uid
            for claim in self.cluster.all_of(ResourceClaim)
            if has_binding_conditions(claim) and not claim.status.devices
            for consumer in claim.status.reserved_for
        }
        queue = self.scheduling.world.queue.pending_counts()
        return (
            bool(awaited) and not queue[ACTIVE] and sum(self.scheduling.world.metrics.running.values()) <= len(awaited)
        )

    def begin_measuring(self, name: str, threshold: float | None) -> Callable[[], Phase]:
        """Begins to measure placed pods a second of real time, samples excluded; returns the function that ends it."""
        began, overhead, placed = perf_counter(), self.observation.overhead, self.observation.placed

        def end() -> Phase:
            pods = self.observation.placed - placed
            seconds = max(perf_counter() - began - (self.observation.overhead - overhead), 1e-9)
            return Phase(name=name, pods=pods, pods_per_second=pods / seconds, threshold=threshold)

        return end

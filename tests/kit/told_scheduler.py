"""A scheduler that decides in memory and is told things by hand: nothing waits, and nothing is written but in a
notebook.
"""

import asyncio
import random
from datetime import UTC, datetime

from extender.assembly.scheduling import assemble_scheduler
from extender.engine.cache.cluster import Cluster
from extender.engine.reporter import NO_REPORTER, Reporter
from extender.engine.runtime.registry import Registry
from extender.testing import NodeBuilder, PodBuilder
from extender.values.config.configuration import Configuration
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.writes import RecordedWrites

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class ToldScheduler:
    """Call it where a loop runs."""

    def __init__(
        self,
        reporter: Reporter = NO_REPORTER,
        configuration: Configuration | None = None,
        *,
        cluster: Cluster | None = None,
        seed: int = 1,
        plugins: Registry | None = None,
    ) -> None:
        self.cluster = cluster or Cluster()
        self.writes = RecordedWrites(self.cluster.cache)
        self.alone = assemble_scheduler(
            configuration or Configuration(),
            self.cluster,
            self.writes,
            random.Random(seed),
            plugins=plugins,
            reporter=reporter,
        )

    def comes(self, *objects: HasMetadata | NodeBuilder | PodBuilder) -> None:
        for newcomer in objects:
            obj = newcomer.obj() if isinstance(newcomer, NodeBuilder | PodBuilder) else newcomer
            self.alone.handlers.changed(None, obj)

    def goes(self, obj: Pod | PodBuilder) -> None:
        self.alone.handlers.changed(obj.obj() if isinstance(obj, PodBuilder) else obj, None)

    async def decides(self, max_pods: int = 1000) -> None:
        """Whoever waits to be tried is tried, and what follows from it is done."""
        async with asyncio.TaskGroup() as acting:
            while max_pods and (info := self.alone.world.queue.pop_nowait()) is not None:
                await self.alone.scheduler.schedule_one(info, acting)
                max_pods -= 1
        await asyncio.sleep(0)  # what was submitted is written

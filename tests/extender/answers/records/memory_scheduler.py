"""A scheduler that decides in memory and is told things by hand: nothing waits, and nothing is written but in a
notebook.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import final

from extender.assembly.scheduling import assemble_scheduler
from extender.engine.cache.cluster import Cluster
from extender.engine.reporter import NO_REPORTER, Reporter
from extender.testing import NodeBuilder, PodBuilder, virtual_time
from extender.values.config import Configuration
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from tests.kit.writes import RecordedWrites

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@final
class Scheduling:
    """Call it where a loop runs."""

    def __init__(self, reporter: Reporter = NO_REPORTER, configuration: Configuration | None = None) -> None:
        self.cluster = Cluster()
        self.writes = RecordedWrites(self.cluster.cache)
        self.alone = assemble_scheduler(
            configuration or Configuration(), self.cluster, self.writes, random.Random(1), reporter=reporter
        )

    def comes(self, *objects: Node | Pod | PodDisruptionBudget | NodeBuilder | PodBuilder) -> None:
        for each in objects:
            obj = each.obj() if isinstance(each, NodeBuilder | PodBuilder) else each
            self.alone.handlers.changed(None, obj)

    def goes(self, obj: Pod | PodBuilder) -> None:
        self.alone.handlers.changed(obj.obj() if isinstance(obj, PodBuilder) else obj, None)

    async def decides(self, most: int = 1000) -> None:
        """Whoever waits to be tried is tried, and what follows from it is done."""
        async with asyncio.TaskGroup() as acting:
            while most and (info := self.alone.world.queue.pop_nowait()) is not None:
                await self.alone.scheduler.schedule_one(info, acting)
                most -= 1
        await asyncio.sleep(0)  # what was submitted is written


def story(tell: Callable[[], Awaitable[None]]) -> None:
    virtual_time.run(tell())  # type: ignore[arg-type]

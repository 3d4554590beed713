"""A profile of one plugin, and pods that are reserved and prepared with it on the one node there is."""

import asyncio
from collections.abc import Callable, Set as AbstractSet
from typing import Any

from extender.engine.cache import Cache
from extender.engine.framework import GROUP_CYCLE, ApiCall, CycleState, GroupCycle, Status
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import Rows
from extender.testing import NodeBuilder, make_cache, make_framework, virtual_time
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.writes import RecordedWrites


class Reservations:
    def __init__(self, plugin: Any, node: NodeBuilder, *objects: HasMetadata, late: bool = False) -> None:
        """
        Arguments:
            plugin: its class, or what makes it of its arguments and a handle.
            late: whether writes show only once they are delivered.
        """
        self.node = node.obj().name
        self.cache: Cache = make_cache(node, objects=objects)
        self.writes = RecordedWrites(self.cache, late=late)
        self.framework = make_framework(plugin, dispatcher=self.writes, live=self.cache)

    def pre_filter(self, pod: Pod, after: AbstractSet[str] | None = None) -> tuple[Cycle, Status]:
        """`after`: in the cycle of a pod group, the UIDs of members that are assumed already."""
        cycle = Cycle(self.framework, self.cache.update_snapshot(), pod)
        if after is not None:
            cycle.write(GROUP_CYCLE, GroupCycle(None, len(after) + 1, after))
        return cycle, cycle.run_pre_filter_plugins().status

    def filtered(self, pod: Pod) -> tuple[Cycle, Status]:
        """What PreFilter says, or else Filter."""
        cycle, status = self.pre_filter(pod)
        return cycle, cycle.run_filter_plugins(Rows.of(cycle.snapshot)).status_of(0) if status.is_success else status

    def reserve(self, pod: Pod, after: AbstractSet[str] | None = None) -> tuple[Cycle, Status]:
        """What PreFilter says, or else Reserve."""
        cycle, status = self.pre_filter(pod, after)
        if not status.is_success:
            return cycle, status
        cycle.run_filter_plugins(Rows.of(cycle.snapshot))
        answer = self.framework.plugins.reserve[0].reserve(cycle, pod, self.node)
        assert answer is not None
        return cycle, answer

    def reserved(self, pod: Pod) -> Cycle:
        cycle, status = self.reserve(pod)
        assert status.is_success, status
        return cycle

    def unreserve(self, state: CycleState, pod: Pod) -> None:
        self.framework.plugins.reserve[0].unreserve(state, pod, self.node)

    def pre_bind(self, state: CycleState, pod: Pod, *later: tuple[float, Callable[[], None]]) -> tuple[Status, float]:
        """What PreBind says, and after how many seconds, while something else happens at the given times."""

        async def story() -> tuple[Status, float]:
            loop = asyncio.get_running_loop()
            for when, what in later:
                loop.call_at(when, what)
            answer = await self.framework.plugins.pre_bind[0].pre_bind(state, pod, self.node)
            assert answer is not None
            return answer, loop.time()

        return virtual_time.run(story())

    def kinds_written(self) -> list[type[ApiCall[Any]]]:
        return [type(call) for call in self.writes.calls]

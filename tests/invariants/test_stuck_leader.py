"""A leader whose event loop is stuck in a plugin: its lease ends, another replica leads, and it writes nothing any more."""

import asyncio

from tests.invariants.stage import Stage, eventually, said
from tests.invariants.test_killed_processes import POD, converges, holder


async def test_stuck_leader_is_replaced_and_writes_nothing_when_it_comes_back(stage: Stage) -> None:
    stuck = stage.hold(said("assumed", POD))
    stage.world.new_node("n", "3")
    async with stage.a_scheduler(elects=True) as first:
        await eventually(first.says("successfully acquired lease"))
        leader = holder(stage)
        stage.world.new_pod(POD, "1")
        await stuck.reached.wait()
        async with stage.a_scheduler(elects=True) as second:
            await eventually(second.says("successfully acquired lease"))
            await converges(stage)
            stuck.go()
            code = await first.ends()
            await asyncio.sleep(1)  # a write that was on its way has come by now

            assert code != 0
            assert "leader election lost" in first.said()
            assert holder(stage) != leader
            assert len([write for write in stage.world.monitor.writes if write.is_binding]) == 1

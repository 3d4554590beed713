"""A difference is clear only if the scheduler knew what the shadow knows: it hears of a change later than the API server."""

import asyncio

import pytest

from extender.testing import make_node, make_pod, virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import replaced
from extender.values.objects.node import Node
from reprieve.lab.shadow.shadow import Shadow
from tests.reprieve.lab.shadow.test_victims import tell

NODE = make_node("n").capacity(cpu="4").label(disk="ssd").obj()
CHANGED = {
    "a cordon": make_node("n").capacity(cpu="4").label(disk="ssd").unschedulable().obj(),
    "less room": make_node("n").capacity(cpu="0").label(disk="ssd").obj(),
    "another label": make_node("n").capacity(cpu="4").label(disk="hdd").obj(),
}


def is_clear(changed: Node, *, seconds_before: float = 0.1, heartbeats: int = 0) -> bool:
    """Whether it is a clear difference that a pod was placed on a node that does not fit since it changed."""
    pending = make_pod("web").uid("web").req(cpu="1").node_selector(disk="ssd").obj()
    placed = replaced(pending, spec=replaced(pending.spec, node_name="n"))

    async def story() -> bool:
        shadow = Shadow(Configuration())
        following = asyncio.create_task(shadow.run())
        await tell(shadow, (None, NODE), (None, pending))
        await asyncio.sleep(10)
        await tell(shadow, (NODE, changed), *[(changed, changed)] * heartbeats)
        await asyncio.sleep(seconds_before)
        await tell(shadow, (pending, placed))
        await shadow.caught_up()
        following.cancel()
        (difference,) = shadow.agreement().differences
        return difference.is_clear

    return virtual_time.run(story())


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_what_has_just_changed_may_be_unheard_of(changed: Node) -> None:
    assert not is_clear(changed)


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_what_changed_long_before_is_known(changed: Node) -> None:
    assert is_clear(changed, seconds_before=10)


def test_many_heartbeats_do_not_hide_what_has_just_changed() -> None:
    assert not is_clear(CHANGED["a cordon"], heartbeats=50)

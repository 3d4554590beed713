"""A pod group may have more long members than plugins stay prepared for."""

import asyncio

from extender.testing import make_node, make_pod, make_pod_group, name_term
from extender.values.objects.kept_parses import LONG_BYTES_KEPT
from extender.values.objects.pod import Pod
from tests.extender.engine.scheduler.group_stage import a_group_stage

NUM_MEMBERS = 5


def long_member(place: int) -> Pod:
    term = name_term("NotIn", f"{place}" + "x" * (LONG_BYTES_KEPT // 4))
    return make_pod(f"g{place}").uid(f"g{place}").group("g").node_affinity(term).obj()


def test_each_member_is_prepared_for_when_its_turn_comes() -> None:
    """
    The group fits, and does not begin again for want of room for what was prepared.
    """
    members, group = [long_member(place) for place in range(NUM_MEMBERS)], make_pod_group("g", NUM_MEMBERS)

    async def tried() -> bool:
        stage = a_group_stage(make_node("n").capacity(cpu="20", pods=110).obj(), group, *members)
        return (await stage.trial(group, members).run()).fits

    assert asyncio.run(tried())

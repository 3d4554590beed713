"""delayCacheUntilActive: a replica that stands by learns nothing of the cluster, and all of it once it leads."""

import asyncio
import dataclasses

from extender.cluster.api_resources import PODS
from extender.values.config import Configuration
from tests.kit.objects import node, pod
from tests.kit.replicas import Replica, replicas

DELAYED = dataclasses.replace(Configuration(), delay_cache_until_active=True)


def is_ready(replica: Replica) -> bool:
    return replica.following is not None and replica.following.verbs.is_ready


async def test_standby_with_a_delayed_cache_lists_and_watches_nothing() -> None:
    async with replicas(node("a"), configuration=DELAYED) as (own, first, second):
        await asyncio.sleep(5)

        assert (first.leads, is_ready(first)) == (True, True)
        assert (second.leads, is_ready(second)) == (False, False)
        assert second.transport.count("list") + second.transport.count("watch") == 0

        own.api.registry.create(PODS, "default", pod("web"))
        await asyncio.sleep(5)
        assert own.api.registry.get(PODS, "default", "web")["spec"]["nodeName"] == "a"


async def test_new_leader_with_a_delayed_cache_knows_the_cluster_before_it_decides() -> None:
    async with replicas(node("a", "2"), configuration=DELAYED) as (own, first, second):
        own.api.registry.create(PODS, "default", pod("web", "1500m"))
        await asyncio.sleep(5)

        await first.kill()
        own.api.registry.create(PODS, "default", pod("late", "1500m"))
        await asyncio.sleep(60)

        assert (second.leads, is_ready(second)) == (True, True)
        late = own.api.registry.get(PODS, "default", "late")
        assert "nodeName" not in late["spec"], "there is no room beside the first"
        assert late["status"]["conditions"][0]["reason"] == "Unschedulable"


async def test_standby_without_a_delayed_cache_is_ready_to_take_over() -> None:
    async with replicas(node("a")) as (_, first, second):
        await asyncio.sleep(5)

        assert (is_ready(first), is_ready(second), second.leads) == (True, True, False)

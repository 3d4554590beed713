"""Of several replicas one schedules; when it ends, however it ends, another goes on where it was, and no pod is bound
twice.
"""

import asyncio
import dataclasses
from typing import Any

import pytest

from extender.rules.api_resources import EVENTS
from extender.values.config.configuration import Configuration
from tests.kit.faults import Fault, watches
from tests.kit.faults.answers import black_hole, commit_then_drop, delay
from tests.kit.objects import node, pod
from tests.kit.replicas import Replica, holder, replicas

BINDING: dict[str, Any] = {"verb": "create", "subresource": "binding"}


async def test_one_of_them_schedules() -> None:
    async with replicas(node("a")) as (cluster, first, second):
        cluster.create(pod("web"))
        await asyncio.sleep(60)

        assert (first.leads, second.leads, holder(cluster)) == (True, False, "first")
        assert cluster.node_of("web") == "a"
        assert second.writes() == 0
        messages = [event["message"] for event in cluster.registry.list(EVENTS, "kube-system")]
        assert messages == ["first became leader"]


async def test_standby_takes_over_within_seventeen_seconds_of_a_kill() -> None:
    async with replicas(node("a")) as (cluster, first, second):
        await asyncio.sleep(60)
        await first.kill()
        cluster.create(pod("web"))
        await asyncio.sleep(17 + 1.1)  # the barrier waits a second for news

        assert second.leads
        assert cluster.node_of("web") == "a"


async def test_standby_takes_over_within_three_seconds_of_a_stop() -> None:
    async with replicas(node("a")) as (cluster, first, second):
        await asyncio.sleep(60)
        await first.stop()
        assert holder(cluster) == ""
        cluster.create(pod("web"))
        await asyncio.sleep(3.1)

        assert second.leads
        assert cluster.node_of("web") == "a"


async def test_decided_pods_are_bound_before_the_lease_is_released() -> None:
    """No more pods are taken up meanwhile."""
    slow = Fault(delay(3), **BINDING, times=None)
    async with replicas(node("a", "8"), first=[slow]) as (cluster, first, second):
        cluster.create(pod("decided"))
        await asyncio.sleep(1)
        stopping = asyncio.ensure_future(first.stop())
        await asyncio.sleep(1)
        cluster.create(pod("later"))
        assert (cluster.node_of("decided"), holder(cluster)) == ("", "first")
        await stopping

        assert (cluster.node_of("decided"), cluster.node_of("later")) == ("a", "")
        assert holder(cluster) == ""
        await asyncio.sleep(5)
        assert cluster.node_of("later") == "a"
        assert [call.at for call in second.transport.calls if call.subresource == "binding"] > [3.0]


async def test_pending_pods_of_a_stopped_replica_are_left_to_the_next() -> None:
    async with replicas(node("a", "100")) as (cluster, first, second):
        for number in range(30):
            cluster.create(pod(f"p{number}"))
        await first.stop()
        by_first = sum(call.subresource == "binding" for call in first.transport.calls)
        await asyncio.sleep(10)

        assert all(cluster.node_of(f"p{number}") for number in range(30))
        assert sum(call.subresource == "binding" for call in second.transport.calls) == 30 - by_first > 0


async def test_while_a_binding_may_still_happen_the_lease_is_not_given_back() -> None:
    """It ends by itself: later than any request."""
    async with replicas(node("a"), first=[Fault(black_hole(), **BINDING, times=None)]) as (cluster, first, second):
        cluster.create(pod("web"))
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        await first.stop()
        assert asyncio.get_running_loop().time() - began <= 5 + 1 + 0.1
        assert holder(cluster) == "first"
        await asyncio.sleep(20)

        assert second.leads
        assert cluster.node_of("web") == "a"


async def test_leader_that_loses_the_api_server_stops_with_the_reason() -> None:
    async with replicas(node("a")) as (cluster, first, second):
        await asyncio.sleep(60)
        first.transport.go_down()
        cluster.create(pod("web"))
        await asyncio.sleep(11)
        assert first.why_over.startswith(
            "leader election lost: failed to renew lease kube-system/kube-scheduler within 10 s: "
        )
        first.transport.come_up()
        before = first.writes()
        cluster.create(pod("db"))
        await asyncio.sleep(30)

        assert first.writes() == before
        assert second.leads
        assert [cluster.node_of(name) for name in ("web", "db")] == ["a", "a"]


async def test_suspended_replica_writes_nothing_when_it_wakes() -> None:
    """A pod comes while it wakes, and a binding of before is still to be tried again."""
    lost = Fault(black_hole(), **BINDING, times=1)
    async with replicas(node("a"), first=[lost]) as (cluster, first, _):
        await asyncio.sleep(60)
        cluster.create(pod("web"))
        await asyncio.sleep(1)
        first.slept = 30
        before = first.writes()
        cluster.create(pod("db"))
        await asyncio.sleep(3)
        assert first.why_over
        await asyncio.sleep(30)

        assert first.writes() == before
        assert [cluster.node_of(name) for name in ("web", "db")] == ["a", "a"]


async def test_new_leader_knows_of_a_binding_although_its_watch_lags() -> None:
    """There is room for one pod, and it is taken."""
    lag = Fault(watches.skipping(watches.event_of("web", "MODIFIED")), verb="watch", resource="pods")
    async with replicas(node("a", "1"), second=[lag]) as (cluster, first, second):
        cluster.create(pod("web"))
        await asyncio.sleep(2)
        assert cluster.node_of("web") == "a"
        cluster.create(pod("db"))
        await first.stop()
        await asyncio.sleep(5)

        assert second.leads
        assert cluster.node_of("db") == ""
        assert all(call.name != "web" for call in second.transport.calls if call.subresource == "binding")


@pytest.mark.parametrize("seconds", [0.1, 1.5, 3.0, 7.0, 9.9])
async def test_a_binding_whose_answer_was_lost_with_the_leader_is_not_made_again(seconds: float) -> None:
    """Killed after the binding was sent."""
    lost = Fault(commit_then_drop(), **BINDING, times=None)
    async with replicas(node("a"), node("b"), first=[lost]) as (cluster, first, second):
        cluster.create(pod("web"))
        await asyncio.sleep(seconds)
        bound = cluster.node_of("web")
        await first.kill()
        await asyncio.sleep(30)

        assert cluster.node_of("web") == bound != ""
        assert second.leads
        assert not any(call.subresource == "binding" for call in second.transport.calls)


# delayCacheUntilActive: a replica that stands by learns nothing of the cluster, and all of it once it leads.

DELAYED = dataclasses.replace(Configuration(), delay_cache_until_active=True)


def is_ready(replica: Replica) -> bool:
    return replica.following is not None and replica.following.is_ready()


async def test_standby_with_a_delayed_cache_lists_and_watches_nothing() -> None:
    async with replicas(node("a"), configuration=DELAYED) as (cluster, first, second):
        await asyncio.sleep(5)

        assert (first.leads, is_ready(first)) == (True, True)
        assert (second.leads, is_ready(second)) == (False, False)
        assert second.transport.count("list") + second.transport.count("watch") == 0

        cluster.create(pod("web"))
        await asyncio.sleep(5)
        assert cluster.node_of("web") == "a"


async def test_new_leader_with_a_delayed_cache_knows_the_cluster_before_it_decides() -> None:
    async with replicas(node("a", "2"), configuration=DELAYED) as (cluster, first, second):
        cluster.create(pod("web", "1500m"))
        await asyncio.sleep(5)

        await first.kill()
        cluster.create(pod("late", "1500m"))
        await asyncio.sleep(60)

        assert (second.leads, is_ready(second)) == (True, True)
        late = cluster.pod("late")
        assert "nodeName" not in late["spec"], "there is no room beside the first"
        assert late["status"]["conditions"][0]["reason"] == "Unschedulable"


async def test_standby_without_a_delayed_cache_is_ready_to_take_over() -> None:
    async with replicas(node("a")) as (_, first, second):
        await asyncio.sleep(5)

        assert (is_ready(first), is_ready(second), second.leads) == (True, True, False)

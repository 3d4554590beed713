"""Walk (c): a pod that fits nowhere makes room, from the refusal to its binding, by a scheduler that decides alone."""

import asyncio

from extender.rules.api_resources import PODS
from tests.kit.objects import node, pod, priority_class
from tests.kit.scene.followed import a_cluster

HIGH = priority_class("high", 1000)


async def test_the_victim_leaves_and_the_pod_takes_its_place() -> None:
    async with a_cluster(node("n"), HIGH) as cluster:
        cluster.create(pod("low", cpu="1500m"))
        await asyncio.sleep(5)
        cluster.create(pod("high", cpu="1500m", priorityClassName="high"))
        await asyncio.sleep(10)

        assert [pod["metadata"]["name"] for pod in cluster.registry.list(PODS, "default")] == ["high"]
        high = cluster.pod("high")
        assert high["spec"]["nodeName"] == "n"
        assert "nominatedNodeName" not in high["status"]
        assert cluster.events("low")[-1] == ("Preempted", f"Preempted by pod {high['metadata']['uid']} on node n")
        assert cluster.events("high") == [
            ("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu."),
            ("Scheduled", "Successfully assigned default/high to n"),
        ]


async def test_nomination_is_written_before_the_victim_is_evicted() -> None:
    """Whatever happens in between: nobody goes for nothing."""
    async with a_cluster(node("n"), HIGH) as cluster:
        low = cluster.create(pod("low", cpu="1500m", terminationGracePeriodSeconds=60))
        await asyncio.sleep(5)
        watched = cluster.registry.store.follow([PODS], cluster.registry.store.resource_version)
        cluster.create(pod("high", cpu="1500m", priorityClassName="high"))
        await asyncio.sleep(10)

        versions = [change.new.decoded() for change in watched.take()]
        promised = [obj.get("status", {}).get("nominatedNodeName") for obj in versions].index("n")
        evicted = next(index for index, obj in enumerate(versions) if obj["metadata"].get("deletionTimestamp"))
        assert versions[evicted]["metadata"]["uid"] == low["metadata"]["uid"]
        assert promised < evicted
        conditions = {condition["type"]: condition for condition in versions[evicted]["status"]["conditions"]}
        assert conditions["DisruptionTarget"]["reason"] == "PreemptionByScheduler"


async def test_nomination_ends_when_the_pod_finds_room_elsewhere() -> None:
    async with a_cluster(node("n"), HIGH) as cluster:
        cluster.create({**pod("low", cpu="1500m"), "metadata": {"name": "low", "finalizers": ["example.com/stay"]}})
        await asyncio.sleep(5)
        cluster.create(pod("high", cpu="1500m", priorityClassName="high"))
        await asyncio.sleep(10)
        assert cluster.pod("high")["status"]["nominatedNodeName"] == "n"

        cluster.create(node("other"))
        await asyncio.sleep(15)

        high = cluster.pod("high")
        assert high["spec"]["nodeName"] == "other"
        assert "nominatedNodeName" not in high["status"]

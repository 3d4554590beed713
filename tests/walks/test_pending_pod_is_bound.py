"""Walk (b): a pending pod gets bound, from the API server and back, by a scheduler that decides alone.

Everything is real but time: the embedded API, the client, the informers, the queue, the cycles, the dispatcher.
"""

import asyncio

from extender.rules.api_resources import PODS
from tests.kit.objects import node, pod
from tests.kit.scene.followed import a_cluster


async def test_a_pod_is_bound_to_the_node_that_has_room() -> None:
    async with a_cluster(node("small", "500m"), node("big")) as cluster:
        cluster.create(pod("web"))
        await asyncio.sleep(5)

        web = cluster.pod("web")
        assert (web["spec"]["nodeName"], web["status"]["phase"]) == ("big", "Running")
        assert cluster.events("web") == [("Scheduled", "Successfully assigned default/web to big")]


async def test_pod_that_fits_nowhere_has_condition_and_event_and_waits_for_a_node() -> None:
    async with a_cluster(node("small", "500m")) as cluster:
        cluster.create(pod("web"))
        await asyncio.sleep(5)

        (condition,) = cluster.pod("web")["status"]["conditions"]
        state = (condition["type"], condition["status"], condition["reason"])
        assert state == ("PodScheduled", "False", "Unschedulable")
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert cluster.events("web") == [("FailedScheduling", condition["message"])]

        cluster.create(node("big"))
        await asyncio.sleep(5)

        assert cluster.pod("web")["spec"]["nodeName"] == "big"


async def test_every_pod_of_a_crowd_is_bound_once_and_no_node_gets_too_many() -> None:
    async with a_cluster(*(node(f"n{number}") for number in range(10))) as cluster:
        for number in range(30):
            cluster.create(pod(f"web-{number}"))
        await asyncio.sleep(30)

        nodes = [pod["spec"].get("nodeName") for pod in cluster.registry.list(PODS, "default")]
        assert sorted(name for name in nodes if name) == sorted([f"n{number}" for number in range(10)] * 2)

"""The debugger writes down what is believed, in upstream's words, and where it is not what the API server says."""

import asyncio

import pytest

from extender.assembly.debugger import CacheDebugger
from extender.engine.cache.cluster import Cluster
from extender.testing.builders import make_node, make_pod
from tests.kit.objects import node, pod, priority_class
from tests.kit.scene.followed import a_followed_cluster


def lines_after(text: str, begin: str) -> list[str]:
    """The lines of a dump, without the tabs that they begin with."""
    [dump] = [record for record in text.split('"Dump of ') if record.startswith(begin)]
    return [line.removeprefix("\t") for line in dump.splitlines() if line.startswith("\t")]


async def test_nodes_and_pods_are_written_down(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "extender")

    async with a_followed_cluster(node("a")) as (cluster, backend):
        for created in (pod("web"), pod("big", "7"), pod("gated", schedulingGates=[{"name": "wait"}])):
            cluster.create(created)
        await asyncio.sleep(5)
        uids = {name: cluster.pod(name)["metadata"]["uid"] for name in ("web", "big", "gated")}
        backend.debug()

    assert lines_after(caplog.text, "cached NodeInfo") == [
        "Node name: a",
        "Deleted: false",
        "Requested Resources: &{MilliCPU:1000 Memory:0 EphemeralStorage:0 AllowedPodNumber:0 ScalarResources:map[]}",
        "Allocatable Resources: &{MilliCPU:2000 Memory:68719476736 EphemeralStorage:0 AllowedPodNumber:110 "
        "ScalarResources:map[]}",
        "Scheduled Pods(number: 1):",
        f"name: web, namespace: default, uid: {uids['web']}, phase: Running, nominated node: ",
    ]
    assert sorted(lines_after(caplog.text, "scheduling queue")) == [
        f"name: {name}, namespace: default, uid: {uids[name]}, phase: Pending, nominated node: "
        for name in ("big", "gated")
    ]
    assert '"Dump of scheduling queue" summary="activeQ:0; backoffQ:0; unschedulablePods:2" pods=<' in caplog.text
    assert "Cache mismatch" not in caplog.text


async def test_objects_that_only_one_side_knows_are_logged_as_a_cache_mismatch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "extender")
    uids: list[str] = []
    async with a_followed_cluster(node("a")) as (cluster, backend):
        cluster.create(pod("web"))
        cluster.create(pod("theirs", schedulerName="other"))
        await asyncio.sleep(5)
        uids.append(cluster.pod("web")["metadata"]["uid"])
        mistaken = Cluster()
        mistaken.set_node(make_node("ghost").obj())
        mistaken.cache.add_pod(make_pod("gone").node("ghost").obj())

        assert backend.informers is not None
        CacheDebugger(backend.informers, mistaken, None, ["default-scheduler"]).compare()

    assert '"Cache mismatch" missedNodes=["a"] redundantNodes=["ghost"]' in caplog.messages
    [pods] = [message for message in caplog.messages if "missedPods" in message]
    assert pods.startswith(f'"Cache mismatch" missedPods=["{uids[0]}"] redundantPods=["')


async def test_nominated_pods_are_shown_with_their_node(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "extender")
    high = priority_class("high", 1000)
    slow = pod("low", "2")
    slow["metadata"]["finalizers"] = ["example.com/wait"]
    async with a_followed_cluster(high, node("a")) as (cluster, backend):
        cluster.create(slow)
        await asyncio.sleep(2)
        cluster.create(pod("high", "2", priorityClassName="high"))
        await asyncio.sleep(2)

        backend.debug()

    lines = lines_after(caplog.text, "cached NodeInfo")
    assert lines[lines.index("Nominated Pods(number: 1):") + 1].startswith("name: high, ")

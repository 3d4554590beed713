"""The map shows the devices of each class on each node, and how many of them claims hold."""

import pytest

from extender.answers.cluster_map import CLASS_PREFIX, ClusterMaps, DeviceRoom, node_on_map
from extender.answers.overviews import ResourceOnNode
from extender.engine.cache.cluster import Cluster
from extender.testing import make_node
from tests.kit.devices import allocation_of, make_claim, make_device, make_device_class, make_slice

LARGE = 'device.attributes["gpu.example.com"].memory >= 80'


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    large, small = make_device("gpu-0", {"memory": 80}), make_device("gpu-1", {"memory": 40})
    for obj in (
        make_node("n").obj(),
        make_node("other").obj(),
        make_device_class("any", "true"),
        make_device_class("large", LARGE),
        make_slice(large, small),
        make_slice("everywhere", name="shared", pool="shared", allNodes=True),
        make_claim("held", allocation=allocation_of("gpu-0")),
    ):
        cluster.changed(None, obj)
    return cluster


def on_class(name: str, allocatable: int, requested: int) -> ResourceOnNode:
    return ResourceOnNode(name=f"{CLASS_PREFIX}{name}", allocatable=allocatable, requested=requested)


def test_devices_are_counted_by_class_and_node(cluster: Cluster) -> None:
    room = DeviceRoom(cluster).now()

    assert room == {"n": (on_class("any", 2, 1), on_class("large", 1, 1))}
    resources = {node.name: node.resources for node in ClusterMaps(cluster).now(room).nodes}
    assert resources == {"n": room["n"], "other": ()}
    one = node_on_map(cluster, "n", room)
    assert one is not None
    assert one.resources == room["n"]


def test_counted_room_is_reused_until_a_claim_changes(cluster: Cluster) -> None:
    room, maps = DeviceRoom(cluster), ClusterMaps(cluster)
    first = room.now()
    assert room.now() is first
    assert maps.now(first) is maps.now(first)

    cluster.changed(None, make_claim("more", allocation=allocation_of("gpu-1")))

    second = room.now()
    assert second["n"][0] == on_class("any", 2, 2)
    assert maps.now(second).nodes[0].resources == second["n"]


def test_without_classes_there_is_nothing_to_count() -> None:
    cluster = Cluster()
    cluster.changed(None, make_slice("gpu-0"))

    assert DeviceRoom(cluster).now() == {}

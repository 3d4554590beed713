"""The cache, replayed against the real one: after every operation the same nodes, pods, sums and errors."""

from typing import Any

import pytest

from extender.engine.cache import Cache, CacheError
from extender.engine.cache.dump import NodeDump
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from tests.kit.many_cases import each_case
from tests.kit.snapshot_dump import dump_snapshot
from tests.parity.cases import component_cases


@each_case(lambda: component_cases("cache"))
def test_cache_holds_what_upstreams_cache_holds(case: dict[str, Any]) -> None:
    """The same operations leave the same cache, and snapshots in between show the same nodes."""
    cache = Cache()

    for place, (operation, expected) in enumerate(zip(case["input"]["ops"], case["expect"], strict=True)):
        answer = perform(cache, operation)

        where = f"operation {place}, {operation['op']}"
        assert answer["error"] == expected["error"], where
        assert sorted(cache.assumed_pods) == expected["assumedPods"], where
        assert len(cache.pods) == expected["podCount"], where
        assert {name: as_recorded(node) for name, node in cache.dump().items()} == {
            name: without_zeros(node) for name, node in expected["cacheNodes"].items()
        }, where
        if "snapshot" in expected and expected["error"] is None:
            # A node that was added twice, in different zones, is twice in upstream's list, and stays there when it is
            # removed once. Ours is in the snapshot once, and while it exists.
            alive = {name: node for name, node in expected["cacheNodes"].items() if node["hasNode"]}
            assert answer["snapshot"]["order"] == [
                name for name in dict.fromkeys(expected["snapshot"]["order"]) if name in alive
            ], where
            assert answer["snapshot"]["nodes"] == {
                name: without_zeros(node) for name, node in expected["snapshot"]["nodes"].items() if name in alive
            }, where


def perform(cache: Cache, operation: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"error": None}
    try:
        match operation["op"]:
            case "addNode":
                cache.add_node(convert(Node, operation["node"]))
            case "updateNode":
                cache.update_node(convert(Node, operation["old"]), convert(Node, operation["new"]))
            case "removeNode":
                cache.remove_node(convert(Node, operation["node"]))
            case "updatePod":
                cache.update_pod(convert(Pod, operation["old"]), convert(Pod, operation["new"]))
            case "updateSnapshot":
                nodes = dump_snapshot(cache.update_snapshot())
                answer["snapshot"] = {
                    "order": list(nodes),
                    "nodes": {name: as_recorded(node) for name, node in nodes.items()},
                }
            case "assumePod":
                cache.assume_pod(convert(Pod, operation["pod"]))
            case "addPod":
                cache.add_pod(convert(Pod, operation["pod"]))
            case "removePod":
                cache.remove_pod(convert(Pod, operation["pod"]))
            case "forgetPod":
                cache.forget_pod(convert(Pod, operation["pod"]))
            case other:
                pytest.fail(f"unknown operation {other}")
    except CacheError as exc:
        answer["error"] = str(exc)
    return answer


def as_recorded(node: NodeDump) -> dict[str, Any]:
    """A node in the form of the corpus."""
    result: dict[str, Any] = {
        "hasNode": node.has_node,
        "requested": node.requested,
        "nonZero": {"milliCPU": node.non_zero_requested[0], "memory": node.non_zero_requested[1]},
        "pods": list(node.pods),
        "podsWithAffinity": sorted(node.pods_with_affinity),
        "podsWithRequiredAntiAffinity": sorted(node.pods_with_required_anti_affinity),
        "usedPorts": sorted(f"{address}/{protocol}/{port}" for address, protocol, port in node.used_ports),
        "imageStates": {name: {"size": size, "numNodes": number} for name, (size, number) in node.images.items()},
        "pvcRefCounts": node.pvc_ref_counts,
    }
    if node.has_node:
        result["allocatable"] = node.allocatable | ({"pods": node.allowed_pods} if node.allowed_pods else {})
    return result


def without_zeros(node: dict[str, Any]) -> dict[str, Any]:
    """The recorded node with amounts by resource name. Upstream keeps names whose sum went back to 0; a column of zeros
    says the same.
    """
    result = {"hasNode": True} | node
    for name in ("requested", "allocatable"):
        if name in node:
            amounts = dict(node[name])
            scalar = amounts.pop("scalar", {})
            base_amounts = {
                "cpu": amounts.pop("milliCPU"),
                "memory": amounts.pop("memory"),
                "ephemeral-storage": amounts.pop("ephemeralStorage"),
            }
            result[name] = {key: amount for key, amount in (base_amounts | amounts | scalar).items() if amount}
    result["podsWithAffinity"] = sorted(node["podsWithAffinity"])
    result["podsWithRequiredAntiAffinity"] = sorted(node["podsWithRequiredAntiAffinity"])
    result["usedPorts"] = sorted(node["usedPorts"])
    return result

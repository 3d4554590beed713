"""Services as people start them, each for as long as some tests look at it."""

import json
import random
from pathlib import Path
from typing import Any

from tests.kit import objects

ROOT = Path(__file__).parents[2]
ZONE = "topology.kubernetes.io/zone"
MANY = 5000


def many_nodes(path: Path, pods_each: int = 1, waiting_pods: int = 0) -> Path:
    """A file with thousands of nodes in five zones, each with pods that add up to a size of its own, and a pod that is
    too large for all.

    The nodes of one zone are tainted, and some elsewhere are cordoned. The pods that wait lack GPUs or cpu.
    """
    chance = random.Random(5)
    items: list[dict[str, Any]] = []
    for number in range(MANY):
        name = f"node-{number:04}"
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        labels = {ZONE: f"zone-{number * 5 // MANY}", "kubernetes.io/hostname": name}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        spec: dict[str, Any] = {"unschedulable": True} if number % 40 == 7 else {}
        if labels[ZONE] == "zone-3":
            spec["taints"] = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
        meta = {"name": name, "labels": labels}
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status})
        share = min(1.0, max(0.02, chance.gauss(0.72, 0.2)))
        requests = {"cpu": f"{int(16000 * share / pods_each)}m", "memory": f"{int(64 * share / pods_each)}Gi"}
        for place in range(pods_each):
            pod_name = f"pod-{number}" if pods_each == 1 else f"pod-{number}-{place}"
            items.append(pod(pod_name, requests, priority=chance.choice([0, 10, 100, 1000]), node=name))
    for number in range(waiting_pods):
        lacks, kind = ("nvidia.com/gpu", "Job") if number % 5 else ("cpu", "StatefulSet")
        waiting_pod = owned(pod(f"waits-{number}", {"cpu": "1"}, priority=100), kind, f"owner-{number % 7}")
        items.append(waiting(waiting_pod, f"0/{MANY} nodes are available: {MANY - number} Insufficient {lacks}."))
    items.append(pod("too-large", {"cpu": "20"}, priority=100))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


POOL = "example.com/pool"
SHORT_OF_GPUS = (
    "0/8 nodes are available: 2 Insufficient nvidia.com/gpu, 6 node(s) had untolerated taint(s). preemption: none "
    "helps."
)
SHORT_OF_CPU = (
    "0/8 nodes are available: 5 Insufficient cpu, 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s)."
)


def busy_cluster(path: Path) -> Path:
    """A file with 8 nodes in three zones and two pools, two with GPUs. 4 pods of a Deployment wait for cpu, 12 of two
    Jobs for GPUs.
    """
    items: list[dict[str, Any]] = []
    for number in range(8):
        has_gpus = number >= 6
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", **({"nvidia.com/gpu": "4"} if has_gpus else {})}
        labels = {
            ZONE: f"zone-{'abc'[number % 3]}",
            POOL: "gpu" if has_gpus else "general",
            "disk": "ssd" if number % 2 else "hdd",
        }
        spec: dict[str, Any] = {"unschedulable": True} if number == 5 else {}
        if has_gpus:
            spec["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
        conditions = [
            {"type": "Ready", "status": "True"},
            {"type": "DiskPressure", "status": "True" if number == 2 else "False"},
        ]
        status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions}
        meta = {"name": f"node-{number}", "labels": labels}
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status})
    for number in range(6):
        web_pod = owned(
            pod(f"web-5d9-{number}", {"cpu": f"{2 * number + 2}"}, priority=1000, node=f"node-{number}"),
            "ReplicaSet",
            "web-5d9",
        )
        items.append(web_pod)
    items.append(owned(pod("trains", {"cpu": "1", "nvidia.com/gpu": "3"}, node="node-6"), "Job", "train-0"))
    devices = {
        "driver": "nic.example.com",
        "pool": {"name": "node-7", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node-7",
    }
    spec = {**devices, "devices": [{"name": f"nic-{number}"} for number in range(2)]}
    items.append(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "node-7-nics"}, "spec": spec}
    )
    items.append(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "fast-nic"}, "spec": {}}
    )
    more = (pod(f"web-5d9-more-{number}", {"cpu": "30"}, priority=1000) for number in range(4))
    items += [waiting(owned(extra, "ReplicaSet", "web-5d9"), SHORT_OF_CPU) for extra in more]
    for number in range(12):
        train = pod(f"train-{number}", {"cpu": "1", "nvidia.com/gpu": "4"}, priority=10)
        items.append(waiting(owned(train, "Job", f"train-{number % 2}"), SHORT_OF_GPUS))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def owned(obj: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """The pod, as this controller makes it."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": group, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    ]
    if kind == "ReplicaSet":
        obj["metadata"]["labels"] = {"pod-template-hash": name.rpartition("-")[2]}
    return obj


def waiting(obj: dict[str, Any], message: str) -> dict[str, Any]:
    """The pod, as its scheduler has left it."""
    obj["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    ]
    return obj


def pod(name: str, requests: dict[str, str], *, priority: int | str = 0, node: str = "") -> dict[str, Any]:
    """A pod as a manifest; its priority as a number, or as the name of a class."""
    obj = objects.pod(name, container={"resources": {"requests": requests, "limits": requests}})
    obj["metadata"]["namespace"] = "default"
    obj["spec"] |= {"priorityClassName" if isinstance(priority, str) else "priority": priority}
    obj["spec"] |= {"nodeName": node} if node else {}
    return obj | {"status": {"phase": "Running" if node else "Pending"}}

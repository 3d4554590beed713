"""Requests as kube-scheduler sends them: objects as Go writes them, nulls included."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

MANY_NODES: Final = 1500
"""Of a cluster that is not small any more: some 4 MB when they are sent in full."""

BEYOND_DOUBLES: Final = 2**53 + 1
"""A whole number that a 64-bit float cannot hold: a reader that takes numbers for floats gives another one back."""

UNKNOWN_POD: Final = "00000000-0000-4000-8000-00000000d0c7"


def pod(name: str = "doctor-asks", *, priority: int = 0, uid: str = UNKNOWN_POD) -> dict[str, Any]:
    """Returns a small pending pod."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "resourceVersion": "249",
            "generation": 1,
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "doctor"},
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/doctor:1",
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": None,
            "priority": priority,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def running(name: str, node: str) -> dict[str, Any]:
    """Returns a pod of low priority that runs on a node."""
    number = int.from_bytes(name.encode()[-5:], "big") % 10**12
    victim = pod(name, priority=-10, uid=f"00000000-0000-4000-8000-{number:012d}")
    victim["spec"]["nodeName"] = node
    victim["status"] = {"phase": "Running", "startTime": "2026-01-02T03:05:00Z"}
    return victim


def assumed(name: str, node: str) -> dict[str, Any]:
    """Returns such a pod before it is bound: kube-scheduler alone knows its node."""
    victim = running(name, node)
    victim["status"] = {"phase": "Pending"}
    return victim


def node(name: str, *, padding: bool = False) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "resourceVersion": "228",
            "generation": BEYOND_DOUBLES,
            "creationTimestamp": None,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {"example.com/padding": "x" * 2000} if padding else None,
        },
        "spec": {"taints": None},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "7800m", "memory": "30Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": None,
        },
    }


def asked(names: Sequence[str], *, in_full: bool, padding: bool = False) -> bytes:
    """Returns ExtenderArgs, with names alone for an extender that is nodeCacheCapable."""
    nodes = {"metadata": {}, "items": [node(name, padding=padding) for name in names]} if in_full else None
    return encoded({"Pod": pod(), "Nodes": nodes, "NodeNames": None if in_full else [*names]})


def asked_without_nodes() -> bytes:
    return encoded({"Pod": pod(), "Nodes": None, "NodeNames": None})


def candidates(victims: dict[str, list[dict[str, Any]] | None], *, by_uid: bool) -> bytes:
    """Returns ExtenderPreemptionArgs, with UIDs of victims alone for an extender that is nodeCacheCapable."""
    by_node = {
        name: {
            "Pods": [{"UID": victim["metadata"]["uid"]} for victim in pods] if by_uid and pods is not None else pods,
            "NumPDBViolations": 0,
        }
        for name, pods in victims.items()
    }
    in_full, in_uids = (None, by_node) if by_uid else (by_node, None)
    return encoded({"Pod": pod(priority=1000), "NodeNameToVictims": in_full, "NodeNameToMetaVictims": in_uids})


def encoded(body: object) -> bytes:
    return orjson.dumps(body)

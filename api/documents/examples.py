"""Example requests, which a service with the example cluster answers as they are."""

from typing import Any, Final

POD: Final[dict[str, Any]] = {
    "metadata": {
        "name": "checkout-1",
        "namespace": "shop",
        "uid": "0f8a3c52-6f0b-4d0c-9c0e-52a1a3c1b001",
        "labels": {"app": "checkout"},
    },
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 1000,
        "preemptionPolicy": "PreemptLowerPriority",
        "containers": [
            {
                "name": "main",
                "image": "registry.example/web:1.4",
                "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
            },
        ],
    },
}

NODE: Final[dict[str, Any]] = {
    "metadata": {
        "name": "node-a2",
        "labels": {"kubernetes.io/hostname": "node-a2", "topology.kubernetes.io/zone": "zone-a"},
    },
    "spec": {},
    "status": {"allocatable": {"cpu": "7800m", "memory": "30Gi", "pods": "110"}},
}

BY_NAME: Final[dict[str, Any]] = {"Pod": POD, "Nodes": None, "NodeNames": ["node-a1", "node-a2", "node-b3", "node-c4"]}

IN_FULL: Final[dict[str, Any]] = {"Pod": POD, "Nodes": {"metadata": {}, "items": [NODE]}, "NodeNames": None}

SCORES: Final[list[dict[str, Any]]] = [{"Host": "node-a1", "Score": 9}, {"Host": "node-a2", "Score": 10}]

VICTIMS_BY_UID: Final[dict[str, Any]] = {
    "Pod": POD,
    "NodeNameToVictims": None,
    "NodeNameToMetaVictims": {
        "node-a2": {
            "Pods": [{"UID": "c22bf241-52ce-5e38-8be2-9ddf8139c3a9"}, {"UID": "c730c63a-54b8-568e-9fa9-ca5aa9d01f14"}],
            "NumPDBViolations": 0,
        },
    },
}

BINDING: Final[dict[str, Any]] = {
    "PodName": "checkout-1",
    "PodNamespace": "shop",
    "PodUID": "0f8a3c52-6f0b-4d0c-9c0e-52a1a3c1b001",
    "Node": "node-a2",
}

SCENARIO: Final[dict[str, Any]] = {
    "id": "one pod, two nodes",
    "objects": {
        "nodes": [
            NODE,
            {"metadata": {"name": "node-a9"}, "status": {"allocatable": {"cpu": "1", "memory": "2Gi", "pods": "110"}}},
        ],
    },
    "pod": POD,
}

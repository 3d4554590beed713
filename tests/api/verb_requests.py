"""Calls of filter and prioritize, and how to spoil them."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from api.documents.documentation import POD


def asking(pod: object = POD, **fields: object) -> dict[str, object]:
    return {"Pod": pod, "Nodes": None, "NodeNames": ["node-a1"], **fields}


def with_node(**fields: object) -> dict[str, object]:
    node = {
        "metadata": {"name": "fresh-node"},
        "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}},
        **fields,
    }
    return {"Pod": POD, "Nodes": {"items": [node]}, "NodeNames": None}


def pod_with(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    pod = deepcopy(POD)
    change(pod)
    return pod


def pod_with_requests(**requests: str) -> dict[str, Any]:
    return pod_with(lambda pod: pod["spec"]["containers"][0]["resources"].update(requests=requests))

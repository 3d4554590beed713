"""Objects of a cluster as people write them, in a line each."""

from collections.abc import Mapping
from itertools import starmap
from typing import Any, Final

import httpx

from extender.rules.api_resources import Object, Resource, of_kind


def priority_class(name: str, value: int, **more: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


PRIORITIES: Final = tuple(starmap(priority_class, {"low": 10, "middle": 50, "high": 100, "higher": 200}.items()))
LOW, MIDDLE, HIGH, HIGHER = PRIORITIES

GROUP_GATES: Final = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
}
ONLY_GANGS: Final = {"GenericWorkload": True, "GangScheduling": True}


def node(
    name: str,
    cpu: str = "2",
    *,
    memory: str = "64Gi",
    labels: Mapping[str, str] | None = None,
    pods: str = "110",
    **spec: Any,
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
    }


def pod(
    name: str,
    cpu: str = "1",
    priority: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    stays: bool = False,
    **spec: Any,
) -> Object:
    """A pod with one container.

    Arguments:
        priority: name of its class.
        stays: a finalizer keeps it from going when it is told to.
    """
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}, **spec.pop("container", {})}
    metadata: Object = {"name": name, "labels": dict(labels or {})}
    if stays:
        metadata["finalizers"] = ["example.com/stays"]
    classes = {"priorityClassName": priority} if priority else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **classes, **spec},
    }


def pod_group(
    name: str = "g",
    min_count: int | None = None,
    priority: str = "",
    *,
    topology_key: str = "",
    as_a_whole: bool = False,
) -> Object:
    spec: Object = {"schedulingPolicy": {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}}
    if priority:
        spec["priorityClassName"] = priority
    if topology_key:
        spec["schedulingConstraints"] = {"topology": [{"key": topology_key}]}
    if as_a_whole:
        spec["disruptionMode"] = "PodGroup"
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def budget(name: str, selector: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": selector, **spec},
    }


def members(
    number: int, of: str = "g", cpu: str = "1", priority: str = "", first: int = 0, **spec: Any
) -> list[Object]:
    """Pods of a group, named after it."""
    in_group = {"schedulingGroup": {"podGroupName": of}, **spec}
    return [pod(f"{of}{place}", cpu, priority, **in_group) for place in range(first, first + number)]


def workload(kind: str, name: str, pod: Object, **spec: Any) -> Object:
    """One whose pods are like this one."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def resource_of(obj: Object) -> Resource:
    found = of_kind(obj["apiVersion"], obj["kind"])
    assert found is not None, f"{obj['kind']} is not served"
    return found


def refusal(code: int, reason: str, message: str) -> httpx.Response:
    """An API server's refusal."""
    status = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return httpx.Response(code, json=status)


def is_binding(request: httpx.Request) -> bool:
    return request.url.path.endswith("/binding")


def is_deletion(request: httpx.Request) -> bool:
    return request.method == "DELETE"

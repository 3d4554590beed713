"""Objects of a cluster as people write them, in a line each."""

import json
from collections.abc import Mapping
from itertools import starmap
from pathlib import Path
from typing import Any, Final

import httpx

from extender.rules.api_resources import Object, Resource, of_kind


def obj(kind: str, api_version: str = "v1", name: str = "x", **members: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **members}


def state_file(file: Path, *objects: Object) -> Path:
    """The file, with a List of the objects in it."""
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return file


def owner(kind: str = "ReplicaSet", name: str = "rs", api_version: str = "apps/v1", *, uid: str = "") -> Object:
    """A reference to the controller that made an object; its UID is its name."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid or name, "controller": True}


def priority_class(name: str, value: int, **more: Any) -> Object:
    return obj("PriorityClass", "scheduling.k8s.io/v1", name, value=value, **more)


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
    status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}}
    node_object = obj("Node", name=name, spec=spec, status=status)
    node_object["metadata"]["labels"] = {"kubernetes.io/hostname": name, **(labels or {})}
    return node_object


def pod(
    name: str,
    cpu: int | str = "1",
    priority: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    on: str = "",
    stays: bool = False,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A pod with one container.

    Arguments:
        priority: name of its class.
        on: the name of its node.
        stays: a finalizer keeps it from going when it is told to.
        metadata: beside its name and labels.
    """
    resources = {"requests": {"cpu": str(cpu)}}
    container = {"name": "main", "image": "web:1", "resources": resources, **spec.pop("container", {})}
    finalizers = {"finalizers": ["example.com/stays"]} if stays else {}
    classes = ({"priorityClassName": priority} if priority else {}) | ({"nodeName": on} if on else {})
    pod_object = obj("Pod", name=name, spec={"containers": [container], **classes, **spec})
    pod_object["metadata"] |= {"labels": dict(labels or {}), **finalizers, **(metadata or {})}
    return pod_object


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
    return obj("PodGroup", "scheduling.k8s.io/v1alpha2", name, spec=spec)


def budget(name: str, selector: Object, **spec: Any) -> Object:
    return obj("PodDisruptionBudget", "policy/v1", name, spec={"selector": selector, **spec})


def members(
    number: int, of: str = "g", cpu: str = "1", priority: str = "", first: int = 0, **spec: Any
) -> list[Object]:
    """Pods of a group, named after it."""
    in_group = {"schedulingGroup": {"podGroupName": of}, **spec}
    return [pod(f"{of}{place}", cpu, priority, **in_group) for place in range(first, first + number)]


def workload(kind: str, name: str, pod: Object, **spec: Any) -> Object:
    """One whose pods are like this one, with the label `app`. A Job gets its selector from the API server."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    if kind == "Job":
        return obj(kind, "batch/v1", name, spec={"template": template, **spec})
    return obj(kind, "apps/v1", name, spec={"selector": {"matchLabels": labels}, "template": template, **spec})


def resource_of(obj: Object) -> Resource:
    resource = of_kind(obj["apiVersion"], obj["kind"])
    assert resource is not None, f"{obj['kind']} is not served"
    return resource


def refusal(code: int, reason: str, message: str) -> httpx.Response:
    """An API server's refusal."""
    status = {"status": "Failure", "code": code, "reason": reason, "message": message}
    return httpx.Response(code, json={"apiVersion": "v1", "kind": "Status", **status})


def is_binding(request: httpx.Request) -> bool:
    return request.url.path.endswith("/binding")


def is_deletion(request: httpx.Request) -> bool:
    return request.method == "DELETE"

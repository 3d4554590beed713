"""What a kubelet would say of the pods on its node: that they run, or that they have done their work.

Upstream: pkg/kubelet/kubelet_pods.go, generateAPIPodStatus; pkg/kubelet/status/generate.go (v1.36.2).
"""

from datetime import datetime
from ipaddress import IPv4Address
from typing import Any, Final
from zlib import crc32

from extender.embedded.controllers.conditions import timestamp, with_condition
from extender.embedded.resources import Object

_POD_NETWORK: Final = int(IPv4Address("10.64.0.0"))
_POD_ADDRESSES: Final = 1 << 22
_NODE_NETWORK: Final = int(IPv4Address("172.16.0.0"))
_NODE_ADDRESSES: Final = 1 << 20
_TRUE_WHEN_RUNNING: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_COMPLETED: Final = "PodCompleted"


def made_up_node_address(name: str) -> str:
    """An address for a node that names none: always the same for the same name."""
    return str(IPv4Address(_NODE_NETWORK + crc32(name.encode()) % _NODE_ADDRESSES))


def node_address(node: Object) -> str:
    """The node's InternalIP, or a made-up one."""
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") == "InternalIP" and address.get("address"):
            return str(address["address"])
    return made_up_node_address(node["metadata"]["name"])


def running(pod: Object, host_ip: str, now: datetime) -> Object:
    """The status of a bound pod once all of its containers run and are ready."""
    spec, status = pod["spec"], dict(pod.get("status") or {})
    at = timestamp(now)
    pod_ip = host_ip if spec.get("hostNetwork") else _pod_address(pod["metadata"]["uid"])
    status |= {
        "phase": "Running",
        "startTime": status.get("startTime") or at,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "containerStatuses": [_container_running(each, pod, at) for each in spec.get("containers") or ()],
    }
    inits = [_init_container(each, pod, at) for each in spec.get("initContainers") or ()]
    if inits:
        status["initContainerStatuses"] = inits
    conditions = status.get("conditions") or []
    for kind in _TRUE_WHEN_RUNNING:
        conditions = with_condition(conditions, {"type": kind, "status": "True"} | _generation(pod), now)
    status["conditions"] = _scheduled(conditions, pod, now)
    return status | _generation(pod)


def succeeded(pod: Object, now: datetime) -> Object:
    """The status of a running pod of which every container has exited with 0."""
    status = dict(pod.get("status") or {})
    at = timestamp(now)
    status["phase"] = "Succeeded"
    status["containerStatuses"] = [_exited(each, at) for each in status.get("containerStatuses") or ()]
    conditions = status.get("conditions") or []
    for kind, is_true in (("PodReadyToStartContainers", False), ("Initialized", True), ("Ready", False), ("ContainersReady", False)):
        wanted: Object = {"type": kind, "status": "True" if is_true else "False"} | _generation(pod)
        if kind != "PodReadyToStartContainers":
            wanted["reason"] = _COMPLETED
        conditions = with_condition(conditions, wanted, now)
    status["conditions"] = conditions
    return status | _generation(pod)


def _scheduled(conditions: list[Object], pod: Object, now: datetime) -> list[Object]:
    # Binding has said so already, but for pods that were created with a node name.
    return with_condition(conditions, {"type": "PodScheduled", "status": "True"} | _generation(pod), now)


def _generation(pod: Object) -> Object:
    generation = pod["metadata"].get("generation")
    return {"observedGeneration": generation} if generation else {}


def _pod_address(uid: str) -> str:
    return str(IPv4Address(_POD_NETWORK + crc32(uid.encode()) % _POD_ADDRESSES))


def _container(spec: Object, pod: Object) -> Object:
    image = spec.get("image", "")
    return {
        "name": spec["name"],
        "image": image,
        "imageID": f"embedded://{image}",
        "containerID": f"embedded://{pod['metadata']['uid']}/{spec['name']}",
        "restartCount": 0,
        "lastState": {},
    }


def _container_running(spec: Object, pod: Object, at: str) -> Object:
    return _container(spec, pod) | {"ready": True, "started": True, "state": {"running": {"startedAt": at}}}


def _init_container(spec: Object, pod: Object, at: str) -> Object:
    if spec.get("restartPolicy") == "Always":
        return _container_running(spec, pod, at)
    status = _container(spec, pod)
    exited: dict[str, Any] = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at, "containerID": status["containerID"]}
    return status | {"ready": True, "started": False, "state": {"terminated": exited}}


def _exited(status: Object, at: str) -> Object:
    started = ((status.get("state") or {}).get("running") or {}).get("startedAt", at)
    exited = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": at, "containerID": status.get("containerID", "")}
    return status | {"ready": False, "started": False, "state": {"terminated": exited}}

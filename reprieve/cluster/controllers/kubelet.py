"""Kubelets without containers: bound pods run, deleted pods end, nodes are ready.

They write what a kubelet writes to the API. A node whose Ready condition was set to Unknown has a dead kubelet, so that
its pods neither start nor end; on a node that is not ready no pod starts.

Upstream: pkg/kubelet/kubelet_pods.go, generateAPIPodStatus; status/generate.go; nodestatus/setters.go.
"""

import asyncio
import logging
from datetime import datetime
from ipaddress import IPv4Address
from typing import Final, final
from uuid import NAMESPACE_DNS, uuid5
from zlib import crc32

from extender import KUBERNETES_VERSION
from extender.rules.api_resources import Object
from extender.values.golang.times import Duration, DurationError
from reprieve.cluster.controllers.controller_loop import Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import Delete, Report, RequeueAfter
from reprieve.cluster.controllers.observed_objects import RUNS_FOR, Key, Observed, ObservedNode, ObservedPod
from reprieve.cluster.registry.conditions import timestamp, with_condition

logger = logging.getLogger(__name__)

TERMINATION_SECONDS: Final = 1.0
"""The longest time in seconds that a deleted pod stays, whatever its grace, since it has nothing to stop."""


@final
class Kubelet(Controller):
    """The kubelets of all nodes. Keys are (namespace, pod) and ("", node)."""

    name = "kubelet"
    author = "kubelet"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._ends: dict[Key, tuple[str, float]] = {}
        """The ends of pods: (`succeeds` or `goes` with the pod's uid, time of the loop)."""
        self._addresses: dict[str, str] = {}

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if not isinstance(new, ObservedNode):
            return
        self._addresses.pop(new.name, None)
        if READY not in new.conditions:
            self.queue.add(new.key)
        if not isinstance(old, ObservedNode) or old.conditions.get(READY) != new.conditions.get(READY):
            for key in self.cluster.pods_on(new.name):
                self.queue.add(key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if new is None:
            if old is not None:
                self._ends.pop(old.key, None)
        elif new.node and (new.grace or new.phase in ("", "Pending") or (new.runs_for and new.phase == "Running")):
            self.queue.add(new.key)

    def reconcile(self, key: Key) -> Steps:
        if not key[0]:
            yield from self._register(key[1])
            return
        pod = self.cluster.pods.get(key)
        node = self.cluster.node(pod.node) if pod is not None else None
        if pod is None or node is None or node.conditions.get(READY) == "Unknown":
            return
        if pod.deleted:
            if pod.grace:
                seconds = min(pod.grace, TERMINATION_SECONDS)
                yield self._once_due(pod, f"goes {pod.uid}", seconds) or Delete(pod, grace=0)
        elif pod.phase in ("", "Pending"):
            if node.conditions.get(READY) != "False":
                content = pod.content()
                yield Report(pod, content | {"status": running(content, self._address(node), self.now())})
        elif pod.phase == "Running" and pod.runs_for:
            yield from self._let_succeed(pod)

    def _register(self, name: str) -> Steps:
        node = self.cluster.node(name)
        if node is not None and READY not in node.conditions:
            content = node.content()
            yield Report(node, content | {"status": registered(content, self.now())})

    def _let_succeed(self, pod: ObservedPod) -> Steps:
        try:
            seconds = Duration.parse(pod.runs_for).nanoseconds / 1e9
        except DurationError as exc:
            logger.warning("pod %s/%s: annotation %s: %s", pod.namespace, pod.name, RUNS_FOR, exc)
            return
        content = pod.content()
        if content["spec"].get("restartPolicy") in ("Never", "OnFailure"):
            done = Report(pod, content | {"status": succeeded(content, self.now())})
            yield self._once_due(pod, f"succeeds {pod.uid}", seconds) or done

    def _once_due(self, pod: ObservedPod, end: str, seconds: float) -> RequeueAfter | None:
        """Returns the step that waits until `seconds` after the first call for this end; None once they are over."""
        time = asyncio.get_running_loop().time()
        deadline = self._ends.get(pod.key)
        if deadline is None or deadline[0] != end:
            deadline = self._ends[pod.key] = (end, time + seconds)
        return RequeueAfter(deadline[1] - time) if deadline[1] > time else None

    def _address(self, node: ObservedNode) -> str:
        if node.name not in self._addresses:
            self._addresses[node.name] = node_address(node.content())
        return self._addresses[node.name]


_POD_NETWORK: Final = int(IPv4Address("10.64.0.0"))
_POD_ADDRESSES: Final = 1 << 22
_NODE_NETWORK: Final = int(IPv4Address("172.16.0.0"))
_NODE_ADDRESSES: Final = 1 << 20
_TRUE_WHEN_RUNNING: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""The conditions that a kubelet sets. A binding writes the last one; pods created with a node name lack it."""


def node_address(node: Object) -> str:
    """Returns the node's InternalIP, or an address made from its name."""
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") == "InternalIP" and address.get("address"):
            return str(address["address"])
    return _address(_NODE_NETWORK, _NODE_ADDRESSES, node["metadata"]["name"])


def _address(network: int, size: int, name: str) -> str:
    return str(IPv4Address(network + crc32(name.encode()) % size))


def running(pod: Object, host_ip: str, now: datetime) -> Object:
    """Returns the status of a bound pod whose containers all run and are ready."""
    spec, status = pod["spec"], dict(pod.get("status") or {})
    stamp = timestamp(now)
    pod_ip = host_ip if spec.get("hostNetwork") else _address(_POD_NETWORK, _POD_ADDRESSES, pod["metadata"]["uid"])
    status |= {
        "phase": "Running",
        "startTime": status.get("startTime") or stamp,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "containerStatuses": [_container_running(container, pod, stamp) for container in spec.get("containers") or ()],
    }
    inits = [_init_container(container, pod, stamp) for container in spec.get("initContainers") or ()]
    if inits:
        status["initContainerStatuses"] = inits
    conditions = status.get("conditions") or []
    for kind in _TRUE_WHEN_RUNNING:
        conditions = with_condition(conditions, {"type": kind, "status": "True"} | _generation(pod), now)
    status["conditions"] = conditions
    return status | _generation(pod)


def succeeded(pod: Object, now: datetime) -> Object:
    """Returns the status of a running pod whose containers have all exited with 0."""
    status = dict(pod.get("status") or {})
    stamp = timestamp(now)
    status["phase"] = "Succeeded"
    status["containerStatuses"] = [_exited(container, stamp) for container in status.get("containerStatuses") or ()]
    conditions = status.get("conditions") or []
    for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
        new: Object = {"type": kind, "status": str(kind == "Initialized")} | _generation(pod)
        if kind != "PodReadyToStartContainers":
            new["reason"] = "PodCompleted"
        conditions = with_condition(conditions, new, now)
    status["conditions"] = conditions
    return status | _generation(pod)


def _generation(pod: Object) -> Object:
    generation = pod["metadata"].get("generation")
    return {"observedGeneration": generation} if generation else {}


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


def _container_running(spec: Object, pod: Object, stamp: str) -> Object:
    return _container(spec, pod) | {"ready": True, "started": True, "state": {"running": {"startedAt": stamp}}}


def _init_container(spec: Object, pod: Object, stamp: str) -> Object:
    if spec.get("restartPolicy") == "Always":
        return _container_running(spec, pod, stamp)
    return _exited(_container(spec, pod), stamp) | {"ready": True}


def _exited(status: Object, stamp: str) -> Object:
    started = ((status.get("state") or {}).get("running") or {}).get("startedAt", stamp)
    exited = {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": started,
        "finishedAt": stamp,
        "containerID": status.get("containerID", ""),
    }
    return status | {"ready": False, "started": False, "state": {"terminated": exited}}


READY: Final = "Ready"
_FIRST_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    (READY, "True", "KubeletReady", "kubelet is posting ready status"),
)


def registered(node: Object, now: datetime) -> Object:
    """Returns the node's status, completed to that of a ready node."""
    status = dict(node.get("status") or {})
    metadata, stamp = node["metadata"], timestamp(now)
    conditions = list(status.get("conditions") or ())
    kinds = {condition.get("type") for condition in conditions}
    times = {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    status["conditions"] = conditions + [
        {"type": kind, "status": value, "reason": reason, "message": message, **times}
        for kind, value, reason, message in _FIRST_CONDITIONS
        if kind not in kinds
    ]
    if not status.get("addresses"):
        addresses = {"InternalIP": node_address(node), "Hostname": metadata["name"]}
        status["addresses"] = [{"type": kind, "address": address} for kind, address in addresses.items()]
    if not (status.get("nodeInfo") or {}).get("kubeletVersion"):
        labels = metadata.get("labels") or {}
        identity = str(uuid5(NAMESPACE_DNS, metadata["name"]))
        status["nodeInfo"] = {
            "architecture": labels.get("kubernetes.io/arch", "amd64"),
            "bootID": identity,
            "containerRuntimeVersion": "embedded://1.0",
            "kernelVersion": "embedded",
            "kubeProxyVersion": "",
            "kubeletVersion": KUBERNETES_VERSION,
            "machineID": identity.replace("-", ""),
            "operatingSystem": labels.get("kubernetes.io/os", "linux"),
            "osImage": "embedded",
            "systemUUID": identity,
        }
    return status

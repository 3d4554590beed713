"""What a kubelet says of its node when it registers it.

Upstream: pkg/kubelet/nodestatus/setters.go (v1.36.2).
"""

from datetime import datetime
from typing import Final
from uuid import NAMESPACE_DNS, uuid5

from extender.embedded.controllers.conditions import timestamp
from extender.embedded.controllers.pod_status import node_address
from extender.embedded.resources import Object

READY: Final = "Ready"
VERSION: Final = "v1.36.2"
_FIRST_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    (READY, "True", "KubeletReady", "kubelet is posting ready status"),
)


def registered(node: Object, now: datetime) -> Object:
    """The status of a node that is ready; whatever it says already is kept."""
    status = dict(node.get("status") or {})
    metadata, at = node["metadata"], timestamp(now)
    conditions = list(status.get("conditions") or ())
    known = {each.get("type") for each in conditions}
    for kind, value, reason, message in _FIRST_CONDITIONS:
        if kind not in known:
            conditions.append(
                {
                    "type": kind,
                    "status": value,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": at,
                    "lastTransitionTime": at,
                }
            )
    status["conditions"] = conditions
    if not status.get("addresses"):
        status["addresses"] = [
            {"type": "InternalIP", "address": node_address(node)},
            {"type": "Hostname", "address": metadata["name"]},
        ]
    if not (status.get("nodeInfo") or {}).get("kubeletVersion"):
        labels = metadata.get("labels") or {}
        identity = str(uuid5(NAMESPACE_DNS, metadata["name"]))
        status["nodeInfo"] = {
            "architecture": labels.get("kubernetes.io/arch", "amd64"),
            "bootID": identity,
            "containerRuntimeVersion": "embedded://1.0",
            "kernelVersion": "embedded",
            "kubeProxyVersion": "",
            "kubeletVersion": VERSION,
            "machineID": identity.replace("-", ""),
            "operatingSystem": labels.get("kubernetes.io/os", "linux"),
            "osImage": "embedded",
            "systemUUID": identity,
        }
    return status

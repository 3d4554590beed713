"""Tables of workloads, services and scales.

Upstream: pkg/printers/internalversion/printers.go, printReplicationController and following.
"""

from typing import Final

from extender.rules.api_resources import Object
from reprieve.cluster.responses.tables import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    Layout,
    field,
    format_labels,
    name_of,
    number,
    spec_of,
    status_of,
    wide,
)
from reprieve.cluster.store.selections import selector_text


def _ready_of_wanted(obj: Object) -> str:
    return f"{status_of(obj).get('readyReplicas') or 0}/{spec_of(obj).get('replicas') or 0}"


def _of_containers(name: str) -> Cell:
    containers = field("spec.template.spec.containers", ())
    return lambda obj: ",".join(container.get(name, "") for container in containers(obj))


def _selector(obj: Object) -> str:
    return selector_text(spec_of(obj).get("selector"))


def _labels(obj: Object) -> str:
    return format_labels(spec_of(obj).get("selector"))


def _node_selector(obj: Object) -> str:
    return format_labels(field("spec.template.spec.nodeSelector", {})(obj))


def _external_ip(service: Object) -> str:
    spec = spec_of(service)
    kind, external = spec.get("type"), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        ingress = (status_of(service).get("loadBalancer") or {}).get("ingress") or ()
        balanced = {address.get("ip") or address.get("hostname") or "" for address in ingress}
        return ",".join([*sorted(balanced - {""}), *external]) or "<pending>"
    return spec.get("externalName") or "" if kind == "ExternalName" else "<unknown>"


def _ports(service: Object) -> str:
    return ",".join(map(_port, spec_of(service).get("ports") or ())) or NONE


def _cluster_ip(service: Object) -> str:
    return next(iter(spec_of(service).get("clusterIPs") or ()), NONE)


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}"


def _completions(job: Object) -> str:
    spec = spec_of(job)
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    total = completions if completions is not None else f"1 of {parallelism}" if parallelism > 1 else 1
    return f"{status_of(job).get('succeeded') or 0}/{total}"


def _job_status(job: Object) -> str:
    true = {
        condition.get("type")
        for condition in status_of(job).get("conditions") or ()
        if condition.get("status") == "True"
    }
    return next((kind for kind in ("Complete", "Failed", "Suspended") if kind in true), "Running")


_READY: Final = Column("Ready", "Number of the pod with ready state", _ready_of_wanted)
_TEMPLATE: Final = (
    AGE,
    wide("Containers", "Names of each container in the template.", _of_containers("name")),
    wide("Images", "Images referenced by each container in the template.", _of_containers("image")),
)
_PODS: Final = "Which pods belong to it."
_COUNTED: Final = (
    NAME,
    number("Desired", "How many pods are wanted.", "spec.replicas"),
    number("Current", "How many pods there are.", "status.replicas"),
    number("Ready", "How many pods are ready.", "status.readyReplicas"),
    *_TEMPLATE,
)

LAYOUTS: Final = {
    "DaemonSet": Layout(
        NAME,
        number("Desired", "How many nodes are to have a pod.", "status.desiredNumberScheduled"),
        number("Current", "How many of these nodes have one.", "status.currentNumberScheduled"),
        number("Ready", "On how many the pod is ready.", "status.numberReady"),
        number("Up-to-date", "On how many it follows the template as it is.", "status.updatedNumberScheduled"),
        number("Available", "On how many it has been ready for long enough.", "status.numberAvailable"),
        Column("Node Selector", "Which labels the nodes have.", _node_selector),
        *_TEMPLATE,
        wide("Selector", _PODS, _selector),
    ),
    "Deployment": Layout(
        NAME,
        _READY,
        Column("Up-to-date", "How many pods follow the template as it is.", field("status.updatedReplicas", 0)),
        Column("Available", "How many pods have been ready for long enough.", field("status.availableReplicas", 0)),
        *_TEMPLATE,
        wide("Selector", _PODS, _selector),
    ),
    "Job": Layout(
        NAME,
        Column("Status", "How the Job stands.", _job_status),
        Column("Completions", "How many pods have succeeded, of those that have to.", _completions),
        *_TEMPLATE,
        wide("Selector", _PODS, _selector),
    ),
    "ReplicaSet": Layout(*_COUNTED, wide("Selector", _PODS, lambda obj: _selector(obj) or NONE)),
    "ReplicationController": Layout(*_COUNTED, wide("Selector", _PODS, _labels)),
    "Scale": Layout(
        Column("Name", "The name of what is scaled.", name_of),
        number("Desired", "How many pods are wanted.", "spec.replicas"),
        number("Available", "How many pods there are.", "status.replicas"),
        AGE,
    ),
    "Service": Layout(
        NAME,
        Column("Type", "How the service is reached.", field("spec.type")),
        Column("Cluster-IP", "The address of the service within the cluster.", _cluster_ip),
        Column("External-IP", "The addresses of the service outside the cluster.", _external_ip),
        Column("Port(s)", "The ports of the service.", _ports),
        AGE,
        wide("Selector", "Which pods serve.", _labels),
    ),
    "StatefulSet": Layout(NAME, _READY, *_TEMPLATE),
}

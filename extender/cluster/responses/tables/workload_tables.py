"""Tables of workloads, services and scales.

Upstream: pkg/printers/internalversion/printers.go, printReplicationController, printReplicaSet, printStatefulSet,
printDaemonSet, printJob,
printDeployment, printService, printScale (v1.36.2).
"""

from typing import Any, Final

from extender.cluster.api_resources import Object
from extender.cluster.responses.tables.layout import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    Ages,
    Column,
    Layout,
    format_labels,
    name_of,
    spec_of,
    status_of,
    wide,
)
from extender.cluster.store.selections import selector_text


def _replicas(obj: Object) -> list[Any]:
    """The numbers of pods that are wanted, that exist, and that are ready."""
    status = status_of(obj)
    return [spec_of(obj).get("replicas") or 0, status.get("replicas") or 0, status.get("readyReplicas") or 0]


def _ready_of_wanted(obj: Object) -> str:
    wanted, _, ready = _replicas(obj)
    return f"{ready}/{wanted}"


def _template(obj: Object) -> list[str]:
    containers = ((spec_of(obj).get("template") or {}).get("spec") or {}).get("containers") or ()
    return [
        ",".join(each.get("name", "") for each in containers),
        ",".join(each.get("image", "") for each in containers),
    ]


def _replication_controller(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), *_replicas(obj), ages.of(obj), *_template(obj), format_labels(spec_of(obj).get("selector"))]


def _replica_set(obj: Object, ages: Ages) -> list[Any]:
    return [
        name_of(obj),
        *_replicas(obj),
        ages.of(obj),
        *_template(obj),
        selector_text(spec_of(obj).get("selector")) or NONE,
    ]


def _stateful_set(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), _ready_of_wanted(obj), ages.of(obj), *_template(obj)]


def _deployment(obj: Object, ages: Ages) -> list[Any]:
    status = status_of(obj)
    return [
        name_of(obj),
        _ready_of_wanted(obj),
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        ages.of(obj),
        *_template(obj),
        selector_text(spec_of(obj).get("selector")),
    ]


_READY: Final = Column("Ready", "Number of the pod with ready state")
_SELECTOR: Final = wide("Selector", "Which pods belong to it.")
_COUNTED: Final = (
    NAME,
    Column("Desired", "How many pods are wanted.", "integer"),
    Column("Current", "How many pods there are.", "integer"),
    Column("Ready", "How many pods are ready.", "integer"),
    AGE,
    CONTAINERS,
    IMAGES,
    _SELECTOR,
)


def _scale(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), spec_of(obj).get("replicas") or 0, status_of(obj).get("replicas") or 0, ages.of(obj)]


def _service(obj: Object, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("type") or "",
        next(iter(spec.get("clusterIPs") or ()), NONE),
        _external_ip(obj),
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        ages.of(obj),
        format_labels(spec.get("selector")),
    ]


def _external_ip(service: Object) -> str:
    spec = spec_of(service)
    kind, external = spec.get("type"), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        ingress = (status_of(service).get("loadBalancer") or {}).get("ingress") or ()
        balanced = {each.get("ip") or each.get("hostname") or "" for each in ingress}
        return ",".join([*sorted(balanced - {""}), *external]) or "<pending>"
    return spec.get("externalName") or "" if kind == "ExternalName" else "<unknown>"


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}"


def _daemon_set(obj: Object, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    counts = [status.get(name) or 0 for name in _DAEMON_COUNTS]
    nodes = ((spec.get("template") or {}).get("spec") or {}).get("nodeSelector")
    selector = selector_text(spec.get("selector"))
    return [name_of(obj), *counts, format_labels(nodes), ages.of(obj), *_template(obj), selector]


def _job(obj: Object, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    completions, parallelism, done = spec.get("completions"), spec.get("parallelism") or 0, status.get("succeeded") or 0
    wanted = completions if completions is not None else f"1 of {parallelism}" if parallelism > 1 else 1
    true = {each.get("type") for each in status.get("conditions") or () if each.get("status") == "True"}
    word = next((kind for kind in ("Complete", "Failed", "Suspended") if kind in true), "Running")
    selector = selector_text(spec.get("selector"))
    return [name_of(obj), word, f"{done}/{wanted}", ages.of(obj), *_template(obj), selector]


_DAEMON_COUNTS: Final = (
    "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
)  # fmt: skip

LAYOUTS: Final = {
    "DaemonSet": Layout(
        (
            NAME,
            Column("Desired", "How many nodes are to have a pod.", "integer"),
            Column("Current", "How many of these nodes have one.", "integer"),
            Column("Ready", "On how many the pod is ready.", "integer"),
            Column("Up-to-date", "On how many it follows the template as it is.", "integer"),
            Column("Available", "On how many it has been ready for long enough.", "integer"),
            Column("Node Selector", "Which labels the nodes have."),
            AGE,
            CONTAINERS,
            IMAGES,
            _SELECTOR,
        ),
        _daemon_set,
    ),
    "Deployment": Layout(
        (
            NAME,
            _READY,
            Column("Up-to-date", "How many pods follow the template as it is."),
            Column("Available", "How many pods have been ready for long enough."),
            AGE,
            CONTAINERS,
            IMAGES,
            _SELECTOR,
        ),
        _deployment,
    ),
    "Job": Layout(
        (
            NAME,
            Column("Status", "How the Job stands."),
            Column("Completions", "How many pods have succeeded, of those that have to."),
            AGE,
            CONTAINERS,
            IMAGES,
            _SELECTOR,
        ),
        _job,
    ),
    "ReplicaSet": Layout(_COUNTED, _replica_set),
    "ReplicationController": Layout(_COUNTED, _replication_controller),
    "Scale": Layout(
        (
            Column("Name", "The name of what is scaled."),
            Column("Desired", "How many pods are wanted.", "integer"),
            Column("Available", "How many pods there are.", "integer"),
            AGE,
        ),
        _scale,
    ),
    "Service": Layout(
        (
            NAME,
            Column("Type", "How the service is reached."),
            Column("Cluster-IP", "The address of the service within the cluster."),
            Column("External-IP", "The addresses of the service outside the cluster."),
            Column("Port(s)", "The ports of the service."),
            AGE,
            wide("Selector", "Which pods serve."),
        ),
        _service,
    ),
    "StatefulSet": Layout((NAME, _READY, AGE, CONTAINERS, IMAGES), _stateful_set),
}

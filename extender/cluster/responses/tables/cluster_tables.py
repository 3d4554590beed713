"""Tables of nodes, namespaces, leases, events, disruption budgets, priority classes, and the kinds of resource.k8s.io.

Upstream: pkg/printers/internalversion/printers.go, printNode and following (v1.36.2).
"""

from typing import Any, Final

from extender.cluster.api_resources import Object
from extender.cluster.responses.tables.layout import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Ages,
    Column,
    Layout,
    is_going,
    name_of,
    spec_of,
    status_of,
    wide,
)
from extender.cluster.store.stored_objects import CORE_NAME_OF

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def _node(node: Object, ages: Ages) -> list[Any]:
    status = status_of(node)
    info = status.get("nodeInfo") or {}
    return [
        name_of(node),
        _node_status(node),
        ",".join(sorted(_roles(node))) or NONE,
        ages.of(node),
        info.get("kubeletVersion") or "",
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Object) -> str:
    # The last condition of a type counts, should there be several.
    ready = {each.get("type"): each.get("status") for each in status_of(node).get("conditions") or ()}.get("Ready")
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if spec_of(node).get("unschedulable") else word


def _roles(node: Object) -> set[str]:
    labels = node["metadata"].get("labels") or {}
    roles = {name.removeprefix(_ROLE_PREFIX) for name in labels if name.startswith(_ROLE_PREFIX)}
    return {role for role in (*roles, labels.get(_ROLE, "")) if role}


def _address(status: Object, kind: str) -> str:
    return next((each.get("address", "") for each in status.get("addresses") or () if each.get("type") == kind), NONE)


def _namespace(namespace: Object, ages: Ages) -> list[Any]:
    return [name_of(namespace), status_of(namespace).get("phase", ""), ages.of(namespace)]


def _lease(lease: Object, ages: Ages) -> list[Any]:
    return [name_of(lease), spec_of(lease).get("holderIdentity") or "", ages.of(lease)]


def _event(event: Object, ages: Ages) -> list[Any]:
    event = {CORE_NAME_OF.get(name, name): value for name, value in event.items()}
    about, source, series = event.get("involvedObject") or {}, event.get("source") or {}, event.get("series")
    first = ages.since(event.get("firstTimestamp") or event.get("eventTime"))
    last = ages.since(event["lastTimestamp"]) if event.get("lastTimestamp") else first
    # An event that happened once has no count in the new API.
    count = event.get("count") or 1
    if series is not None:
        last, count = ages.since(series.get("lastObservedTime")), series.get("count") or 0
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    kind = about.get("kind", "").lower()
    return [
        last,
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath") or "",
        f"{component}, {host}" if host else component,
        (event.get("message") or "").strip(),
        first,
        count,
        name_of(event),
    ]


def _pod_disruption_budget(obj: Object, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status_of(obj).get("disruptionsAllowed") or 0,
        ages.of(obj),
    ]


def _priority_class(obj: Object, ages: Ages) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value") or 0,
        bool(obj.get("globalDefault")),
        ages.of(obj),
        obj.get("preemptionPolicy") or "",
    ]


def _resource_claim(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), ",".join(_claim_states(obj)), ages.of(obj)]


def _claim_states(claim: Object) -> list[str]:
    status = status_of(claim)
    states = ["deleted"] if is_going(claim) else []
    if status.get("allocation") is None:
        return states or ["pending"]
    return [*states, "allocated", *(["reserved"] if status.get("reservedFor") else [])]


def _only_age(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), ages.of(obj)]


def _resource_slice(obj: Object, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        (spec.get("pool") or {}).get("name") or "",
        ages.of(obj),
    ]


def _pod_group(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), _policy(spec_of(obj)), _workload_of(obj), ages.of(obj)]


def _policy(spec: Object) -> str:
    return next(iter(spec.get("schedulingPolicy") or {}), NONE).capitalize()


def _workload_of(group: Object) -> str:
    reference = (spec_of(group).get("podGroupTemplateRef") or {}).get("workload") or {}
    return reference.get("workloadName") or NONE


LAYOUTS: Final = {
    "DeviceClass": Layout((NAME, AGE), _only_age),
    "ResourceClaimTemplate": Layout((NAME, AGE), _only_age),
    "Event": Layout(
        (
            Column("Last Observed", "When it happened last."),
            Column("Type", "Normal or Warning."),
            Column("Reason", "In one word, what happened."),
            Column("Object", "What it happened to."),
            wide("Subobject", "Which part of the object it happened to."),
            wide("Source", "Who says so."),
            Column("Message", "What happened."),
            wide("First Observed", "When it happened first."),
            wide("Count", "How often it happened."),
            wide("Name", "The name of the event.", format="name"),
        ),
        _event,
    ),
    "Lease": Layout((NAME, Column("Holder", "Who holds the lease."), AGE), _lease),
    "Namespace": Layout((NAME, Column("Status", "The status of the namespace"), AGE), _namespace),
    "Node": Layout(
        (
            NAME,
            Column("Status", "The status of the node"),
            Column("Roles", "The roles of the node"),
            AGE,
            Column("Version", "The version of the node's kubelet."),
            wide("Internal-IP", "The address of the node within the cluster."),
            wide("External-IP", "The address of the node outside the cluster."),
            wide("OS-Image", "The operating system of the node."),
            wide("Kernel-Version", "The version of the node's kernel."),
            wide("Container-Runtime", "What runs containers on the node, and its version."),
        ),
        _node,
    ),
    "PodDisruptionBudget": Layout(
        (
            NAME,
            Column("Min Available", "The minimum number of pods that must be available."),
            Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
            Column("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time.", "integer"),
            AGE,
        ),
        _pod_disruption_budget,
    ),
    "PodGroup": Layout(
        (
            NAME,
            Column("Policy", "How the pods of the group are scheduled."),
            Column("Workload", "The workload of the group."),
            AGE,
        ),
        _pod_group,
    ),
    "PriorityClass": Layout(
        (
            NAME,
            Column("Value", "The priority of pods of this class.", "integer"),
            Column("Global-Default", "Whether pods that name no class are of this one.", "boolean"),
            AGE,
            Column("PreemptionPolicy", "Whether pods of this class may preempt others."),
        ),
        _priority_class,
    ),
    "ResourceClaim": Layout(
        (NAME, Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."), AGE),
        _resource_claim,
    ),
    "Workload": Layout((NAME, AGE), _only_age),
    "DeviceTaintRule": Layout((NAME, AGE), _only_age),
    "ResourceSlice": Layout(
        (
            NAME,
            Column("Node", "The node that the devices belong to."),
            Column("Driver", "The driver that offers the devices."),
            Column("Pool", "The pool that the slice is a part of."),
            AGE,
        ),
        _resource_slice,
    ),
}

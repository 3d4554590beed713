"""Tables of nodes, namespaces, leases, events, disruption budgets, priority classes, and the kinds of resource.k8s.io.

Upstream: pkg/printers/internalversion/printers.go, printNode and following.
"""

from typing import Any, Final

from extender.rules.api_resources import CORE_NAME_OF, Object
from reprieve.cluster.responses.tables import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Ages,
    Cell,
    Column,
    Layout,
    field,
    flag,
    is_going,
    name_of,
    number,
    spec_of,
    status_of,
    wide,
)

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def _node_status(node: Object) -> str:
    # The last condition of a type counts, should there be several.
    ready = {
        condition.get("type"): condition.get("status") for condition in status_of(node).get("conditions") or ()
    }.get("Ready")
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if spec_of(node).get("unschedulable") else word


def _roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {name.removeprefix(_ROLE_PREFIX) for name in labels if name.startswith(_ROLE_PREFIX)}
    return ",".join(sorted({role for role in (*roles, labels.get(_ROLE, "")) if role})) or NONE


def _address(kind: str) -> Cell:
    def read(node: Object) -> str:
        addresses = status_of(node).get("addresses") or ()
        return next((address.get("address", "") for address in addresses if address.get("type") == kind), NONE)

    return read


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


def _claim_states(claim: Object) -> str:
    status, going = status_of(claim), is_going(claim)
    if status.get("allocation") is None:
        return "deleted" if going else "pending"
    return ("deleted," if going else "") + ("allocated,reserved" if status.get("reservedFor") else "allocated")


def _policy(group: Object) -> str:
    return next(iter(spec_of(group).get("schedulingPolicy") or {}), NONE).capitalize()


def _bound(name: str) -> Cell:
    return lambda budget: str(spec_of(budget).get(name, "N/A"))


_ONLY_AGE: Final = Layout(NAME, AGE)
_WORKLOAD: Final = "spec.podGroupTemplateRef.workload.workloadName"

LAYOUTS: Final = {
    "DeviceClass": _ONLY_AGE,
    "ResourceClaimTemplate": _ONLY_AGE,
    "Event": Layout(
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
        row=_event,
    ),
    "Lease": Layout(NAME, Column("Holder", "Who holds the lease.", field("spec.holderIdentity")), AGE),
    "Namespace": Layout(NAME, Column("Status", "The status of the namespace", field("status.phase")), AGE),
    "Node": Layout(
        NAME,
        Column("Status", "The status of the node", _node_status),
        Column("Roles", "The roles of the node", _roles),
        AGE,
        Column("Version", "The version of the node's kubelet.", field("status.nodeInfo.kubeletVersion")),
        wide("Internal-IP", "The address of the node within the cluster.", _address("InternalIP")),
        wide("External-IP", "The address of the node outside the cluster.", _address("ExternalIP")),
        wide("OS-Image", "The operating system of the node.", field("status.nodeInfo.osImage", UNKNOWN)),
        wide("Kernel-Version", "The version of the node's kernel.", field("status.nodeInfo.kernelVersion", UNKNOWN)),
        wide(
            "Container-Runtime",
            "What runs containers on the node, and its version.",
            field("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
        ),
    ),
    "PodDisruptionBudget": Layout(
        NAME,
        Column("Min Available", "The minimum number of pods that must be available.", _bound("minAvailable")),
        Column("Max Unavailable", "The maximum number of pods that may be unavailable.", _bound("maxUnavailable")),
        number(
            "Allowed Disruptions",
            "Calculated number of pods that may be disrupted at this time.",
            "status.disruptionsAllowed",
        ),
        AGE,
    ),
    "PodGroup": Layout(
        NAME,
        Column("Policy", "How the pods of the group are scheduled.", _policy),
        Column("Workload", "The workload of the group.", field(_WORKLOAD, NONE)),
        AGE,
    ),
    "PriorityClass": Layout(
        NAME,
        number("Value", "The priority of pods of this class.", "value"),
        flag("Global-Default", "Whether pods that name no class are of this one.", "globalDefault"),
        AGE,
        Column("PreemptionPolicy", "Whether pods of this class may preempt others.", field("preemptionPolicy")),
    ),
    "ResourceClaim": Layout(
        NAME,
        Column("State", "A summary of the current state (allocated, pending, reserved, etc.).", _claim_states),
        AGE,
    ),
    "Workload": _ONLY_AGE,
    "DeviceTaintRule": _ONLY_AGE,
    "ResourceSlice": Layout(
        NAME,
        Column("Node", "The node that the devices belong to.", field("spec.nodeName")),
        Column("Driver", "The driver that offers the devices.", field("spec.driver")),
        Column("Pool", "The pool that the slice is a part of.", field("spec.pool.name")),
        AGE,
    ),
}

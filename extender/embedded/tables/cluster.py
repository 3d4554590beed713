"""Nodes, namespaces and leases.

Upstream: pkg/printers/internalversion/printers.go, printNode, printNamespace, printLease (v1.36.2).
"""

from typing import Any, Final

from extender.embedded.resources import Object
from extender.embedded.tables.ages import UNKNOWN, Ages
from extender.embedded.tables.labels import NONE
from extender.embedded.tables.layout import AGE, NAME, Column, Layout, name_of, spec_of, status_of, wide

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


NODES: Final = Layout(
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
)


def _namespace(namespace: Object, ages: Ages) -> list[Any]:
    return [name_of(namespace), status_of(namespace).get("phase", ""), ages.of(namespace)]


NAMESPACES: Final = Layout((NAME, Column("Status", "The status of the namespace"), AGE), _namespace)


def _lease(lease: Object, ages: Ages) -> list[Any]:
    return [name_of(lease), spec_of(lease).get("holderIdentity") or "", ages.of(lease)]


LEASES: Final = Layout((NAME, Column("Holder", "Who holds the lease."), AGE), _lease)

"""A cluster to ask about with four roles, those of the page Questions, before a server that enforces them."""

import json
from collections.abc import Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

import yaml

from extender.client.client import Client
from extender.client.errors import AlreadyExists
from extender.client.paths import path
from tests.envtest.test_roles import PLURALS

Object = dict[str, Any]

PAGE: Final = Path(__file__).parents[2] / "docs" / "questions.md"
OPERATOR, OWNER, OWNER_WITHOUT_NODES = "asking-operator", "asking-owner", "asking-owner-without-nodes"
ROLES: Final = (OPERATOR, OWNER, OWNER_WITHOUT_NODES)
HOME, ELSEWHERE = "asking-shop", "asking-ops"
SAID: Final = "0/2 nodes are available: 2 Insufficient cpu."


def roles_of_the_page() -> tuple[Object, Object]:
    """Returns the role of operators, and the one that owners have besides it in their namespace."""
    blocks = PAGE.read_text().split("```yaml\n")[1:]
    everything, of_owners = (yaml.safe_load(block.partition("```")[0]) for block in blocks)
    return everything, of_owners


def roles_with_bindings() -> list[Object]:
    everything, of_owners = roles_of_the_page()
    return [
        everything,
        of_owners,
        _binding("ClusterRoleBinding", everything, OPERATOR),
        _binding("ClusterRoleBinding", of_owners, OWNER),
        _binding("RoleBinding", everything, OWNER, OWNER_WITHOUT_NODES),
    ]


def _binding(kind: str, role: Object, *users: str) -> Object:
    group = "rbac.authorization.k8s.io"
    name = role["metadata"]["name"]
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": HOME} if kind == "RoleBinding" else {})},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user} for user in users],
    }


def _node(name: str, cpu: str, **labels: str) -> Object:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110", "ephemeral-storage": "50Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "asking": "yes", **labels}},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(name: str, cpu: str, namespace: str = HOME, labels: Object | None = None, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SAID}
    # A new node is not ready, and has the taint for it, until a controller takes it away.
    spec = {"tolerations": [{"operator": "Exists"}], **spec}
    spec["nodeSelector"] = {"asking": "yes", **spec.get("nodeSelector", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
        "status": {"phase": "Pending", "conditions": [] if "nodeName" in spec else [condition]},
    }


def _event(pod: str) -> Object:
    about = {"kind": "Pod", "apiVersion": "v1", "namespace": HOME, "name": pod}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.1", "namespace": HOME},
        "involvedObject": about,
        "reason": "FailedScheduling",
        "message": SAID,
        "type": "Warning",
        "source": {"component": "default-scheduler"},
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "count": 3,
    }


_CLAIM: Final[Object] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": HOME},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none",
    },
}
OBJECTS: Final[Sequence[Object]] = (
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (HOME, ELSEWHERE)),
    _node("asking-small", "2", disk="hdd"),
    _node("asking-large", "8", disk="hdd"),
    _CLAIM,
    _pod("hog", "6", ELSEWHERE, nodeName="asking-large"),
    _pod("huge", "16", labels={"app": "huge"}),
    _pod("ssd", "1", nodeSelector={"disk": "ssd"}),
    _pod("full", "4"),
    _pod("fine", "1"),
    _pod("data", "1", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
    _event("full"),
)
"""Pods that are refused by size, by a label, for pods that others own and for a volume, and one that fits."""

_PLURALS: Final = {
    **PLURALS,
    **{kind: ("", f"{kind.lower()}s") for kind in ("Namespace", "Node", "Pod", "Event", "PersistentVolumeClaim")},
}


async def apply(admin: Client, objects: Sequence[Object]) -> None:
    """Creates the objects, with their status; those that are there stay."""
    async with aclosing(admin):
        for obj in objects:
            group, plural = _PLURALS[obj["kind"]]
            url = path(group, "v1", plural, namespace=obj["metadata"].get("namespace"))
            with suppress(AlreadyExists):
                created = json.loads(await admin.create(url, obj))
                if "status" in obj:
                    await admin.update(f"{url}/{obj['metadata']['name']}/status", {**created, "status": obj["status"]})

"""A change that would help as something to use: a patch, the command that applies it, and objects to try it with in a
what-if.
"""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, Final

import msgspec

from extender.answers.pods import workload_of
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod
from extender.values.objects.priority_classes import HIGHEST_USER_PRIORITY

_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
}
"""Lists whose items a strategic merge patch finds by a key; it replaces others as a whole. Upstream: the patchMergeKey
tags of core/v1.
"""
_WITH_TEMPLATE: Final = frozenset(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"))
"""Kinds whose pod template can be changed; that of a Job cannot."""
_OF_A_PENDING_POD: Final = frozenset(("schedulingGates", "tolerations"))
"""Members of a pod's spec that can be changed while it has no node."""


def patch_of(before: Pod, after: Pod) -> dict[str, Any]:
    """Returns the strategic merge patch that makes one spec the other; an empty one if it would be very large."""
    patch = _difference(msgspec.to_builtins(before.spec), msgspec.to_builtins(after.spec))
    return patch if len(msgspec.json.encode(patch)) <= limits.FIX_PATCH_BYTES else {}


def command_of(pod: Pod, patch: Mapping[str, Any]) -> str:
    """Returns the command that applies the patch to the pod's workload, or to the pod where it can be changed; empty if
    neither can.
    """
    if not patch:
        return ""
    kind, _, name = workload_of(pod).partition("/")
    spec = {"spec": patch}
    if kind in _WITH_TEMPLATE and patch.keys() != {"schedulingGates"}:
        kind, spec = kind.lower(), {"spec": {"template": spec}}
    elif patch.keys() <= _OF_A_PENDING_POD:
        kind, name = "pod", pod.name
    else:
        return ""
    return (
        f"kubectl -n {quote(pod.namespace)} patch {kind} {quote(name)} -p {quote(msgspec.json.encode(spec).decode())}"
    )


def uncordoning(nodes: Sequence[str]) -> str:
    """Returns the command that lets pods on the nodes again."""
    return f"kubectl uncordon {' '.join(map(quote, nodes))}"


def objects_to_try(pod: Pod) -> tuple[dict[str, Any], ...]:
    """Returns the pod under a name of its own, as it would be created, after the PriorityClass that it needs; none of a
    very large pod.
    """
    name, classes = f"{pod.name[:240]}-tried", []
    spec = replaced(pod.spec, node_name="", priority=None, preemption_policy=None)
    if pod.priority <= HIGHEST_USER_PRIORITY:
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": pod.priority,
        }
        classes = [made | ({"preemptionPolicy": pod.spec.preemption_policy} if pod.spec.preemption_policy else {})]
        spec = replaced(spec, priority_class_name=name)
    metadata = {
        "name": name,
        "namespace": pod.namespace,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
    }
    written = {"apiVersion": "v1", "kind": "Pod", "metadata": {key: value for key, value in metadata.items() if value}}
    found = (*classes, {**written, "spec": msgspec.to_builtins(spec)})
    return found if len(msgspec.json.encode(found)) <= limits.FIX_OBJECT_BYTES else ()


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[name] = _difference(old, new)
        elif name in _KEYS and isinstance(old, list):
            patch[name] = _difference_of_lists(old, new or [], _KEYS[name])
        else:
            patch[name] = new
    return patch


def _difference_of_lists(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], key: str
) -> list[dict[str, Any]]:
    new = {each.get(key): each for each in after}
    old = {each.get(key): each for each in before}
    gone = [{"$patch": "delete", key: value} for value in old if value not in new]
    changed = [
        {key: value, **_difference(old.get(value, {}), each)} for value, each in new.items() if each != old.get(value)
    ]
    return [*gone, *changed]

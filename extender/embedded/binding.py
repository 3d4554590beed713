"""The binding subresource: a pod gets its node, once.

Upstream: pkg/registry/core/pod/storage/storage.go, BindingREST, setPodNodeAndMetadata (v1.36.2).
"""

from typing import Any

from extender.embedded import admission, decoding, faces, registry, schema, statuses, validation
from extender.embedded.query import WriteOptions
from extender.embedded.resources import BINDINGS, PODS, Object


def bind(reg: registry.Registry, namespace: str, name: str, raw: Any, write: WriteOptions | None = None) -> Object:
    """Assign a pod to the node that a Binding names; a Status. The node need not exist.

    Arguments:
        name: of the pod, or empty: the Binding says it.

    Raises:
        ApiStatus: 409 if the pod has a node, is being deleted, is gated or is another one by now; 404 if there is none.
    """
    binding = _read(raw, write or WriteOptions())
    metadata = binding["metadata"]
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise statuses.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    name = name or metadata.get("name", "")
    if metadata.get("name", "") != name:
        raise statuses.bad_request("name in URL does not match name in Binding object")
    node = binding["target"].get("name", "")
    stored = reg.store.get(PODS, namespace, name)
    if stored is None:
        raise statuses.not_found(PODS, name)
    pod = faces.shown(PODS, stored)
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != pod["metadata"]["uid"]:
        raise statuses.wrong_uid(PODS, stored.key, name, uid, pod["metadata"]["uid"])
    if version and version != str(stored.resource_version):
        raise statuses.wrong_version(PODS, stored.key, name, version, str(stored.resource_version))
    _check_assignable(pod)
    _assign(pod, node, metadata.get("annotations", {}), admission.topology_labels(reg.store, node), registry.timestamp(reg.now()))
    reg.replace(PODS, stored, pod, dry_run=write is not None and write.dry_run)
    return statuses.success(201)


def _read(raw: Any, write: WriteOptions) -> Object:
    binding = decoding.read(schema.type_of(BINDINGS), raw, write, "Binding")
    errors = validation.validate_create(BINDINGS, binding)
    if errors:
        texts = list(dict.fromkeys(map(str, errors)))
        # Upstream hands these out bare, so that they are an error of the server.
        raise statuses.ApiStatus(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return binding


def _check_assignable(pod: Object) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    why = ""
    if "deletionTimestamp" in pod["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise statuses.conflict(PODS, name, why, subresource="binding")


def _assign(pod: Object, node: str, annotations: Object, labels: dict[str, str], now: str) -> None:
    metadata, status = pod["metadata"], pod.setdefault("status", {})
    pod["spec"]["nodeName"] = node
    status.pop("nominatedNodeName", None)
    if annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    # What the pod says of itself stays.
    merged = {**labels, **metadata.get("labels", {})}
    if merged:
        metadata["labels"] = merged
    set_condition(status, {"type": "PodScheduled", "status": "True"}, now)


def set_condition(status: Object, condition: Object, now: str) -> None:
    """Add or replace a pod condition; it keeps its time if its status stays. Upstream: podutil.UpdatePodCondition."""
    conditions = status.setdefault("conditions", [])
    condition = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for place, former in enumerate(conditions):
        if former.get("type") == condition["type"]:
            if former.get("status") == condition["status"]:
                condition["lastTransitionTime"] = former.get("lastTransitionTime")
            conditions[place] = condition
            return
    conditions.append(condition)

"""The subresources with a kind of their own: the binding and eviction of pods, the Scale of workloads.

Upstream: pkg/registry/core/pod/storage, storage.go, BindingREST, setPodNodeAndMetadata; eviction.go;
pkg/registry/apps/deployment/storage/storage.go, ScaleREST, scaleFromDeployment, and its siblings.
"""

from collections.abc import Callable
from datetime import datetime
from itertools import islice
from typing import Any, Final

from extender.rules import statuses, validation
from extender.rules.api_resources import (
    BINDINGS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICATION_CONTROLLERS,
    Object,
    Resource,
)
from extender.rules.schema import api_types
from extender.rules.statuses import ApiStatus
from extender.rules.validation import workload_rules
from extender.values.golang.schema import Struct
from extender.values.golang.times import rfc3339
from extender.values.workloads.templates import selector_in
from reprieve.cluster import refusals
from reprieve.cluster.registry import object_registry
from reprieve.cluster.registry.conditions import condition, with_condition
from reprieve.cluster.requests import request_bodies
from reprieve.cluster.requests.request_options import WriteOptions, dry_run_errors, options_invalid
from reprieve.cluster.store import stored_objects
from reprieve.cluster.store.selections import selector_text
from reprieve.cluster.store.stored_objects import Stored

_TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(
    reg: object_registry.ObjectRegistry, namespace: str, name: str, raw: Any, write: WriteOptions | None = None
) -> Object:
    """Assigns a pod to the node that a Binding names, whether the node exists or not; returns a Status.

    With an empty name, the Binding's counts. Raises ApiStatus 409 if the pod has a node, is being deleted, is gated or
    has another UID; 404 if it does not exist.
    """
    binding = _read(raw, write or WriteOptions())
    metadata = binding["metadata"]
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise statuses.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name = name or metadata.get("name", "")
    if metadata.get("name", "") != name:
        raise statuses.bad_request("name in URL does not match name in Binding object")
    node = binding["target"].get("name", "")
    stored = reg.stored(PODS, namespace, name)
    pod = stored_objects.shown(PODS, stored)
    _check_identity(stored, pod, metadata.get("uid") or None, metadata.get("resourceVersion") or None)
    _check_assignable(pod)
    _assign(pod, node, metadata.get("annotations", {}), _topology_labels(reg, node), reg.now())
    reg.replace(PODS, stored, pod, dry_run=write is not None and write.dry_run)
    return refusals.success(201)


def _topology_labels(reg: object_registry.ObjectRegistry, node: str) -> dict[str, str]:
    """Returns the labels of a node that a pod bound to it gets. Upstream: podtopologylabels, admitBinding."""
    stored = reg.store.get(NODES, "", node)
    return {} if stored is None else {name: stored.labels[name] for name in _TOPOLOGY_LABELS if name in stored.labels}


def _read(raw: Any, write: WriteOptions) -> Object:
    binding = request_bodies.read(api_types.type_of(BINDINGS), raw, write, "Binding")
    errors = validation.validate_create(BINDINGS, binding)
    if errors:
        texts = list(dict.fromkeys(map(str, errors)))
        # Upstream returns these errors bare, which makes them errors of the server.
        raise statuses.ApiStatus(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return binding


def _check_identity(stored: Stored, pod: Object, uid: str | None, version: str | None) -> None:
    if uid is not None and uid != pod["metadata"]["uid"]:
        raise refusals.wrong_object(PODS, stored.key, stored.name, "UID", uid, pod["metadata"]["uid"])
    present = str(stored.resource_version)
    if version is not None and version != present:
        raise refusals.wrong_object(PODS, stored.key, stored.name, "ResourceVersion", version, present)


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
        raise refusals.conflict(PODS, name, why, subresource="binding")


def _assign(pod: Object, node: str, annotations: Object, labels: dict[str, str], now: datetime) -> None:
    metadata, status = pod["metadata"], pod.setdefault("status", {})
    pod["spec"]["nodeName"] = node
    status.pop("nominatedNodeName", None)
    if annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    # The pod's own labels win.
    merged = {**labels, **metadata.get("labels", {})}
    if merged:
        metadata["labels"] = merged
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    status["conditions"] = with_condition(status.get("conditions"), scheduled, now)


MAX_DISRUPTED_POD_SIZE: Final = 2000
"""The largest number of evictions in a budget that the disruption controller has not confirmed."""
_TOO_MANY: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_BUDGET: Final = Resource("policy", "v1", "poddisruptionbudget", "poddisruptionbudget", "PodDisruptionBudget", True)
"""The resource as refusals name it: upstream leaves out the plural."""


def evict(
    reg: object_registry.ObjectRegistry, namespace: str, name: str, raw: Any, write: WriteOptions | None = None
) -> Object:
    """Deletes a pod if its disruption budget allows it; returns a Status. Raises ApiStatus 429 if it does not now."""
    options = _delete_options(name, raw, write or WriteOptions())
    stored = reg.stored(PODS, namespace, name)
    pod = stored_objects.shown(PODS, stored)
    phase, is_terminating = pod.get("status", {}).get("phase"), "deletionTimestamp" in pod["metadata"]
    # Pods that are finished, pending or terminating disrupt nothing. Upstream: canIgnorePDB.
    if phase == "Pending" and not is_terminating:
        _pin(options, pod)
    elif phase not in ("Succeeded", "Failed") and not is_terminating:
        budgets = _budgets_of(reg, namespace, stored)
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiStatus(500, "", message)
        for stored_budget in budgets:
            budget = stored_objects.shown(POD_DISRUPTION_BUDGETS, stored_budget)
            if _needs_no_budget(pod, budget):
                _pin(options, pod)
            else:
                _spend(reg, stored_budget, budget, name, is_dry_run=bool(options.get("dryRun")))
    reg.delete(PODS, namespace, name, _disrupted(reg, stored, pod, options))
    return refusals.success(201)


def _delete_options(name: str, raw: Any, write: WriteOptions) -> Object:
    eviction = request_bodies.read(api_types.lookup("policy", "v1", "Eviction"), raw, write, "Eviction")
    if eviction["metadata"].get("name", "") != name:
        raise statuses.bad_request("name in URL does not match name in Eviction object")
    options: Object = dict(eviction.get("deleteOptions") or {})
    errors = dry_run_errors(options.get("dryRun") or ())
    if errors:
        raise options_invalid("DeleteOptions", errors)
    if write.dry_run:
        options["dryRun"] = ["All"]
    return options


def _pin(options: Object, pod: Object) -> None:
    preconditions = options["preconditions"] = dict(options.get("preconditions") or {})
    preconditions.setdefault("resourceVersion", pod["metadata"]["resourceVersion"])


def _disrupted(reg: object_registry.ObjectRegistry, stored: Stored, pod: Object, options: Object) -> Object:
    """Writes the reason into the pod; returns the options with the pod's new version (addConditionAndDeletePod)."""
    preconditions = options.get("preconditions") or {}
    _check_identity(stored, pod, preconditions.get("uid"), preconditions.get("resourceVersion"))
    if options.get("dryRun"):
        return options
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
    }
    status = pod.setdefault("status", {})
    status["conditions"] = with_condition(status.get("conditions"), target, reg.now())
    if stored_objects.differs(PODS, stored, pod):
        reg.replace(PODS, stored, pod)
    return {**options, "preconditions": {**preconditions, "resourceVersion": pod["metadata"]["resourceVersion"]}}


def _budgets_of(reg: object_registry.ObjectRegistry, namespace: str, pod: Stored) -> list[Stored]:
    """Returns the budgets that select the pod, up to two, since more than one is refused."""
    budgets = reg.store.read(POD_DISRUPTION_BUDGETS, namespace)
    selecting = (
        budget
        for budget in budgets
        if selector_in(stored_objects.shown(POD_DISRUPTION_BUDGETS, budget)).matches(pod.labels)
    )
    return [*islice(selecting, 2)]


def _needs_no_budget(pod: Object, budget: Object) -> bool:
    """Returns whether the pod is not ready, and enough others are or the budget always allows its eviction."""
    status = budget["status"]
    ready = condition(pod.get("status", {}).get("conditions"), "Ready") or {}
    if ready.get("status") == "True":
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


def _spend(reg: object_registry.ObjectRegistry, stored: Stored, budget: Object, pod: str, *, is_dry_run: bool) -> None:
    """Uses up one disruption of the budget. Upstream: checkAndDecrement."""
    status, name = budget["status"], stored.name
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    allowed, disrupted = status.get("disruptionsAllowed", 0), status.get("disruptedPods", {})
    if allowed < 0:
        raise statuses.forbidden(_BUDGET, name, "pdb disruptions allowed is negative")
    if len(disrupted) > MAX_DISRUPTED_POD_SIZE:
        raise statuses.forbidden(
            _BUDGET, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if allowed == 0:
        raise _too_many(_shortage(name, status), 0)
    if is_dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**disrupted, pod: rfc3339(reg.now())}
    if allowed == 1:
        exhausted = {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": status.get("observedGeneration", 0),
            "reason": "InsufficientPods",
            "message": "",
        }
        status["conditions"] = with_condition(status.get("conditions"), exhausted, reg.now())
    reg.replace(POD_DISRUPTION_BUDGETS, stored, budget)


def _shortage(name: str, status: Object) -> str:
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    allows_none = f"The disruption budget {name} does not allow evicting pods currently"
    allowance = condition(status.get("conditions"), "DisruptionAllowed") or {}
    if allowance.get("status") == "False" and allowance["reason"] == "SyncFailed":
        return f"{allows_none} because it failed sync: {allowance['message']}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return allows_none


def _too_many(why: str, retry_after: int) -> ApiStatus:
    return refusals.too_many_requests(_TOO_MANY, retry_after, [{"reason": "DisruptionBudget", "message": why}])


_SHOWN_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_type() -> Struct:
    return api_types.lookup("autoscaling", "v1", "Scale")


def scale_of(resource: Resource, obj: Object) -> Object:
    metadata = {name: obj["metadata"][name] for name in _SHOWN_METADATA if name in obj["metadata"]}
    status: Object = {"replicas": obj.get("status", {}).get("replicas", 0)}
    selector = obj["spec"].get("selector")
    text = selector_text({"matchLabels": selector} if resource is REPLICATION_CONTROLLERS else selector)
    if text:
        status["selector"] = text
    replicas = obj["spec"].get("replicas", 0)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def rescale(
    reg: object_registry.ObjectRegistry,
    resource: Resource,
    namespace: str,
    name: str,
    changed: Callable[[Object], Any],
    write: WriteOptions,
) -> Object:
    """Gives a workload the replicas of its changed Scale; returns the Scale. Raises ApiStatus if it is refused."""
    workload = reg.get(resource, namespace, name)
    scale = _checked(resource, workload, changed(scale_of(resource, workload)), write)
    workload["spec"]["replicas"] = scale["spec"].get("replicas", 0)
    workload["metadata"]["resourceVersion"] = scale["metadata"].get("resourceVersion", "")
    return scale_of(resource, reg.update(resource, namespace, name, workload, write, owned_as="scale"))


def _checked(resource: Resource, workload: Object, raw: Any, write: WriteOptions) -> Object:
    """Returns the Scale that a caller sent. Raises ApiStatus if it is not the workload's, or is invalid."""
    scale = request_bodies.read(scale_type(), raw, write, "Scale")
    metadata, former = scale["metadata"], workload["metadata"]
    if metadata.get("name", former["name"]) != former["name"]:
        raise statuses.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({former['name']})"
        )
    uid = metadata.get("uid")
    if uid and uid != former["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {former['uid']}"
        raise refusals.conflict(resource, former["name"], why)
    errors = workload_rules.validate_scale(scale)
    if errors:
        raise statuses.invalid("autoscaling", "Scale", former["name"], errors)
    return scale

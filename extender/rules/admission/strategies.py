"""The strategies of kinds before validation: resets the fields that requests may not set, and counts the generation.

Upstream: pkg/registry, strategy.go of each kind, PrepareForCreate and PrepareForUpdate.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from extender.rules.api_resources import Object, Resource
from extender.rules.schema.api_types import type_of
from extender.values.config.feature_gates import FeatureGates
from extender.values.objects.quantity import Quantity, quantity_of
from extender.values.workloads.daemon_sets import GENERATION, template_generation

JOB_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_RESET_FOR_STATUS: Final = (
    "deletionTimestamp",
    "generation",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
)
"""The metadata that a status update of newer kinds cannot change. Upstream: metav1.ResetObjectMetaForStatus."""

_BORN_WITH_GENERATION: Final = frozenset(
    {
        "Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController",
        "PodDisruptionBudget", "PriorityClass", "Ingress", "NetworkPolicy", "CustomResourceDefinition",
        "ResourceSlice", "DeviceClass", "DeviceTaintRule", "PodGroup", "Workload",
    }
)  # fmt: skip
_COUNTS_SPEC_CHANGES: Final = _BORN_WITH_GENERATION - {"PriorityClass"} | {"CSIDriver"}
_METADATA_KEPT_BY_STATUS: Final[Mapping[str, Iterable[str]]] = {
    "Pod": ("ownerReferences",),
    "Deployment": ("labels",),
    "ResourceClaim": _RESET_FOR_STATUS,
    "VolumeAttachment": _RESET_FOR_STATUS,
    "PodGroup": _RESET_FOR_STATUS,
    "DeviceTaintRule": _RESET_FOR_STATUS,
}


_BEHIND_GATES: Final = {
    "DeviceClass": ("DRAExtendedResource", "spec", "extendedResourceName"),
    "Pod": ("DRAExtendedResource", "status", "extendedResourceClaimStatus"),
}
"""Kind -> the feature gate, and the part and field that are dropped while it is off."""


def drop_disabled(resource: Resource, new: Object, old: Object | None, features: FeatureGates) -> None:
    """Drops the fields of features that are off, in place, unless the old object has them (dropDisabledFields)."""
    gate, part, name = _BEHIND_GATES.get(resource.ruled_as, ("", "", ""))
    is_new = name in (new.get(part) or {}) and name not in ((old or {}).get(part) or {})
    if is_new and not features.enabled(gate):
        del new[part][name]


def prepare_for_create(resource: Resource, obj: Object) -> None:
    """Clears the fields that a creator may not set, and sets the server's fields, in an object with its defaults."""
    metadata = obj["metadata"]
    metadata.pop("generation", None)
    if resource.is_custom or resource.ruled_as in _BORN_WITH_GENERATION:
        metadata["generation"] = 1
    # Kubelets create nodes with their status.
    if resource.ruled_as != "Node" and resource.subresource("status") is not None:
        status = type_of(resource).fields.get("status")
        if status is None:
            obj.pop("status", None)
        else:
            obj["status"] = status.type.zero()
    rule = _ON_CREATE.get(resource.ruled_as)
    if rule is not None:
        rule(obj)


def prepare_for_update(resource: Resource, new: Object, old: Object, subresource: str = "") -> None:
    """Resets the fields of `new` that a write to the object or subresource may not change; counts the generation."""
    metadata, former = new["metadata"], old["metadata"]
    _take(metadata, former, "generation")
    kind = resource.ruled_as
    if subresource == "status":
        _take(new, old, "spec")
        for name in _METADATA_KEPT_BY_STATUS.get(kind, ()):
            _take(metadata, former, name)
        if kind == "Pod":
            metadata.pop("deletionTimestamp", None)
            _take(metadata, former, "deletionTimestamp")
            _keep_observed(new["status"], old.get("status", {}))
        elif kind == "ResourceClaim":
            _drop_deallocated(new["status"], old.get("status", {}))
        return
    if subresource == "resize":
        _keep_all_but_amounts(new, old)
    if resource.subresource("status") is not None:
        _take(new, old, "status")
    if kind == "Namespace" and subresource != "finalize":
        _take(new["spec"], old["spec"], "finalizers")
    if kind == "DaemonSet":
        _count_template(new, old)
    has_changed = new.get("spec") != old.get("spec") or (
        kind == "Deployment" and metadata.get("annotations") != former.get("annotations")
    )
    if has_changed and (resource.is_custom or kind in _COUNTS_SPEC_CHANGES):
        metadata["generation"] = former.get("generation", 0) + 1


def _keep_all_but_amounts(pod: Object, old: Object) -> None:
    """Lets a resize change resources only. Upstream: pkg/registry/core/pod/strategy.go, dropNonResizeUpdates."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        _take(pod["metadata"], old["metadata"], name)
    requested, pod["spec"] = pod["spec"], copy.deepcopy(old["spec"])
    for part in ("containers", "initContainers"):
        amounts = {container.get("name"): container.get("resources") for container in requested.get(part) or ()}
        for container in pod["spec"].get(part) or ():
            container["resources"] = amounts.get(container["name"]) or container.get("resources") or {}


def _count_template(new: Object, old: Object) -> None:
    """Counts how often the template is written. Upstream: pkg/registry/apps/daemonset/strategy.go, PrepareForUpdate."""
    generation = template_generation(old)
    if new["spec"].get("template") != old["spec"].get("template") and generation.isdecimal():
        generation = str(int(generation) + 1)
    new["metadata"].setdefault("annotations", {})[GENERATION] = generation


def _take(new: Object, old: Object, name: str) -> None:
    """Gives a member of the new object its old value, shared with the old object, or removes it."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _keep_observed(status: Object, old: Object) -> None:
    """Keeps the QoS class and the observed generations of the old status (preserveOldObservedGeneration)."""
    for name in ("qosClass", "observedGeneration"):
        if name in old and not status.get(name):
            status[name] = old[name]
    observed: dict[str, list[int]] = {}
    for condition in old.get("conditions", ()):
        observed.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions", ()):
        before = observed.get(condition.get("type", ""))
        generation = before.pop(0) if before else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _drop_deallocated(status: Object, old: Object) -> None:
    """Removes the drivers' status of devices that are no longer allocated. Upstream: dropDeallocatedStatusDevices."""
    deallocated = _allocated(old) - _allocated(status)
    if deallocated and "devices" in status:
        status["devices"] = [device for device in status["devices"] if _device_id(device) not in deallocated]
        if not status["devices"]:
            del status["devices"]


def _allocated(status: Object) -> set[tuple[Any, ...]]:
    return {
        _device_id(result) for result in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    }


def _device_id(device: Object) -> tuple[Any, ...]:
    return device.get("driver"), device.get("pool"), device.get("device")


def _pod(pod: Object) -> None:
    spec, labels = pod["spec"], pod["metadata"].get("labels", {})
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    affinity = spec.get("affinity") or {}
    for stanza in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}):
        for weighted in stanza.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_label_keys(weighted["podAffinityTerm"], labels)
        for term in stanza.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_label_keys(term, labels)
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge_label_keys(constraint, labels)


_COMPUTE: Final = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Returns `Guaranteed`, `Burstable` or `BestEffort`. Upstream: core/helper/qos/qos.go, ComputePodQOS."""
    containers = [container for name in ("containers", "initContainers") for container in spec.get(name) or ()]
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for part in [spec] if spec.get("resources") else containers:
        resources = part.get("resources") or {}
        _add_compute(requests, resources.get("requests"))
        guaranteed = _add_compute(limits, resources.get("limits")) == len(_COMPUTE) and guaranteed
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_compute(total: dict[str, Quantity], amounts: Mapping[str, Any] | None) -> int:
    """Returns how many of the compute resources were added; zero amounts do not count."""
    num_added = 0
    for name in _COMPUTE:
        amount = quantity_of((amounts or {}).get(name, 0))
        if amount.sign > 0:
            total[name] = total[name] + amount if name in total else amount
            num_added += 1
    return num_added


def _merge_label_keys(term: Object, labels: Mapping[str, str]) -> None:
    """Adds the pod's own values of these keys to the selector. Upstream: applyLabelKeysToLabelSelector."""
    selector = term.get("labelSelector")
    if selector is None:
        return
    for names, operator in ((term.get("matchLabelKeys", ()), "In"), (term.get("mismatchLabelKeys", ()), "NotIn")):
        for key in names:
            if key in labels:
                selector.setdefault("matchExpressions", []).append(
                    {"key": key, "operator": operator, "values": [labels[key]]}
                )


def _namespace(namespace: Object) -> None:
    namespace["status"] = {"phase": "Active"}
    # Validation refuses a namespace without a name.
    if name := namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def _pending(volume: Object) -> None:
    volume["status"] = {"phase": "Pending"}


def _claim(claim: Object) -> None:
    _pending(claim)
    spec = claim["spec"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)


def _job(job: Object) -> None:
    """Selects the pods of this Job by its uid. Upstream: pkg/registry/batch/job/strategy.go, generateSelector."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("batch.kubernetes.io/", ""):
        labels[f"{prefix}controller-uid"] = metadata.get("uid", "")
        labels[f"{prefix}job-name"] = metadata.get("name", "")
    spec.setdefault("selector", {}).setdefault("matchLabels", {})[JOB_UID_LABEL] = labels[JOB_UID_LABEL]


def _daemon_set(daemon_set: Object) -> None:
    daemon_set["metadata"].setdefault("annotations", {})[GENERATION] = "1"


def _definition(definition: Object) -> None:
    """Serves a definition at once, which upstream leaves to the naming and establishing controllers."""
    spec = definition.get("spec") or {}
    definition["status"] = {
        "acceptedNames": spec.get("names") or {},
        "conditions": [
            {"type": kind, "status": "True", "reason": "NoConflicts"} for kind in ("NamesAccepted", "Established")
        ],
        "storedVersions": [version.get("name") for version in spec.get("versions") or () if version.get("storage")],
    }


def _service(service: Object) -> None:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


_ON_CREATE: Final[Mapping[str, Callable[[Object], None]]] = {
    "Pod": _pod,
    "Namespace": _namespace,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CustomResourceDefinition": _definition,
    "PersistentVolume": _pending,
    "PersistentVolumeClaim": _claim,
    "Service": _service,
}

"""The admission plugins: namespace lifecycle, priority, runtime class, default tolerations, default storage class,
topology labels, protection of pod groups.

Upstream: apiserver/pkg/admission/plugin/namespace/lifecycle; plugin/pkg/admission/priority, runtimeclass,
defaulttolerationseconds, storage/storageclass/setdefault, podtopologylabels, podgroupprotection.
"""

from typing import Final

from extender.rules import statuses
from extender.rules.api_resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    Object,
    Resource,
)
from extender.rules.lookup import Lookup

IMMORTAL_NAMESPACES: Final = ("default", "kube-system", "kube-public")
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_DEFAULT_TOLERATION_SECONDS: Final = 300
GROUP_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that keeps a PodGroup while it has pods."""
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_OLD_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"


def admit_create(lookup: Lookup, resource: Resource, namespace: str, obj: Object) -> None:
    """Completes a new object in place. Raises ApiStatus if it must not be created."""
    if resource.namespaced:
        _check_namespace(lookup, resource, namespace, obj)
    if resource is PODS:
        _resolve_priority(lookup, obj)
        _apply_runtime_class(lookup, obj)
        _tolerate_node_trouble(obj)
    elif resource is POD_GROUPS:
        _resolve_group_priority(lookup, obj)
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if GROUP_FINALIZER not in finalizers:
            finalizers.append(GROUP_FINALIZER)
    elif resource is PRIORITY_CLASSES:
        _check_global_default(lookup, obj)
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        _default_storage_class(lookup, obj)


def admit_update(lookup: Lookup, resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Completes an updated object in place. Raises ApiStatus if the update is refused."""
    if subresource:
        return
    if resource is PODS:
        for name in ("priority", "preemptionPolicy"):
            if new["spec"].get(name) is None and old["spec"].get(name) is not None:
                new["spec"][name] = old["spec"][name]
        _tolerate_node_trouble(new)
    elif resource is PRIORITY_CLASSES:
        _check_global_default(lookup, new)


def admit_delete(resource: Resource, name: str) -> None:
    """Raises ApiStatus 403 for the immortal namespaces."""
    if resource is NAMESPACES and name in IMMORTAL_NAMESPACES:
        raise statuses.forbidden(resource, name, "this namespace may not be deleted")


def _check_namespace(lookup: Lookup, resource: Resource, namespace: str, obj: Object) -> None:
    existing = lookup.find(NAMESPACES, "", namespace)
    if existing is None:
        raise statuses.not_found(NAMESPACES, namespace)
    if (existing.get("status") or {}).get("phase") == "Terminating":
        refusal = statuses.forbidden(
            resource,
            _name_of(obj),
            f"unable to create new content in namespace {namespace} because it is being terminated",
        )
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise statuses.ApiStatus(
            refusal.code, refusal.reason, refusal.message, {**(refusal.details or {}), "causes": [cause]}
        )


def _name_of(obj: Object) -> str:
    return str(obj["metadata"].get("name") or "")


def _resolve_priority(lookup: Lookup, pod: Object) -> None:
    spec, priority_class = pod["spec"], _class_of(lookup, PODS, pod)
    priority, policy = 0, "PreemptLowerPriority"
    if priority_class is not None:
        priority, policy = priority_class.get("value", 0), priority_class.get("preemptionPolicy") or policy
    spec_priority = spec.get("priority")
    if spec_priority is not None and spec_priority != priority:
        why = (
            f"the integer value of priority ({spec_priority}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise statuses.forbidden(PODS, _name_of(pod), why)
    spec_policy = spec.get("preemptionPolicy")
    if spec_policy is not None and spec_policy != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec_policy}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise statuses.forbidden(PODS, _name_of(pod), why)
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def _apply_runtime_class(lookup: Lookup, pod: Object) -> None:
    """Gives the pod the overhead, node selector and tolerations of its runtime class."""
    spec, name = pod["spec"], pod["spec"].get("runtimeClassName")
    runtime_class = lookup.find(RUNTIME_CLASSES, "", name) if name else None
    if name and runtime_class is None:
        raise statuses.forbidden(PODS, _name_of(pod), f'pod rejected: RuntimeClass "{name}" not found')
    class_fields = runtime_class or {}
    overhead, scheduling = (class_fields.get("overhead") or {}).get("podFixed"), class_fields.get("scheduling") or {}
    pod_overhead = spec.get("overhead")
    if pod_overhead and not overhead:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise statuses.forbidden(PODS, _name_of(pod), why)
    if pod_overhead and pod_overhead != overhead:
        why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise statuses.forbidden(PODS, _name_of(pod), why)
    if overhead:
        spec["overhead"] = overhead
    nodes = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if nodes.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {nodes[key]}"
            )
            raise statuses.forbidden(PODS, _name_of(pod), why)
        spec["nodeSelector"] = nodes = {**nodes, key: value}
    tolerations = spec.get("tolerations") or []
    added = [toleration for toleration in scheduling.get("tolerations") or () if toleration not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _resolve_group_priority(lookup: Lookup, group: Object) -> None:
    """Computes a group's priority from its class, unless its feature is off and the fields were dropped."""
    spec = group["spec"]
    if "disruptionMode" not in spec:
        return
    priority_class = _class_of(lookup, POD_GROUPS, group)
    priority = 0 if priority_class is None else priority_class.get("value", 0)
    spec_priority = spec.get("priority")
    if spec_priority is not None and spec_priority != priority:
        why = (
            f"the integer value of priority ({spec_priority}) must not be provided in pod group spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise statuses.forbidden(POD_GROUPS, _name_of(group), why)
    spec["priority"] = priority


def _class_of(lookup: Lookup, resource: Resource, obj: Object) -> Object | None:
    """Returns the object's class, or else the default class, if there is one, whose name the object then gets."""
    name = obj["spec"].get("priorityClassName")
    if name:
        priority_class = lookup.find(PRIORITY_CLASSES, "", name)
        if priority_class is None:
            raise statuses.forbidden(resource, _name_of(obj), f"no PriorityClass with name {name} was found")
        return priority_class
    default = _global_default(lookup)
    if default is not None:
        obj["spec"]["priorityClassName"] = default["metadata"]["name"]
    return default


def _global_default(lookup: Lookup) -> Object | None:
    """Returns the default class; of several, the one with the lowest value. Upstream: getDefaultPriorityClass."""
    classes = [obj for obj in lookup.objects(PRIORITY_CLASSES) if obj.get("globalDefault")]
    return min(classes, key=lambda priority_class: int(priority_class.get("value", 0)), default=None)


def _check_global_default(lookup: Lookup, priority_class: Object) -> None:
    if not priority_class.get("globalDefault"):
        return
    existing = _global_default(lookup)
    if existing is not None and existing["metadata"]["name"] != _name_of(priority_class):
        why = f"PriorityClass {existing['metadata']['name']} is already marked as default. Only one default can exist"
        raise statuses.forbidden(PRIORITY_CLASSES, _name_of(priority_class), why)


def _tolerate_node_trouble(pod: Object) -> None:
    """Adds tolerations of five minutes, unless the pod has its own. Upstream: defaulttolerationseconds, Admit."""
    tolerations = pod["spec"].get("tolerations") or []
    for key in (_NOT_READY, _UNREACHABLE):
        is_covered = any(
            (toleration.get("key") or key) == key and (toleration.get("effect") or "NoExecute") == "NoExecute"
            for toleration in tolerations
        )
        if not is_covered:
            added = {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _DEFAULT_TOLERATION_SECONDS,
            }
            tolerations = pod["spec"]["tolerations"] = [*tolerations, added]


def _default_storage_class(lookup: Lookup, claim: Object) -> None:
    """Names the newest default class; of several from one second, the first by name (storage/util, GetDefaultClass)."""
    annotations = claim["metadata"].get("annotations") or {}
    if claim["spec"].get("storageClassName") is not None or "volume.beta.kubernetes.io/storage-class" in annotations:
        return
    defaults = []
    for storage_class in lookup.objects(STORAGE_CLASSES):
        metadata = storage_class["metadata"]
        marks = metadata.get("annotations") or {}
        if "true" in (marks.get(_DEFAULT_CLASS), marks.get(_OLD_DEFAULT_CLASS)):
            defaults.append(metadata)
    # Sorted twice: newest first, and among those of one second by name.
    defaults.sort(key=lambda metadata: str(metadata["name"]))
    defaults.sort(key=lambda metadata: str(metadata.get("creationTimestamp")), reverse=True)
    if defaults:
        claim["spec"]["storageClassName"] = defaults[0]["name"]

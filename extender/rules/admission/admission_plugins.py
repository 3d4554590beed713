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
"""Keeps a PodGroup while it has pods."""
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
    """Completes an updated object in place. Raises ApiStatus if the update must not be done."""
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
    """Raises ApiStatus 403 for namespaces that every cluster has."""
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
    spec, found = pod["spec"], _class_of(lookup, PODS, pod)
    priority, policy = 0, "PreemptLowerPriority"
    if found is not None:
        priority, policy = found.get("value", 0), found.get("preemptionPolicy") or policy
    given = spec.get("priority")
    if given is not None and given != priority:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise statuses.forbidden(PODS, _name_of(pod), why)
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        why = (
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise statuses.forbidden(PODS, _name_of(pod), why)
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def _apply_runtime_class(lookup: Lookup, pod: Object) -> None:
    """Gives the pod what its runtime class says of it: overhead, nodes and tolerations."""
    spec, name = pod["spec"], pod["spec"].get("runtimeClassName")
    runtime_class = lookup.find(RUNTIME_CLASSES, "", name) if name else None
    if name and runtime_class is None:
        raise statuses.forbidden(PODS, _name_of(pod), f'pod rejected: RuntimeClass "{name}" not found')
    said = runtime_class or {}
    overhead, scheduling = (said.get("overhead") or {}).get("podFixed"), said.get("scheduling") or {}
    given = spec.get("overhead")
    if given and not overhead:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise statuses.forbidden(PODS, _name_of(pod), why)
    if given and given != overhead:
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
    added = [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _resolve_group_priority(lookup: Lookup, group: Object) -> None:
    """Computes a group's priority from its class, unless the fields of that feature were dropped because it is off."""
    spec = group["spec"]
    if "disruptionMode" not in spec:
        return
    found = _class_of(lookup, POD_GROUPS, group)
    priority = 0 if found is None else found.get("value", 0)
    given = spec.get("priority")
    if given is not None and given != priority:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod group spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise statuses.forbidden(POD_GROUPS, _name_of(group), why)
    spec["priority"] = priority


def _class_of(lookup: Lookup, resource: Resource, obj: Object) -> Object | None:
    """Returns the class that the object names, else the default one, whose name it gets then, if there is one."""
    name = obj["spec"].get("priorityClassName")
    if name:
        named = lookup.find(PRIORITY_CLASSES, "", name)
        if named is None:
            raise statuses.forbidden(resource, _name_of(obj), f"no PriorityClass with name {name} was found")
        return named
    found = _global_default(lookup)
    if found is not None:
        obj["spec"]["priorityClassName"] = found["metadata"]["name"]
    return found


def _global_default(lookup: Lookup) -> Object | None:
    """The default class; of several, the one with the lowest value. Upstream: getDefaultPriorityClass."""
    classes = [obj for obj in lookup.objects(PRIORITY_CLASSES) if obj.get("globalDefault")]
    return min(classes, key=lambda each: int(each.get("value", 0)), default=None)


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
        is_said = any(
            (each.get("key") or key) == key and (each.get("effect") or "NoExecute") == "NoExecute"
            for each in tolerations
        )
        if not is_said:
            added = {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _DEFAULT_TOLERATION_SECONDS,
            }
            tolerations = pod["spec"]["tolerations"] = [*tolerations, added]


def _default_storage_class(lookup: Lookup, claim: Object) -> None:
    """Names the newest default class; among those of one second, the first by name (storage/util, GetDefaultClass)."""
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
    defaults.sort(key=lambda each: str(each["name"]))
    defaults.sort(key=lambda each: str(each.get("creationTimestamp")), reverse=True)
    if defaults:
        claim["spec"]["storageClassName"] = defaults[0]["name"]

"""Rules for pods: new ones, updates, and bindings.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodCreate, ValidatePodUpdate.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.rules.admission.strategies import qos_class
from extender.rules.api_resources import Object
from extender.rules.validation import placement_rules
from extender.rules.validation.metadata_rules import (
    MAX_INT32,
    dns_label,
    label_name,
    object_meta,
    object_meta_update,
    range_error,
    subdomain,
)
from extender.rules.validation.pod_spec_rules import images, pod_spec
from extender.values.golang.field_errors import (
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from extender.values.golang.int64 import parse_int64
from extender.values.objects.name_syntax import subdomain_errors
from extender.values.objects.resource_names import CPU, MEMORY

MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_UPDATABLE: Final = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")
_BOUND: Final = "may not be set on pods that are already bound to a node"
_MAPPED: Final = ("containerName", "resourceName", "requestName")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = _metadata_and_spec(obj)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def pod_update(new: Object, old: Object) -> list[FieldError]:
    """Checks that only images, deadline, gates and added tolerations change; a gated pod may narrow its placement."""
    errors = (
        object_meta_update(new["metadata"], old["metadata"]) + _metadata_and_spec(new) + _annotations_update(new, old)
    )
    spec, former = new["spec"], old["spec"]
    for part in ("containers", "initContainers"):
        wrong, stop = _containers_update(f"spec.{part}", spec.get(part) or (), former.get(part) or ())
        errors += wrong
        if stop:
            return errors
    wrong, stop = _deadline_update(spec.get("activeDeadlineSeconds"), former.get("activeDeadlineSeconds"))
    errors += wrong
    if stop:
        return errors
    errors += _added_tolerations(spec.get("tolerations") or (), former.get("tolerations") or ())
    errors += _removed_gates(spec.get("schedulingGates") or (), former.get("schedulingGates") or ())
    if spec == former:
        return errors
    rest = _without_updatable(spec, former)
    if former.get("schedulingGates"):
        errors += _narrowed(rest, former)
    if rest != former:
        # Upstream adds a diff of its internal types here.
        errors.append(forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}\n"))
    return errors


def pod_status_update(new: Object, old: Object) -> list[FieldError]:
    status, former, spec = new["status"], old.get("status", {}), old["spec"]
    errors = object_meta_update(new["metadata"], old["metadata"]) + _annotations_update(new, old)
    for place, condition in enumerate(status.get("conditions") or ()):
        if condition.get("type") not in _SYSTEM_CONDITIONS:
            # The path is upstream's.
            errors += label_name(f"metadata.conditions[{place}].Type", condition.get("type", ""))
    if new["spec"].get("nodeName") != spec.get("nodeName"):
        errors.append(forbidden("status.nodeName", "may not be changed directly"))
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != former.get("nominatedNodeName"):
        errors += all_invalid("status.nominatedNodeName", nominated, subdomain_errors(nominated))
        if spec.get("nodeName"):
            errors.append(forbidden("status.nominatedNodeName", _BOUND))
    errors += immutable("status.qosClass", status.get("qosClass", ""), former.get("qosClass", ""))
    for name in ("containerStatuses", "initContainerStatuses"):
        errors += _transitions(f"status.{name}", status.get(name) or (), former.get(name) or (), spec)
    errors += _claim_statuses("status.resourceClaimStatuses", status.get("resourceClaimStatuses") or (), spec)
    return errors + _extended_resource_claim(
        "status.extendedResourceClaimStatus", status.get("extendedResourceClaimStatus"), spec
    )


def pod_resize(new: Object, old: Object) -> list[FieldError]:
    """Returns the errors of a Pod with changed amounts of its containers. Upstream: ValidatePodResize."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods cannot be resized")]
    errors = object_meta_update(new["metadata"], old["metadata"]) + _metadata_and_spec(new)
    before, after = qos_class(old["spec"]), qos_class(new["spec"])
    if before != after:
        errors.append(invalid("spec", after, "Pod QOS Class may not change as a result of resizing"))
    if _fixed_amounts(new["spec"]) != _fixed_amounts(old["spec"]):
        # Upstream adds a diff here.
        errors.append(forbidden("spec", "only cpu and memory resources are mutable\n"))
    return errors


def _fixed_amounts(spec: Object) -> list[Object]:
    return [
        {name: amount for name, amount in amounts.items() if name not in (CPU, MEMORY)}
        for part in ("initContainers", "containers")
        for container in spec.get(part) or ()
        for side in ("requests", "limits")
        for amounts in ((container.get("resources") or {}).get(side) or {},)
    ]


def binding(obj: Object) -> list[FieldError]:
    """Returns the errors of a Binding. Upstream: ValidatePodBinding."""
    target = obj.get("target") or {}
    errors = []
    if target.get("kind") and target["kind"] != "Node":
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    return errors


def _metadata_and_spec(obj: Object) -> list[FieldError]:
    """Upstream: validatePodMetadataAndSpec."""
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=True) + _annotations(obj) + pod_spec("spec", spec, is_pod=True)
    return (
        errors
        + images("spec.containers", spec.get("containers") or ())
        + images("spec.initContainers", spec.get("initContainers") or ())
    )


def _annotations(obj: Object) -> list[FieldError]:
    """Upstream: ValidatePodSpecificAnnotations."""
    annotations = obj["metadata"].get("annotations") or {}
    errors = []
    if MIRROR in annotations and not obj["spec"].get("nodeName"):
        path = f"metadata.annotations[{MIRROR}]"
        errors.append(invalid(path, annotations[MIRROR], "must set spec.nodeName if mirror pod annotation is set"))
    cost = annotations.get(DELETION_COST)
    if cost is not None:
        number = parse_int64(cost)
        if number is None or not -(1 << 31) <= number < 1 << 31:
            errors.append(invalid(f"metadata.annotations[{DELETION_COST}]", cost, "must be a 32bit integer"))
    return errors


def _annotations_update(new: Object, old: Object) -> list[FieldError]:
    """Upstream: ValidatePodSpecificAnnotationUpdates."""
    annotations, former = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    path = f"metadata.annotations[{MIRROR}]"
    errors = []
    if MIRROR in former and annotations.get(MIRROR) != former[MIRROR]:
        errors.append(forbidden(path, "may not remove or update mirror pod annotation"))
    if MIRROR in annotations and MIRROR not in former:
        errors.append(forbidden(path, "may not add mirror pod annotation"))
    return errors + _annotations(new)


def _containers_update(path: str, new: Sequence[Object], old: Sequence[Object]) -> tuple[list[FieldError], bool]:
    if len(new) != len(old):
        return [forbidden(path, "pod updates may not add or remove containers")], True
    errors = [required(f"{path}[{place}].image") for place, container in enumerate(new) if not container.get("image")]
    return errors + images(path, new), False


def _deadline_update(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        return [
            invalid(path, None, "must not update from a positive integer to nil value")
        ] if old is not None else [], False
    if not 0 <= new <= MAX_INT32:
        return [invalid(path, new, range_error(0, MAX_INT32))], True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _added_tolerations(new: Sequence[Object], old: Sequence[Object]) -> list[FieldError]:
    """Upstream: validateOnlyAddedTolerations."""
    present = {frozenset(_but(toleration, "tolerationSeconds").items()) for toleration in new}
    if any(frozenset(_but(toleration, "tolerationSeconds").items()) not in present for toleration in old):
        return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]
    return placement_rules.tolerations("spec.tolerations", new)


def _removed_gates(new: Sequence[Object], old: Sequence[Object]) -> list[FieldError]:
    """Upstream: validateOnlyDeletedSchedulingGates."""
    names = {gate["name"] for gate in old}
    return [
        forbidden(
            f"spec.schedulingGates[{place}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for place, gate in enumerate(new)
        if gate["name"] not in names
    ]


def _without_updatable(spec: Object, former: Object) -> Object:
    """Returns the new spec with the old values of all fields that may change."""
    rest = copy.deepcopy(spec)
    for part in ("containers", "initContainers"):
        for container, before in zip(rest.get(part) or (), former.get(part) or (), strict=True):
            _take(container, before, "image")
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _take(rest, former, name)
    grace = former.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = grace
    return rest


def _narrowed(rest: Object, former: Object) -> list[FieldError]:
    """Checks the changes of a gated pod's node selection, and gives `rest` the old one."""
    errors: list[FieldError] = []
    chosen, before = rest.get("nodeSelector") or {}, former.get("nodeSelector") or {}
    if any(chosen.get(key) != value for key, value in before.items()):
        # Upstream: validateNodeSelectorMutation.
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", chosen, detail))
    _take(rest, former, "nodeSelector")
    new, old = (rest.get("affinity") or {}).get("nodeAffinity"), (former.get("affinity") or {}).get("nodeAffinity")
    if new == old:
        return errors
    errors += _affinity_narrowed("spec.affinity.nodeAffinity", new, old)
    affinity = rest.setdefault("affinity", {})
    affinity.pop("nodeAffinity", None)
    if old is not None:
        affinity["nodeAffinity"] = old
    if not affinity and not former.get("affinity"):
        _take(rest, former, "affinity")
    return errors


def _affinity_narrowed(path: str, new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> list[FieldError]:
    """Upstream: validateNodeAffinityMutation."""
    before = (old or {}).get(_REQUIRED)
    if before is None:
        return []
    terms_path = f"{path}.{_REQUIRED}"
    after = (new or {}).get(_REQUIRED)
    old_terms, new_terms = before.get("nodeSelectorTerms") or [], (after or {}).get("nodeSelectorTerms") or []
    if (old_terms and not new_terms) or len(old_terms) != len(new_terms):
        return [
            invalid(
                f"{terms_path}.nodeSelectorTerms",
                new_terms,
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
            )
        ]
    errors = []
    for place, was in enumerate(old_terms):
        now = new_terms[place]
        is_extended = all(
            (was.get(part) or []) == (now.get(part) or [])[: len(was.get(part) or [])]
            for part in ("matchExpressions", "matchFields")
        )
        is_empty = not was.get("matchExpressions") and not was.get("matchFields")
        if not is_extended or (is_empty and was != now):
            detail = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid(f"{terms_path}.nodeSelectorTerms[{place}]", now, detail))
    return errors


def _transitions(path: str, new: Sequence[Object], old: Sequence[Object], spec: Object) -> list[FieldError]:
    """Checks that containers of a pod without restarts stay terminated. Upstream: ValidateContainerStateTransition."""
    policy = spec.get("restartPolicy")
    sidecars = {
        container.get("name")
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    errors: list[FieldError] = []
    if policy == "Always":
        return errors
    for place, before in enumerate(old):
        ended = (before.get("state") or {}).get("terminated")
        if ended is None or (ended.get("exitCode", 0) != 0 and policy == "OnFailure") or before.get("name") in sidecars:
            continue
        states = [now.get("state") or {} for now in new if now.get("name") == before.get("name")]
        refusal = forbidden(f"{path}[{place}].state", "may not be transitioned to non-terminated state")
        errors += [refusal for state in states if state.get("terminated") is None]
    return errors


def _claim_statuses(path: str, statuses: Sequence[Object], spec: Object) -> list[FieldError]:
    """Upstream: validatePodResourceClaimStatuses."""
    claims = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    errors = []
    names = set()
    for place, status in enumerate(statuses):
        name_path, name = f"{path}[{place}].name", status.get("name", "")
        if name not in claims:
            errors.append(invalid(name_path, name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in names:
            errors.append(duplicate(name_path, name))
        names.add(name)
    return errors


def _extended_resource_claim(path: str, status: Object | None, spec: Object) -> list[FieldError]:
    """Returns the errors of the claim for extended resources (validatePodExtendedResourceClaimStatus)."""
    if status is None:
        return []
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    requests = {container["name"]: (container.get("resources") or {}).get("requests") or {} for container in containers}
    mappings = status.get("requestMappings") or ()
    errors = [] if mappings else [required(f"{path}.requestMappings", "at least one request mapping is required")]
    triples = set()
    for place, mapping in enumerate(mappings):
        mapping_path = f"{path}.requestMappings[{place}]"
        container, resource, request = (mapping.get(name, "") for name in _MAPPED)
        if container not in requests:
            errors.append(
                invalid(
                    f"{mapping_path}.containerName",
                    container,
                    f"must match the name of an entry in {_in_containers('name')}",
                )
            )
        elif resource not in requests[container]:
            detail = f"must match the extended resource name of an entry in {_in_containers('resources.requests')}"
            errors.append(invalid(f"{mapping_path}.resourceName", resource, detail))
        errors += dns_label(f"{path}.requestName", request)
        if (container, resource, request) in triples:
            errors += [duplicate(f"{mapping_path}.{name}", mapping.get(name, "")) for name in _MAPPED]
        triples.add((container, resource, request))
    name = status.get("resourceClaimName", "")
    return errors + (subdomain(f"{path}.resourceClaimName", name) if name else [required(f"{path}.resourceClaimName")])


def _in_containers(part: str) -> str:
    return f"spec.initContainers.{part} or spec.containers.{part}"


def _but(value: Object, name: str) -> Object:
    return {key: member for key, member in value.items() if key != name}


def _take(new: Object, old: Object, name: str) -> None:
    if name in old:
        new[name] = copy.deepcopy(old[name])
    else:
        new.pop(name, None)

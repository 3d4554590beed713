"""Rules for volumes, claims, and the kinds of storage.k8s.io.

Upstream: validation.go of pkg/apis/core/validation and storage/validation.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.rules.api_resources import Object
from extender.rules.validation.amount_rules import quantity_value
from extender.rules.validation.metadata_rules import annotation_bytes, label_selector, object_meta, object_meta_update
from extender.rules.validation.placement_rules import node_selector
from extender.values.golang.field_errors import (
    NOT_POSITIVE,
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    immutable,
    in_go,
    invalid,
    non_negative,
    not_supported,
    one_of,
    required,
    too_long,
)
from extender.values.objects.name_syntax import LABEL_MAX_LENGTH, label_key_errors, subdomain_errors
from extender.values.objects.quantity import quantity_of

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM_POLICIES_OF_VOLUMES: Final = ("Delete", "Recycle", "Retain")
_PER_POD: Final = "may not use ReadWriteOncePod with other access modes"
_TODAY: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""The former names of well-known labels -> their present ones."""
_NO_SOURCES: Final = frozenset(
    {
        "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
        "volumeMode", "nodeAffinity", "volumeAttributesClassName",
    }
)  # fmt: skip
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_RECLAIM_POLICIES: Final = ("Delete", "Retain")
_PARAMETERS_MAX_LENGTH: Final = 512
_PARAMETERS_MAX_SIZE: Final = 256 * 1024
_NODE_ID_MAX_LENGTH: Final = 256
_DRIVER_FLAGS: Final = ("podInfoOnMount", "storageCapacity")
_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES: Final = ("Persistent", "Ephemeral")


def _sources(spec: Object) -> Object:
    return {name: value for name, value in spec.items() if name not in _NO_SOURCES and value is not None}


def persistent_volume(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False)
    if not spec.get("accessModes"):
        errors.append(required("spec.accessModes"))
    errors += _access_modes("spec.accessModes", spec.get("accessModes") or ())
    errors += _capacity(spec.get("capacity") or {})
    # Upstream looks at hostPath first.
    sources = sorted(_sources(spec), key=lambda name: name != "hostPath")
    if not sources:
        errors.append(required("spec", "must specify a volume type"))
    errors += [forbidden(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
    if "local" in sources and not spec.get("nodeAffinity"):
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _RECLAIM_POLICIES_OF_VOLUMES:
        errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES_OF_VOLUMES))
    affinity = spec.get("nodeAffinity")
    if affinity is not None and affinity.get("required") is None:
        errors.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
    elif affinity is not None:
        errors += node_selector("spec.nodeAffinity.required", affinity["required"])
    errors += _class_name("spec.storageClassName", spec.get("storageClassName", ""))
    return errors + _volume_mode(spec)


def persistent_volume_update(new: Object, old: Object) -> list[FieldError]:
    errors = persistent_volume(new) + object_meta_update(new["metadata"], old["metadata"])
    sources = [_sources(obj["spec"]) for obj in (new, old)]
    if sources[0] != sources[1]:
        errors.append(
            forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
        )
    errors += immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
    former = old["spec"].get("nodeAffinity")
    if former is not None:
        affinity = new["spec"].get("nodeAffinity")
        errors += immutable("nodeAffinity", affinity, _spelt_as(affinity, former))
    return errors


def _spelt_as(affinity: Object | None, former: Object) -> Object:
    """Returns the former affinity with present names of labels where the new one has them (validatePvNodeAffinity)."""
    former = copy.deepcopy(former)
    for new, old in zip(_requirements(affinity), _requirements(former), strict=False):
        if new.get("key") == _TODAY.get(old.get("key", "")):
            old["key"] = new["key"]
    return former


def _requirements(affinity: Object | None) -> list[Object]:
    terms = ((affinity or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    return [requirement for term in terms for requirement in term.get("matchExpressions") or ()]


def persistent_volume_claim(obj: Object) -> list[FieldError]:
    return object_meta(obj["metadata"], namespaced=True) + claim_spec("spec", obj["spec"])


def persistent_volume_claim_update(new: Object, old: Object) -> list[FieldError]:
    """Checks that only the size of a bound claim, or the volume of another claim, changes."""
    errors = object_meta_update(new["metadata"], old["metadata"]) + persistent_volume_claim(new)
    spec, former = copy.deepcopy(new["spec"]), copy.deepcopy(old["spec"])
    if not former.get("volumeName") and "volumeName" in spec:
        former["volumeName"] = spec["volumeName"]
    if former.get("storageClassName") is None and spec.get("storageClassName") is not None:
        former["storageClassName"] = spec["storageClassName"]
    if new.get("status", {}).get("phase") == "Bound":
        for claim in (spec, former):
            (claim["resources"].get("requests") or {}).pop("storage", None)
            claim.pop("volumeAttributesClassName", None)
    if spec != former:
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
            "claims\n"
        )
        errors.append(forbidden("spec", detail))
    size, before = _size(new["spec"]), _size(old["spec"])
    capacity = quantity_of((old.get("status", {}).get("capacity") or {}).get("storage", "0"))
    if size.cmp(before) < 0 and size.cmp(capacity) <= 0:
        errors.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
    return errors + immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def claim_spec(path: str, spec: Object) -> list[FieldError]:
    """Returns the errors of the spec of a claim. Upstream: ValidatePersistentVolumeClaimSpec."""
    modes = spec.get("accessModes") or ()
    errors = [] if modes else [required(f"{path}.accessModes", "at least 1 access mode is required")]
    errors += label_selector(f"{path}.selector", spec.get("selector"))
    errors += _access_modes(f"{path}.accessModes", modes)
    size = (spec.get("resources", {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif quantity_of(size).sign <= 0:
        errors.append(invalid(f"{path}.resources[storage]", size, NOT_POSITIVE))
    errors += _class_name(f"{path}.storageClassName", spec.get("storageClassName") or "")
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in _VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    return errors


def _size(spec: Object) -> Any:
    return quantity_of((spec["resources"].get("requests") or {}).get("storage", "0"))


def _access_modes(path: str, modes: Sequence[str]) -> list[FieldError]:
    errors = [not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        errors.append(forbidden(path, _PER_POD))
    return errors


def _capacity(capacity: Object) -> list[FieldError]:
    if not capacity:
        return [required("spec.capacity"), not_supported("spec.capacity", None, ("storage",))]
    errors = []
    if "storage" not in capacity or len(capacity) > 1:
        errors.append(not_supported("spec.capacity", capacity, ("storage",)))
    for name, amount in capacity.items():
        if quantity_of(amount).sign <= 0:
            errors.append(invalid(f"spec.capacity[{name}]", amount, NOT_POSITIVE))
    return errors


def _class_name(path: str, name: str) -> list[FieldError]:
    return all_invalid(path, name, subdomain_errors(name)) if name else []


def _volume_mode(spec: Object) -> list[FieldError]:
    mode = spec.get("volumeMode")
    return [] if mode is None or mode in _VOLUME_MODES else [not_supported("spec.volumeMode", mode, _VOLUME_MODES)]


def storage_class(obj: Object) -> list[FieldError]:
    provisioner = obj.get("provisioner", "")
    errors = object_meta(obj["metadata"], namespaced=False)
    errors += (
        all_invalid("provisioner", provisioner.lower(), label_key_errors(provisioner.lower()))
        if provisioner
        else [required("provisioner")]
    )
    errors += _parameters("parameters", obj.get("parameters") or {})
    errors += one_of("reclaimPolicy", obj.get("reclaimPolicy"), _RECLAIM_POLICIES) if obj.get("reclaimPolicy") else []
    return errors + one_of("volumeBindingMode", obj.get("volumeBindingMode"), _BINDING_MODES) + _topologies(obj)


def _parameters(path: str, parameters: Mapping[str, str]) -> list[FieldError]:
    if len(parameters) > _PARAMETERS_MAX_LENGTH:
        return [too_long(path, _PARAMETERS_MAX_LENGTH)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    is_large = annotation_bytes(parameters) > _PARAMETERS_MAX_SIZE
    return [*errors, too_long(path, _PARAMETERS_MAX_SIZE)] if is_large else errors


def storage_class_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta_update(new["metadata"], old["metadata"])
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(name) != old.get(name):
            errors.append(forbidden(name, f"updates to {name} are forbidden."))
    return errors + immutable("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))


def csi_node(obj: Object) -> list[FieldError]:
    return object_meta(obj["metadata"], namespaced=False) + _node_drivers(obj)


def csi_node_update(new: Object, old: Object) -> list[FieldError]:
    """Checks that only the counts of drivers change."""
    errors = object_meta_update(new["metadata"], old["metadata"]) + _node_drivers(new)
    for former in old["spec"].get("drivers") or ():
        for driver in new["spec"].get("drivers") or ():
            if driver.get("name") == former.get("name"):
                # Upstream compares and prints the driver without what it can allocate.
                fields = [in_go(fixed, "Name", "NodeID", "TopologyKeys") for fixed in (driver, former)]
                errors += immutable("spec.drivers", *({**fixed, "Allocatable": None} for fixed in fields))
    return errors


def csi_driver(obj: Object) -> list[FieldError]:
    return object_meta(obj["metadata"], namespaced=False) + _driver_spec(obj["spec"])


def csi_driver_update(new: Object, old: Object) -> list[FieldError]:
    """Returns the errors of an updated CSIDriver. Upstream's path has another name than the field."""
    spec, former = new["spec"], old["spec"]
    errors = object_meta_update(new["metadata"], old["metadata"]) + _driver_spec(spec)
    errors += immutable("spec.attachedRequired", spec.get("attachRequired"), former.get("attachRequired"))
    return errors + immutable(
        "spec.volumeLifecycleModes", spec.get("volumeLifecycleModes"), former.get("volumeLifecycleModes")
    )


def _driver_spec(spec: Object) -> list[FieldError]:
    errors = [
        required(f"spec.{path}")
        for name, path in (("attachRequired", "attachedRequired"), *((name, name) for name in _DRIVER_FLAGS))
        if spec.get(name) is None
    ]
    policy = spec.get("fsGroupPolicy")
    errors += one_of("spec.fsGroupPolicy", policy, _GROUP_POLICIES) if policy is not None else []
    for mode in spec.get("volumeLifecycleModes") or ():
        errors += one_of("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES)
    return errors


def storage_capacity(obj: Object) -> list[FieldError]:
    errors = object_meta(obj["metadata"], namespaced=True) + label_selector("nodeTopology", obj.get("nodeTopology"))
    name = obj.get("storageClassName", "")
    errors += all_invalid("storageClassName", name, subdomain_errors(name))
    return errors + (quantity_value("capacity", "storage", obj["capacity"]) if obj.get("capacity") is not None else [])


def storage_capacity_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta_update(new["metadata"], old["metadata"])
    for name in ("nodeTopology", "storageClassName"):
        errors += immutable(name, new.get(name), old.get(name))
    return errors


def attachment(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False) + _attachment_spec(spec)
    errors += _driver_name("spec.attacher", spec["attacher"]) if spec.get("attacher") else []
    name = (spec.get("source") or {}).get("persistentVolumeName")
    return errors + (
        all_invalid("spec.source.persistentVolumeName", name, subdomain_errors(name)) if name is not None else []
    )


def attachment_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta(new["metadata"], namespaced=False) + _attachment_spec(new["spec"])
    return errors + ([invalid("spec", new["spec"], "field is immutable")] if new["spec"] != old["spec"] else [])


def _attachment_spec(spec: Object) -> list[FieldError]:
    errors = [] if spec.get("attacher") else [required("spec.attacher")]
    source = spec.get("source") or {}
    sources = [name for name in ("inlineVolumeSpec", "persistentVolumeName") if source.get(name) is not None]
    if not sources:
        errors.append(required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    elif len(sources) > 1:
        errors.append(forbidden("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    elif source.get("persistentVolumeName") == "":
        errors.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    name = spec.get("nodeName", "")
    return errors + all_invalid("spec.nodeName", name, subdomain_errors(name))


def _topologies(obj: Object) -> list[FieldError]:
    """Upstream: validateAllowedTopologies, which compares each term with as many empty ones as there are terms, too."""
    errors = []
    terms = obj.get("allowedTopologies") or []
    earlier: list[dict[str, set[str]]] = [{} for _ in terms]
    for place, term in enumerate(terms):
        path = f"allowedTopologies[{place}].matchLabelExpressions"
        values_by_key: dict[str, set[str]] = {}
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = expression.get("key", ""), expression.get("values") or []
            errors += [] if values else [required(f"{path}[{number}].values")]
            errors += [
                duplicate(f"{path}[{number}].values[{index}]", value)
                for index, value in enumerate(values)
                if value in values[:index]
            ]
            errors += all_invalid(f"{path}[{number}].key", key, label_key_errors(key))
            if key in values_by_key:
                errors.append(duplicate(f"{path}[{number}].key", key))
            values_by_key[key] = set(values)
        errors += [duplicate(path, "")] * earlier.count(values_by_key)
        earlier.append(values_by_key)
    return errors


def _node_drivers(obj: Object) -> list[FieldError]:
    errors = []
    names = set()
    for place, driver in enumerate(obj["spec"].get("drivers") or ()):
        driver_path, name = f"spec.drivers[{place}]", driver.get("name", "")
        errors += _driver_name(f"{driver_path}.name", name)
        node_id = driver.get("nodeID", "")
        if not node_id:
            errors.append(required(f"{driver_path}.nodeID"))
        if len(node_id) > _NODE_ID_MAX_LENGTH:
            errors.append(
                invalid(f"{driver_path}.nodeID", node_id, f"must be {_NODE_ID_MAX_LENGTH} characters or less")
            )
        errors += non_negative(f"{driver_path}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
        if name in names:
            errors.append(duplicate(f"{driver_path}.name", name))
        names.add(name)
        errors += _topology_keys(driver_path, driver.get("topologyKeys") or [])
    return errors


def _topology_keys(path: str, keys: Sequence[str]) -> list[FieldError]:
    errors = []
    for place, key in enumerate(keys):
        errors += [] if key else [required(path)]
        errors += [duplicate(path, key)] if key in keys[:place] else []
        errors += all_invalid(path, key, label_key_errors(key))
    return errors


def _driver_name(path: str, name: str) -> list[FieldError]:
    """Upstream: ValidateCSIDriverName."""
    if not name:
        return [required(path)]
    errors = [too_long(path, LABEL_MAX_LENGTH)] if len(name) > LABEL_MAX_LENGTH else []
    return errors + all_invalid(path, name, subdomain_errors(name.lower()))

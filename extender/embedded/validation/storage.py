"""The kinds of storage.k8s.io.

Upstream: pkg/apis/storage/validation/validation.go (v1.36.2).
"""

from typing import Any, Final

from extender.embedded.resources import Object
from extender.embedded.validation.metadata import label_selector, object_meta, object_meta_update
from extender.embedded.validation.resources import quantity_value
from extender.golang.field_errors import (
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    one_of,
    required,
    too_long,
)
from extender.objects.validation import LABEL_MAX_LENGTH, label_key_errors, subdomain_errors

_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_RECLAIM_POLICIES: Final = ("Delete", "Retain")
_LIFECYCLE_MODES: Final = ("Ephemeral", "Persistent")
_FS_GROUP_POLICIES: Final = ("ReadWriteOnceWithFSType", "File", "None")
_MAX_NODE_ID: Final = 192
_FROZEN_OF_DRIVER: Final = ("attachRequired", "volumeLifecycleModes")


def storage_class(obj: Object) -> list[FieldError]:
    """A StorageClass."""
    provisioner = obj.get("provisioner", "")
    errors = object_meta(obj["metadata"], namespaced=False)
    errors += all_invalid("provisioner", provisioner, label_key_errors(provisioner.lower())) if provisioner else [required("provisioner")]
    errors += one_of("reclaimPolicy", obj.get("reclaimPolicy"), _RECLAIM_POLICIES) if obj.get("reclaimPolicy") else []
    return errors + one_of("volumeBindingMode", obj.get("volumeBindingMode"), _BINDING_MODES) + _topologies(obj)


def storage_class_update(new: Object, old: Object) -> list[FieldError]:
    """A StorageClass that replaces another one: most of it stays."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(name) != old.get(name):
            errors.append(forbidden(name, f"updates to {name} are forbidden."))
    return errors + immutable("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))


def csi_node(obj: Object) -> list[FieldError]:
    """A CSINode."""
    return object_meta(obj["metadata"], namespaced=False) + _node_drivers(obj)


def csi_node_update(new: Object, old: Object) -> list[FieldError]:
    """A CSINode that replaces another one: a driver that stays says what it said, but for its count."""
    errors = object_meta_update(new["metadata"], old["metadata"]) + _node_drivers(new)
    former = {driver.get("name"): driver for driver in old["spec"].get("drivers") or ()}
    for place, driver in enumerate(new["spec"].get("drivers") or ()):
        before = former.get(driver.get("name"))
        if before is not None and _but(driver, "allocatable") != _but(before, "allocatable"):
            errors.append(invalid(f"spec.drivers[{place}]", driver, "field is immutable"))
    return errors


def csi_driver(obj: Object) -> list[FieldError]:
    """A CSIDriver."""
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False) + _driver_name("metadata.name", name)
    for attribute in ("attachRequired", "podInfoOnMount", "storageCapacity"):
        if spec.get(attribute) is None:
            errors.append(required(f"spec.{attribute}"))
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLE_MODES:
            errors.append(not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES))
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _FS_GROUP_POLICIES:
        errors.append(not_supported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES))
    return errors


def csi_driver_update(new: Object, old: Object) -> list[FieldError]:
    """A CSIDriver that replaces another one."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    for name in _FROZEN_OF_DRIVER:
        errors += immutable(f"spec.{name}", new["spec"].get(name), old["spec"].get(name))
    return errors


def storage_capacity(obj: Object) -> list[FieldError]:
    """A CSIStorageCapacity."""
    errors = object_meta(obj["metadata"], namespaced=True)
    name = obj.get("storageClassName", "")
    errors += all_invalid("storageClassName", name, subdomain_errors(name))
    for amount in ("capacity", "maximumVolumeSize"):
        if obj.get(amount) is not None:
            errors += quantity_value(amount, "storage", obj[amount])
    return errors + label_selector("nodeTopology", obj.get("nodeTopology"))


def storage_capacity_update(new: Object, old: Object) -> list[FieldError]:
    """A CSIStorageCapacity that replaces another one: only its amounts change."""
    errors = storage_capacity(new) + object_meta_update(new["metadata"], old["metadata"])
    for name in ("nodeTopology", "storageClassName"):
        errors += immutable(name, new.get(name), old.get(name))
    return errors


def attachment(obj: Object) -> list[FieldError]:
    """A VolumeAttachment."""
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False) + _driver_name("spec.attacher", spec.get("attacher", ""))
    source = spec.get("source") or {}
    given = [name for name in ("inlineVolumeSpec", "persistentVolumeName") if source.get(name) is not None]
    if not given:
        errors.append(required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    elif len(given) > 1:
        errors.append(forbidden("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    elif source.get("persistentVolumeName") == "":
        errors.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    name = spec.get("nodeName", "")
    return errors + all_invalid("spec.nodeName", name, subdomain_errors(name))


def attachment_update(new: Object, old: Object) -> list[FieldError]:
    """A VolumeAttachment that replaces another one: only its status changes."""
    errors = attachment(new)
    return errors + ([invalid("spec", new["spec"], "field is immutable")] if new["spec"] != old["spec"] else [])


def _topologies(obj: Object) -> list[FieldError]:
    errors = []
    for place, term in enumerate(obj.get("allowedTopologies") or ()):
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            here = f"allowedTopologies[{place}].matchLabelExpressions[{number}]"
            values = expression.get("values") or []
            errors += [] if values else [required(f"{here}.values")]
            errors += [duplicate(f"{here}.values[{each}]", value) for each, value in enumerate(values) if value in values[:each]]
            errors += all_invalid(f"{here}.key", expression.get("key", ""), label_key_errors(expression.get("key", "")))
    return errors


def _node_drivers(obj: Object) -> list[FieldError]:
    errors = []
    names = set()
    for place, driver in enumerate(obj["spec"].get("drivers") or ()):
        here, name = f"spec.drivers[{place}]", driver.get("name", "")
        errors += _driver_name(f"{here}.name", name)
        if not driver.get("nodeID"):
            errors.append(required(f"{here}.nodeID"))
        elif len(driver["nodeID"]) > _MAX_NODE_ID:
            errors.append(invalid(f"{here}.nodeID", driver["nodeID"], f"must be {_MAX_NODE_ID} characters or less"))
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            errors.append(invalid(f"{here}.allocatable.count", count, "must be greater than or equal to 0"))
        keys = driver.get("topologyKeys") or []
        errors += [duplicate(f"{here}.topologyKeys", key) for each, key in enumerate(keys) if key in keys[:each]]
        errors += [error for key in keys for error in all_invalid(f"{here}.topologyKeys", key, label_key_errors(key))]
    return errors


def _driver_name(path: str, name: str) -> list[FieldError]:
    """Upstream: ValidateCSIDriverName."""
    if not name:
        return [required(path)]
    errors = [too_long(path, LABEL_MAX_LENGTH)] if len(name) > LABEL_MAX_LENGTH else []
    return errors + all_invalid(path, name, subdomain_errors(name.lower()))


def _but(value: Object, name: str) -> dict[str, Any]:
    return {key: member for key, member in value.items() if key != name}

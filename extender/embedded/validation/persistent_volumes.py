"""PersistentVolume and PersistentVolumeClaim.

Upstream: pkg/apis/core/validation/validation.go, ValidatePersistentVolume, ValidatePersistentVolumeClaim (v1.36.2).
"""

import copy
from collections.abc import Sequence
from typing import Any, Final

from extender.embedded.resources import Object
from extender.embedded.validation.metadata import label_selector, object_meta, object_meta_update
from extender.embedded.validation.scheduling import node_selector
from extender.golang.field_errors import NOT_POSITIVE, FieldError, all_invalid, forbidden, immutable, invalid, not_supported, required
from extender.objects.quantity import quantity_of
from extender.objects.validation import subdomain_errors

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_PER_POD: Final = "may not use ReadWriteOncePod with other access modes"
_TODAY: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""What well-known labels of nodes were called, and what they are called."""
_NO_SOURCES: Final = frozenset(
    {
        "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions", "volumeMode",
        "nodeAffinity", "volumeAttributesClassName",
    }
)  # fmt: skip


def _sources(spec: Object) -> Object:
    return {name: value for name, value in spec.items() if name not in _NO_SOURCES and value is not None}


def volume(obj: Object) -> list[FieldError]:
    """A PersistentVolume."""
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False)
    if not spec.get("accessModes"):
        errors.append(required("spec.accessModes"))
    errors += _access_modes("spec.accessModes", spec.get("accessModes") or ())
    errors += _capacity(spec.get("capacity") or {})
    given = list(_sources(spec))
    if not given:
        errors.append(required("spec", "must specify a volume type"))
    errors += [forbidden(f"spec.{name}", "may not specify more than 1 volume type") for name in given[1:]]
    if "local" in given and not spec.get("nodeAffinity"):
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _RECLAIM_POLICIES:
        errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES))
    affinity = spec.get("nodeAffinity")
    if affinity is not None and affinity.get("required") is None:
        errors.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
    elif affinity is not None:
        errors += node_selector("spec.nodeAffinity.required", affinity["required"])
    errors += _class_name("spec.storageClassName", spec.get("storageClassName", ""))
    return errors + _volume_mode(spec)


def volume_update(new: Object, old: Object) -> list[FieldError]:
    """A PersistentVolume that replaces another one."""
    errors = volume(new) + object_meta_update(new["metadata"], old["metadata"])
    sources = [_sources(obj["spec"]) for obj in (new, old)]
    if sources[0] != sources[1]:
        errors.append(forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"))
    errors += immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
    former = old["spec"].get("nodeAffinity")
    if former is not None:
        wanted = new["spec"].get("nodeAffinity")
        errors += immutable("nodeAffinity", wanted, _spelt_as(wanted, former))
    return errors


def _spelt_as(wanted: Object | None, former: Object) -> Object:
    """The former affinity, with the labels under the names that they have today where the wanted one has them so.

    Upstream: validatePvNodeAffinity.
    """
    former = copy.deepcopy(former)
    for new, old in zip(_requirements(wanted), _requirements(former), strict=False):
        if new.get("key") == _TODAY.get(old.get("key", "")):
            old["key"] = new["key"]
    return former


def _requirements(affinity: Object | None) -> list[Object]:
    terms = ((affinity or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    return [requirement for term in terms for requirement in term.get("matchExpressions") or ()]


def claim(obj: Object) -> list[FieldError]:
    """A PersistentVolumeClaim."""
    return object_meta(obj["metadata"], namespaced=True) + claim_spec("spec", obj["spec"])


def claim_update(new: Object, old: Object) -> list[FieldError]:
    """A PersistentVolumeClaim that replaces another one: only the size of a bound one changes, and a volume is named once."""
    errors = object_meta_update(new["metadata"], old["metadata"]) + claim(new)
    wanted, former = copy.deepcopy(new["spec"]), copy.deepcopy(old["spec"])
    if not former.get("volumeName") and "volumeName" in wanted:
        former["volumeName"] = wanted["volumeName"]
    if former.get("storageClassName") is None and wanted.get("storageClassName") is not None:
        former["storageClassName"] = wanted["storageClassName"]
    if new.get("status", {}).get("phase") == "Bound":
        for spec in (wanted, former):
            (spec["resources"].get("requests") or {}).pop("storage", None)
            spec.pop("volumeAttributesClassName", None)
    if wanted != former:
        detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
        errors.append(forbidden("spec", detail))
    size, before = _size(new["spec"]), _size(old["spec"])
    capacity = quantity_of((old.get("status", {}).get("capacity") or {}).get("storage", "0"))
    if size.cmp(before) < 0 and size.cmp(capacity) <= 0:
        errors.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
    return errors + immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def claim_spec(path: str, spec: Object) -> list[FieldError]:
    """What a claim asks for. Upstream: ValidatePersistentVolumeClaimSpec."""
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
    for name in ("dataSource", "dataSourceRef"):
        if spec.get(name) is not None:
            errors += _data_source(f"{path}.{name}", spec[name])
    return errors


def _access_modes(path: str, modes: Sequence[str]) -> list[FieldError]:
    errors = [not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        errors.append(forbidden(path, _PER_POD))
    return errors


def _capacity(capacity: Object) -> list[FieldError]:
    if not capacity:
        return [required("spec.capacity")]
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


def _data_source(path: str, source: Object) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("name", "kind") if not source.get(name)]
    if not source.get("apiGroup") and source.get("kind", "") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, source.get("kind", ""), detail))
    return errors


def _size(spec: Object) -> Any:
    return quantity_of((spec["resources"].get("requests") or {}).get("storage", "0"))

"""Environment variables of a container.

Upstream: pkg/apis/core/validation/validation.go, ValidateEnv, ValidateEnvFrom (v1.36.2).
"""

import re
from collections.abc import Sequence
from typing import Final

from extender.embedded.resources import Object
from extender.embedded.validation.names import config_key_errors, env_name_errors, name_errors
from extender.golang.field_errors import FieldError, all_invalid, invalid, not_supported, required
from extender.objects.validation import label_key_errors, subdomain_errors

_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_CONVERTIBLE: Final = (*_FIELDS, "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase")
_AMOUNTS: Final = tuple(f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory"))
_HUGE_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_SUBSCRIPT: Final = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]", re.DOTALL)


def env(path: str, variables: Sequence[Object]) -> list[FieldError]:
    """Variables by name, each with a value or a source of one."""
    errors = []
    for place, variable in enumerate(variables):
        here, name = f"{path}[{place}]", variable.get("name", "")
        errors += all_invalid(f"{here}.name", name, env_name_errors(name)) if name else [required(f"{here}.name")]
        if variable.get("valueFrom") is not None:
            errors += _value_from(f"{here}.valueFrom", variable)
    return errors


def env_from(path: str, sources: Sequence[Object]) -> list[FieldError]:
    """Whole ConfigMaps and Secrets."""
    errors = []
    for place, source in enumerate(sources):
        here, prefix = f"{path}[{place}]", source.get("prefix", "")
        errors += all_invalid(f"{here}.prefix", prefix, env_name_errors(prefix)) if prefix else []
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            target = source[name].get("name", "")
            where = f"{here}.{name}.name"
            errors += all_invalid(where, target, name_errors(subdomain_errors, target, is_prefix=True)) if target else [required(where)]
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _value_from(path: str, variable: Object) -> list[FieldError]:
    source = variable["valueFrom"]
    errors: list[FieldError] = []
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        if name == "fieldRef":
            errors += _field(f"{path}.{name}", source[name])
        elif name == "resourceFieldRef":
            errors += _amount(f"{path}.{name}", source[name])
        elif name in ("configMapKeyRef", "secretKeyRef"):
            errors += _key(f"{path}.{name}", source[name])
    if not given:
        errors.append(invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _field(path: str, selector: Object) -> list[FieldError]:
    """Upstream: validateObjectFieldSelector."""
    field = selector.get("fieldPath", "")
    if not selector.get("apiVersion"):
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    subscripted = _SUBSCRIPT.fullmatch(field)
    if subscripted is not None:
        key = subscripted[2] if subscripted[1] == "metadata.labels" else subscripted[2].lower()
        return all_invalid(path, key, label_key_errors(key))
    if field not in _CONVERTIBLE:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: field label not supported: {field}")]
    return [] if field in _FIELDS else [not_supported(f"{path}.fieldPath", field, _FIELDS)]


def _amount(path: str, selector: Object) -> list[FieldError]:
    """Upstream: validateContainerResourceFieldSelector."""
    resource = selector.get("resource", "")
    if not resource:
        return [required(f"{path}.resource")]
    if resource in _AMOUNTS or resource.startswith(_HUGE_PAGES):
        return []
    return [not_supported(f"{path}.resource", resource, _AMOUNTS)]


def _key(path: str, selector: Object) -> list[FieldError]:
    """Upstream: validateConfigMapKeySelector, validateSecretKeySelector."""
    name, key = selector.get("name", ""), selector.get("key", "")
    errors = all_invalid(f"{path}.name", name, subdomain_errors(name))
    return errors + (all_invalid(f"{path}.key", key, config_key_errors(key)) if key else [required(f"{path}.key")])

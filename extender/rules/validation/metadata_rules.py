"""Rules for the metadata of all objects: names, labels, annotations, owners, finalizers; and for label selectors.

Upstream: apimachinery/pkg, api/validation/objectmeta.go; apis/meta/v1/validation; util/validation.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from extender.rules.api_resources import Object
from extender.values.golang.field_errors import (
    FieldError,
    all_invalid,
    forbidden,
    immutable,
    invalid,
    non_negative,
    required,
    too_long,
)
from extender.values.golang.quoting import quoted
from extender.values.objects.name_syntax import (
    dns_label_errors,
    label_key_errors,
    label_value_errors,
    regex_error,
    subdomain_errors,
)

NameRule = Callable[[str], list[str]]
"""Returns the errors of a text as a name."""

TOTAL_ANNOTATION_SIZE_LIMIT: Final = 256 * 1024
MAX_INT32: Final = (1 << 31) - 1
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_SELECTOR_NEEDS_VALUES: Final = ("In", "NotIn")
_SELECTOR_TAKES_NO_VALUES: Final = ("Exists", "DoesNotExist")
_PERCENT: Final = "[0-9]+%"
_PERCENT_ERROR: Final = regex_error(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_C_IDENTIFIER_ERROR: Final = regex_error(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)


def object_meta(metadata: Object, *, namespaced: bool, rule: NameRule = subdomain_errors) -> list[FieldError]:
    """Returns the errors of the metadata of a new object. Upstream: ValidateObjectMeta."""
    errors: list[FieldError] = []
    base, name = metadata.get("generateName", ""), metadata.get("name", "")
    if base:
        errors += all_invalid("metadata.generateName", base, name_errors(rule, base, is_prefix=True))
    if name:
        errors += all_invalid("metadata.name", name, name_errors(rule, name))
    else:
        errors.append(required("metadata.name", "name or generateName is required"))
    namespace = metadata.get("namespace", "")
    if namespaced:
        errors += (
            all_invalid("metadata.namespace", namespace, dns_label_errors(namespace))
            if namespace
            else [required("metadata.namespace")]
        )
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    errors += non_negative("metadata.generation", metadata.get("generation"))
    return errors + _common(metadata) + _finalizers(metadata.get("finalizers") or ())


def path_segment_errors(value: str) -> list[str]:
    """Returns the errors of a text as a part of a path. Upstream: ValidatePathSegmentName."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in value]


def object_meta_update(new: Object, old: Object) -> list[FieldError]:
    """Returns the errors of the metadata of an updated object. Upstream: ValidateObjectMetaUpdate."""
    errors: list[FieldError] = []
    added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if old.get("deletionTimestamp") and added:
        finalizers = f"[]string{{{', '.join(map(quoted, added))}}}"
        detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {finalizers}"
        errors.append(forbidden("metadata.finalizers", detail))
    if not new.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if new.get("generation", 0) < old.get("generation", 0):
        errors.append(invalid("metadata.generation", new.get("generation", 0), "must not be decremented"))
    for name in ("name", "namespace", "uid"):
        errors += immutable(f"metadata.{name}", new.get(name, ""), old.get(name, ""))
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        errors += immutable(f"metadata.{name}", new.get(name), old.get(name))
    return errors + _common(new)


def labels(path: str, values: Mapping[str, str] | None) -> list[FieldError]:
    """Returns the errors of a set of labels. Upstream: ValidateLabels."""
    errors = []
    for key, value in (values or {}).items():
        errors += label_name(path, key)
        errors += all_invalid(path, value, label_value_errors(value))
    return errors


def label_name(path: str, key: str) -> list[FieldError]:
    """Returns the errors of the key of a label. Upstream: ValidateLabelName."""
    return all_invalid(path, key, label_key_errors(key))


def annotations(path: str, values: Mapping[str, str] | None) -> list[FieldError]:
    """Returns the errors of a set of annotations. Upstream: ValidateAnnotations."""
    values = values or {}
    errors = [error for key in values for error in all_invalid(path, key, label_key_errors(key.lower()))]
    if annotation_bytes(values) > TOTAL_ANNOTATION_SIZE_LIMIT:
        errors.append(too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT))
    return errors


def annotation_bytes(values: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in values.items())


def label_selector(path: str, selector: Mapping[str, Any] | None) -> list[FieldError]:
    """Returns the errors of a label selector. Upstream: ValidateLabelSelector."""
    if selector is None:
        return []
    errors = labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for place, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += _requirement(f"{path}.matchExpressions[{place}]", requirement)
    return errors


def is_empty(selector: Mapping[str, Any]) -> bool:
    """Returns whether a selector selects everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def _requirement(path: str, requirement: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in _SELECTOR_NEEDS_VALUES:
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _SELECTOR_TAKES_NO_VALUES:
        if values:
            errors.append(
                forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            )
    else:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    errors += label_name(f"{path}.key", requirement.get("key", ""))
    for place, value in enumerate(values):
        errors += all_invalid(f"{path}.values[{place}]", value, label_value_errors(value))
    return errors


def _common(metadata: Object) -> list[FieldError]:
    errors = labels("metadata.labels", metadata.get("labels"))
    errors += annotations("metadata.annotations", metadata.get("annotations"))
    errors += _owner_references(metadata.get("ownerReferences") or ())
    for place, entry in enumerate(metadata.get("managedFields") or ()):
        if entry.get("operation") not in ("Apply", "Update"):
            path = f"metadata.managedFields[{place}].operation"
            errors.append(invalid(path, entry.get("operation", ""), "must be `Apply` or `Update`"))
    return errors


def _owner_references(references: Sequence[Object]) -> list[FieldError]:
    errors = []
    path, controller = "metadata.ownerReferences", ""
    for reference in references:
        api_version = reference.get("apiVersion", "")
        if not api_version.rpartition("/")[2]:
            errors.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
        errors += [
            invalid(f"{path}.{name}", "", "must not be empty")
            for name in ("kind", "name", "uid")
            if not reference.get(name)
        ]
        if (api_version, reference.get("kind")) == ("v1", "Event"):
            errors.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.get("controller"):
            this = f"{reference.get('kind', '')}/{reference.get('name', '')}"
            if controller:
                detail = (
                    f'Only one reference can have Controller set to true. Found "true" in references for {controller} '
                    f"and {this}"
                )
                errors.append(invalid(path, list(references), detail))
            controller = controller or this
    return errors


def _finalizers(finalizers: Sequence[str]) -> list[FieldError]:
    path = "metadata.finalizers"
    errors = [error for name in finalizers for error in all_invalid(path, name, label_key_errors(name))]
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        errors.append(invalid(path, list(finalizers), f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"))
    return errors


# The syntax of names, ports and the like, beyond label syntax


def name_errors(rule: NameRule, name: str, *, is_prefix: bool = False) -> list[str]:
    """Returns the errors of a name; a prefix of names may end in a dash. Upstream: maskTrailingDash."""
    masked = f"{name[:-2]}a" if is_prefix and len(name) > 1 and name.endswith("-") else name
    return rule(masked)


def c_identifier_errors(value: str) -> list[str]:
    """Returns the errors of an identifier in C. Upstream: IsCIdentifier."""
    return [] if re.fullmatch(_C_IDENTIFIER, value) else [_C_IDENTIFIER_ERROR]


def percent_errors(value: str) -> list[str]:
    """Returns the errors of a percentage. Upstream: IsValidPercent."""
    return [] if re.fullmatch(_PERCENT, value) else [_PERCENT_ERROR]


def range_error(smallest: int, largest: int) -> str:
    """Returns the error of a number that is not between the two. Upstream: InclusiveRangeError."""
    return f"must be between {smallest} and {largest}, inclusive"


def port_errors(port: int) -> list[str]:
    """Returns the errors of a port number. Upstream: IsValidPortNum."""
    return [] if 1 <= port <= 65535 else [range_error(1, 65535)]


def dns_label(path: str, value: str) -> list[FieldError]:
    return [invalid(path, value, error) for error in dns_label_errors(value)]


def subdomain(path: str, value: str) -> list[FieldError]:
    return [invalid(path, value, error) for error in subdomain_errors(value)]

"""Rules for amounts: requests, limits, capacity.

Upstream: pkg/apis/core, validation/validation.go, validateResourceRequirements; helper.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from extender.rules.admission.defaults import containers_alone
from extender.rules.api_resources import Object
from extender.rules.validation.metadata_rules import dns_label
from extender.values import limits
from extender.values.golang.field_errors import (
    NEGATIVE,
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from extender.values.objects.name_syntax import label_key_errors
from extender.values.objects.quantity import quantity_of
from extender.values.objects.resource_amounts import sum_requests
from extender.values.objects.resource_names import (
    HUGEPAGES_PREFIX,
    is_extended_resource_name,
    is_native_resource,
    is_pod_level_resource,
)

NOT_INTEGER: Final = "must be an integer"
_COMPUTE: Final = frozenset({"cpu", "memory"})
_OF_CONTAINERS: Final = _COMPUTE | {"ephemeral-storage"}
_COUNTED: Final = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_OF_QUOTA: Final = frozenset(
    f"{part}.{name}" for part in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")
)
_STANDARD: Final = _OF_CONTAINERS | _COUNTED | _OF_QUOTA | {"storage", "requests.storage"}


def quantity_value(path: str, name: str, amount: str) -> list[FieldError]:
    """Returns the errors of an amount: it is not negative, and whole if it counts (ValidateResourceQuantityValue)."""
    quantity = quantity_of(amount)
    errors = [invalid(path, amount, NEGATIVE)] if quantity.sign < 0 else []
    if (name in _COUNTED or is_extended_resource_name(name)) and quantity.milli_value() % 1000:
        errors.append(invalid(path, amount, NOT_INTEGER))
    return errors


def container_resources(path: str, requirements: Object, claims: Collection[str]) -> list[FieldError]:
    """Returns the errors of the resources of a container; `claims` are the names of the pod's resource claims."""
    return _requirements(path, requirements, _container_resource_name, claims)


def pod_resources(path: str, requirements: Object, claims: Collection[str]) -> list[FieldError]:
    """Returns the errors of the resources of a pod; `claims` are the names of its resource claims."""
    errors = []
    if requirements.get("claims"):
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    return errors + _requirements(path, requirements, _pod_resource_name, claims)


def pod_within_containers(path: str, spec: Object) -> list[FieldError]:
    """Checks that the resources of a pod cover those of its containers. Upstream: validatePodResourceConsistency."""
    resources = spec["resources"]
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    errors = []
    for name, total in sum_requests(containers_alone(spec), quantity_of).items():
        request = requests.get(name, "0")
        if is_pod_level_resource(name) and total > quantity_of(request):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(f"{path}.requests[{name}]", request, detail))
    for place, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and quantity_of(limit) > quantity_of(limits[name]):
                limit_path = f"{path}.containers[{place}][{name}].limits"
                errors.append(invalid(limit_path, limit, f"must be less than or equal to pod limits of {limits[name]}"))
    return errors


def _requirements(
    path: str, requirements: Object, name_rule: Callable[[str, str], list[FieldError]], claims: Collection[str]
) -> list[FieldError]:
    errors: list[FieldError] = []
    limits: Mapping[str, str] = requirements.get("limits") or {}
    requests: Mapping[str, str] = requirements.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            amount_path = f"{path}.{part}[{name}]"
            errors += name_rule(amount_path, name) + quantity_value(amount_path, name, amount)
            if part == "requests":
                errors += _within_limit(path, name, amount, limits.get(name))
            errors += _divisible(amount_path, name, amount)
    names = set(limits) | set(requests)
    if any(name.startswith(HUGEPAGES_PREFIX) for name in names) and not names & _COMPUTE:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors + _claims(f"{path}.claims", requirements.get("claims") or (), claims)


def _within_limit(path: str, name: str, request: str, limit: str | None) -> list[FieldError]:
    overcommits = is_native_resource(name) and not name.startswith(HUGEPAGES_PREFIX)
    if limit is None:
        return [] if overcommits else [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    order = quantity_of(request).cmp(quantity_of(limit))
    if order and not overcommits:
        return [invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")]
    return (
        [invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")]
        if order > 0
        else []
    )


def _divisible(path: str, name: str, amount: str) -> list[FieldError]:
    if not name.startswith(HUGEPAGES_PREFIX):
        return []
    try:
        page = quantity_of(name.removeprefix(HUGEPAGES_PREFIX)).value()
    except ValueError:
        page = 0
    if page > 0 and quantity_of(amount).value() % page == 0:
        return []
    return [invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]


def _resource_name(path: str, name: str) -> list[FieldError]:
    errors = all_invalid(path, name, label_key_errors(name))
    if (
        not errors
        and "/" not in name
        and name not in _STANDARD
        and not name.startswith((HUGEPAGES_PREFIX, f"requests.{HUGEPAGES_PREFIX}"))
    ):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def _container_resource_name(path: str, name: str) -> list[FieldError]:
    errors = _resource_name(path, name)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(HUGEPAGES_PREFIX):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native_resource(name) and not is_extended_resource_name(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _pod_resource_name(path: str, name: str) -> list[FieldError]:
    errors = _resource_name(path, name)
    if not errors and not is_pod_level_resource(name):
        errors.append(not_supported(path, name, sorted(_COMPUTE | {HUGEPAGES_PREFIX})))
    return errors


def _claims(path: str, claims: Sequence[Mapping[str, Any]], pod_claims: Collection[str]) -> list[FieldError]:
    """Checks that each claim or request belongs to the pod, and is named once (validateResourceClaimNames)."""
    errors = []
    keys: set[str] = set()
    num_requests: Counter[str] = Counter()
    for place, claim in enumerate(claims):
        claim_path, name, request = f"{path}[{place}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            errors.append(required(claim_path))
            continue
        key = f"{name}/{request}" if request else name
        if name in keys:
            errors.append(duplicate(claim_path, name))
        else:
            errors += dns_label(f"{claim_path}.request", request) if request else []
            if key in keys:
                errors.append(duplicate(claim_path, key))
            elif not request:
                errors += [duplicate(claim_path, name)] * num_requests[name]
            else:
                num_requests[name] += 1
            keys.add(key)
        if name not in pod_claims:
            errors.append(
                not_found(claim_path, name, f"must be one of the names in pod.spec.resourceClaims{_listed(pod_claims)}")
            )
    return errors


def _listed(names: Collection[str]) -> str:
    """Returns the names as a text; empty for many names, which each error of a long pod would repeat."""
    if not names:
        return " which is empty"
    return f": {', '.join(sorted(names))}" if len(names) <= limits.CLAIM_NAMES_IN_ERROR else ""

"""Rules for the placement of pods: node selectors, affinity, tolerations, taints, topology spread.

Upstream: pkg/apis/core/validation/validation.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.rules.api_resources import Object
from extender.rules.validation.metadata_rules import label_name, label_selector
from extender.values.golang.field_errors import (
    NOT_POSITIVE,
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    in_go,
    invalid,
    not_supported,
    required,
)
from extender.values.objects.name_syntax import dns_label_errors, label_value_errors, subdomain_errors
from extender.values.objects.tolerations import COMPARISON_OPERATORS, decimal_integer

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES: Final = ("Honor", "Ignore")
_NO_OPERATOR: Final = "not a valid selector operator"
_WEIGHT: Final = "must be in the range 1-100"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def node_selector(path: str, selector: Mapping[str, Any]) -> list[FieldError]:
    """Returns the errors of a node selector. Upstream: ValidateNodeSelector."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [
        error
        for place, term in enumerate(terms)
        for error in _node_term(f"{path}.nodeSelectorTerms[{place}]", term, True)
    ]


def affinity(path: str, value: Mapping[str, Any] | None) -> list[FieldError]:
    """Returns the errors of an affinity. Upstream: validateAffinity."""
    errors: list[FieldError] = []
    value = value or {}
    of_node = value.get("nodeAffinity") or {}
    if of_node.get(_REQUIRED) is not None:
        errors += node_selector(f"{path}.nodeAffinity.{_REQUIRED}", of_node[_REQUIRED])
    for place, preferred in enumerate(of_node.get(_PREFERRED) or ()):
        term_path = f"{path}.nodeAffinity.{_PREFERRED}[{place}]"
        errors += _weight(term_path, preferred)
        errors += _node_term(f"{term_path}.preference", preferred.get("preference") or {}, False)
    for name in ("podAffinity", "podAntiAffinity"):
        of_pod = value.get(name) or {}
        for place, term in enumerate(of_pod.get(_REQUIRED) or ()):
            errors += _pod_term(f"{path}.{name}.{_REQUIRED}[{place}]", term)
        for place, weighted in enumerate(of_pod.get(_PREFERRED) or ()):
            term_path = f"{path}.{name}.{_PREFERRED}[{place}]"
            errors += _weight(term_path, weighted)
            errors += _pod_term(f"{term_path}.podAffinityTerm", weighted.get("podAffinityTerm") or {})
    return errors


def tolerations(path: str, values: Sequence[Object]) -> list[FieldError]:
    """Returns the errors of tolerations. Upstream: ValidateTolerations."""
    errors = []
    for place, toleration in enumerate(values):
        toleration_path = f"{path}[{place}]"
        key, operator, effect = (toleration.get(name, "") for name in ("key", "operator", "effect"))
        value = toleration.get("value", "")
        if key:
            errors += label_name(f"{toleration_path}.key", key)
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{toleration_path}.operator", operator, detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            errors.append(
                invalid(
                    f"{toleration_path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
                )
            )
        if operator in ("Equal", ""):
            wrong = label_value_errors(value)
            errors += [invalid(f"{toleration_path}.operator", value, ";".join(wrong))] if wrong else []
        elif operator == "Exists":
            errors += (
                [invalid(f"{toleration_path}.operator", value, "value must be empty when `operator` is 'Exists'")]
                if value
                else []
            )
        elif operator not in COMPARISON_OPERATORS:
            errors.append(not_supported(f"{toleration_path}.operator", operator, ("Equal", "Exists")))
        elif decimal_integer(value) is None:
            errors.append(
                invalid(f"{toleration_path}.value", value, "must be a valid decimal integer in canonical form")
            )
        if effect and effect not in _EFFECTS:
            errors.append(not_supported(f"{toleration_path}.effect", effect, _EFFECTS))
    return errors


def comparing_tolerations(path: str, values: Sequence[Object]) -> list[FieldError]:
    """Refuses tolerations that compare numbers, while TaintTolerationComparisonOperators is off."""
    operators = ((place, toleration.get("operator", "")) for place, toleration in enumerate(values))
    return [
        not_supported(f"{path}[{place}].operator", operator, ("Equal", "Exists", *COMPARISON_OPERATORS))
        for place, operator in operators
        if operator in COMPARISON_OPERATORS
    ]


def taints(path: str, values: Sequence[Object]) -> list[FieldError]:
    """Returns the errors of the taints of a node. Upstream: validateNodeTaints."""
    errors = []
    pairs = set()
    for place, taint in enumerate(values):
        taint_path = f"{path}[{place}]"
        key, value, effect = (taint.get(name, "") for name in ("key", "value", "effect"))
        errors += label_name(f"{taint_path}.key", key)
        wrong = label_value_errors(value)
        errors += [invalid(f"{taint_path}.value", value, ";".join(wrong))] if wrong else []
        if not effect:
            errors.append(required(f"{taint_path}.effect"))
        elif effect not in _EFFECTS:
            errors.append(not_supported(f"{taint_path}.effect", effect, _EFFECTS))
        if (key, effect) in pairs:
            taint_text = in_go({"value": "", **taint}, "Key", "Value", "Effect", "TimeAdded")
            errors.append(duplicate(taint_path, taint_text, "taints must be unique by key and effect pair"))
        pairs.add((key, effect))
    return errors


def topology_spread(path: str, constraints: Sequence[Object]) -> list[FieldError]:
    """Returns the errors of topology spread constraints. Upstream: validateTopologySpreadConstraints."""
    errors = []
    last = {
        (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")): place
        for place, constraint in enumerate(constraints)
    }
    for place, constraint in enumerate(constraints):
        constraint_path = f"{path}[{place}]"
        max_skew, key, action = (
            constraint.get("maxSkew", 0),
            constraint.get("topologyKey", ""),
            constraint.get("whenUnsatisfiable", ""),
        )
        if max_skew <= 0:
            errors.append(invalid(f"{constraint_path}.maxSkew", max_skew, NOT_POSITIVE))
        if not key:
            errors.append(required(f"{constraint_path}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            errors.append(not_supported(f"{constraint_path}.whenUnsatisfiable", action, _ACTIONS))
        if last[key, action] > place:
            errors.append(duplicate(f"{constraint_path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        errors += _min_domains(f"{constraint_path}.minDomains", constraint.get("minDomains"), action)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(name)
            if policy is not None and policy not in _NODE_POLICIES:
                errors.append(not_supported(f"{constraint_path}.{name}", policy, _NODE_POLICIES))
        errors += _spread_label_keys(constraint_path, constraint)
        errors += label_selector(f"{constraint_path}.labelSelector", constraint.get("labelSelector"))
    return errors


def _min_domains(path: str, value: int | None, action: str) -> list[FieldError]:
    if value is None:
        return []
    errors = [invalid(path, value, NOT_POSITIVE)] if value <= 0 else []
    if action != "DoNotSchedule":
        errors.append(invalid(path, value, f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"))
    return errors


def _spread_label_keys(path: str, constraint: Object) -> list[FieldError]:
    """Checks the keys that the server adds to the selector. Upstream: validateMatchLabelKeysInTopologySpread."""
    keys = constraint.get("matchLabelKeys") or ()
    selector = constraint.get("labelSelector")
    if not keys:
        return []
    if selector is None:
        return [forbidden(f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set")]
    return _label_keys(f"{path}.matchLabelKeys", keys) + _chosen_twice(path, keys, selector)


def _chosen_twice(path: str, keys: Sequence[str], selector: Mapping[str, Any]) -> list[FieldError]:
    """Checks that the user's selector has none of the keys, for each of which the server has added an expression.

    Upstream does not name the list in this path.
    """
    errors = []
    selector_keys = set(selector.get("matchLabels") or ())
    places = {key: place for place, key in reversed(list(enumerate(keys)))}
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in places and key in selector_keys:
            errors.append(invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector"))
        selector_keys.add(key)
    return errors


def _label_keys(path: str, keys: Sequence[str]) -> list[FieldError]:
    return [error for place, key in enumerate(keys) for error in label_name(f"{path}[{place}]", key)]


def _weight(path: str, weighted: Object) -> list[FieldError]:
    weight = weighted.get("weight", 0)
    return [] if 0 < weight <= 100 else [invalid(f"{path}.weight", weight, _WEIGHT)]


def _node_term(path: str, term: Mapping[str, Any], checks_values: bool) -> list[FieldError]:
    errors = []
    for place, requirement in enumerate(term.get("matchExpressions") or ()):
        errors += _node_requirement(f"{path}.matchExpressions[{place}]", requirement, checks_values)
    for place, requirement in enumerate(term.get("matchFields") or ()):
        errors += _node_field_requirement(f"{path}.matchFields[{place}]", requirement)
    return errors


def _node_requirement(path: str, requirement: Object, checks_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(
                forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            )
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(invalid(f"{path}.operator", operator, _NO_OPERATOR))
    errors += label_name(f"{path}.key", requirement.get("key", ""))
    if checks_values:
        for place, value in enumerate(values):
            errors += all_invalid(f"{path}.values[{place}]", value, label_value_errors(value))
    return errors


def _node_field_requirement(path: str, requirement: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, _NO_OPERATOR))
    elif len(values) != 1:
        errors.append(
            required(
                f"{path}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
        )
    if requirement.get("key", "") != "metadata.name":
        errors.append(invalid(f"{path}.key", requirement.get("key", ""), "not a valid field selector key"))
        return errors
    for place, value in enumerate(values):
        errors += all_invalid(f"{path}.values[{place}]", value, subdomain_errors(value))
    return errors


def _pod_term(path: str, term: Object) -> list[FieldError]:
    errors = label_selector(f"{path}.labelSelector", term.get("labelSelector"))
    errors += label_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        errors += all_invalid(f"{path}.namespace", namespace, dns_label_errors(namespace))
    errors += _pod_label_keys(path, term)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + label_name(f"{path}.topologyKey", key)


def _pod_label_keys(path: str, term: Object) -> list[FieldError]:
    """Upstream: validateMatchLabelKeysAndMismatchLabelKeys."""
    errors: list[FieldError] = []
    selector, match = term.get("labelSelector"), term.get("matchLabelKeys") or ()
    mismatch = term.get("mismatchLabelKeys") or ()
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set"))
        else:
            errors += _label_keys(f"{path}.{name}", keys)
    if selector is not None:
        errors += _chosen_twice(path, match, selector)
    both = set(match).intersection(mismatch)
    for place, key in enumerate(match):
        if key in both:
            errors.append(
                invalid(f"{path}.matchLabelKeys[{place}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
            )
    return errors

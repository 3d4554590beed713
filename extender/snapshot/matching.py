"""Selectors over nodes as masks: `objects.node_selectors` matches one node, this module matches all nodes at once.

A requirement is evaluated once for each value that its label has in the cluster, not once for each node.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from extender.golang.int64 import parse_int64
from extender.objects.label_selectors import Operator, Requirement, Selector
from extender.objects.node_selectors import (
    NAME_FIELD,
    FieldRequirement,
    ParsedNodeSelector,
    ParsedTerm,
    PreferredTerm,
    parsed_node_affinity,
)
from extender.objects.pod import Pod
from extender.snapshot.axes import Int64s, Mask
from extender.snapshot.columns import LabelColumn
from extender.snapshot.snapshot import Snapshot
from extender.snapshot.symbols import ABSENT

_NUMERIC = (Operator.GREATER_THAN, Operator.LESS_THAN)


def required_node_affinity_mask(snapshot: Snapshot, pod: Pod) -> Mask:
    """(N,) the nodes that match the pod's spec.nodeSelector and required node affinity; terms with errors match nothing.

    Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (v1.36.2).
    """
    required = parsed_node_affinity(pod)
    mask = np.ones(len(snapshot.nodes), np.bool_) if required.labels is None else label_selector_mask(snapshot, required.labels)
    if required.selector is not None:
        mask &= node_selector_mask(snapshot, required.selector)
    return mask


def node_selector_mask(snapshot: Snapshot, selector: ParsedNodeSelector) -> Mask:
    """(N,) the nodes that any term matches."""
    nodes = snapshot.nodes
    mask = np.zeros(len(nodes), np.bool_)
    # Terms of one expression about the same label are taken together by value, and spread over the nodes once: there may be thousands.
    by_key: defaultdict[str, dict[Requirement, int]] = defaultdict(dict)
    for term in selector.terms:
        expression = _only_expression(term)
        if expression is not None and expression.key in nodes.label_keys:
            by_key[expression.key][expression] = 1
        else:
            mask |= term_mask(snapshot, term)
    for key, requirements in by_key.items():
        column = nodes.label(key)
        mask |= (_weights_of_values(column, requirements) > 0)[column.codes]
    return mask


def weights_of_terms(snapshot: Snapshot, terms: Sequence[PreferredTerm]) -> Int64s:
    """(N,) the sum of the weights of the terms that match the node."""
    nodes = snapshot.nodes
    weights = np.zeros(len(nodes), np.int64)
    by_key: defaultdict[str, Counter[Requirement]] = defaultdict(Counter)  # as in `node_selector_mask`
    for preferred in terms:
        expression = _only_expression(preferred.term)
        if expression is not None and expression.key in nodes.label_keys:
            by_key[expression.key][expression] += preferred.weight
        else:
            weights += term_mask(snapshot, preferred.term) * np.int64(preferred.weight)
    for key, requirements in by_key.items():
        column = nodes.label(key)
        weights += _weights_of_values(column, requirements)[column.codes]
    return weights


def _only_expression(term: ParsedTerm) -> Requirement | None:
    """Returns the expression of a term that consists of one."""
    return term.expressions[0] if len(term.expressions) == 1 and not (term.fields or term.errors) else None


def _weights_of_values(column: LabelColumn, weights: Mapping[Requirement, int]) -> Int64s:
    """(V + 1,) the sum of the weights of the requirements that each value of the label matches; the last entry is for nodes without it."""
    total = np.zeros(len(column.values) + 1, np.int64)
    of_named: Counter[int] = Counter()
    limits: defaultdict[Operator, list[tuple[int, int]]] = defaultdict(list)
    of_all = 0
    for requirement, weight in weights.items():
        operator = requirement.operator
        if operator is Operator.IN or operator is Operator.NOT_IN:
            excludes = operator is Operator.NOT_IN
            of_all += weight * excludes
            for code in _codes_of(column, requirement):
                of_named[code] += -weight if excludes else weight
        elif operator in _NUMERIC:
            limits[operator] += [(limit, weight) for limit in map(parse_int64, requirement.values) if limit is not None]
        else:
            total += _matching_values(column, requirement) * np.int64(weight)
    total[[*of_named]] += np.array([*of_named.values()], np.int64)
    for operator, of_operator in limits.items():
        codes, numbers = column.integers
        ascending = np.array(sorted(of_operator), np.int64).reshape(-1, 2)
        below = np.concatenate([np.zeros(1, np.int64), ascending[:, 1].cumsum()])  # the weights of the first k limits, for every k
        if operator is Operator.GREATER_THAN:
            total[codes] += below[ascending[:, 0].searchsorted(numbers, "left")]
        else:
            total[codes] += below[-1] - below[ascending[:, 0].searchsorted(numbers, "right")]
    return total + of_all


def _codes_of(column: LabelColumn, requirement: Requirement) -> set[int]:
    """Returns the codes of the values that the requirement names, as far as nodes have them."""
    return {code for code in map(column.values.code_of, requirement.values) if code != ABSENT}


def term_mask(snapshot: Snapshot, term: ParsedTerm) -> Mask:
    """(N,) the nodes that match every requirement of the term; none if it has errors."""
    if term.errors:
        return np.zeros(len(snapshot.nodes), np.bool_)
    mask: Mask | None = None
    for expression in term.expressions:
        matching = requirement_mask(snapshot, expression)
        mask = matching if mask is None else mask & matching
        if not mask.any():
            return mask
    if mask is None:
        mask = np.ones(len(snapshot.nodes), np.bool_)
    for field in term.fields:
        mask &= _field_mask(snapshot, field)
    return mask


def label_selector_mask(snapshot: Snapshot, selector: Selector) -> Mask:
    """(N,) the nodes whose labels match the selector."""
    if not selector.selectable:
        return np.zeros(len(snapshot.nodes), np.bool_)
    mask = np.ones(len(snapshot.nodes), np.bool_)
    for requirement in selector.requirements:
        mask &= requirement_mask(snapshot, requirement)
        if not mask.any():
            break
    return mask


def requirement_mask(snapshot: Snapshot, requirement: Requirement) -> Mask:
    """(N,) the nodes whose label matches the requirement."""
    nodes = snapshot.nodes
    if requirement.key not in nodes.label_keys:
        return np.full(len(nodes), requirement.matches_value(None))
    column = nodes.label(requirement.key)
    mask: Mask = _matching_values(column, requirement)[column.codes]
    return mask


def _matching_values(column: LabelColumn, requirement: Requirement) -> Mask:
    """(V + 1,) whether each value of the label matches, by code; the last entry, which ABSENT indexes, is for nodes without the label."""
    values = column.values
    if requirement.operator in _NUMERIC:
        return _matching_numbers(column, requirement)
    # The values that the requirement names all match or all do not, and so do all others: two evaluations are enough for labels such as the
    # hostname, which have thousands of values.
    other_value = "".join(requirement.values) + "?"
    matches = np.full(len(values) + 1, requirement.matches_value(other_value), np.bool_)
    named = _codes_of(column, requirement)
    if named:
        matches[[*named]] = requirement.matches_value(requirement.values[0])
    matches[ABSENT] = requirement.matches_value(None)
    return matches


def _matching_numbers(column: LabelColumn, requirement: Requirement) -> Mask:
    matches = np.zeros(len(column.values) + 1, np.bool_)
    limit = parse_int64(requirement.values[0]) if len(requirement.values) == 1 else None
    if limit is not None:
        codes, numbers = column.integers
        matches[codes] = numbers > limit if requirement.operator is Operator.GREATER_THAN else numbers < limit
    return matches


def _field_mask(snapshot: Snapshot, requirement: FieldRequirement) -> Mask:
    places = snapshot.nodes.index
    mask = np.full(len(places), requirement.matches_name("?" + requirement.value), np.bool_)
    if requirement.field == NAME_FIELD and requirement.value in places:
        mask[places[requirement.value]] = not requirement.negated
    if "" in places:
        # A node without a name has no fields, and upstream then skips the field requirements.
        mask[places[""]] = True
    return mask

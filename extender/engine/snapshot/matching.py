"""Selectors over nodes as masks: `objects.node_selectors` matches one node, this module matches all nodes at once.

A requirement is evaluated once for each value that its label has in the cluster, not once for each node.
"""

import numpy as np

from extender.engine.snapshot.axes import Int64s, Mask
from extender.engine.snapshot.columns import LabelColumn
from extender.engine.snapshot.snapshot import Snapshot
from extender.engine.snapshot.symbols import ABSENT
from extender.values.golang.int64 import parse_int64
from extender.values.objects.label_selectors import Operator, Requirement, Selector
from extender.values.objects.node_selectors import (
    NAME_FIELD,
    FieldRequirement,
    ParsedNodeSelector,
    ParsedTerm,
    PreferredTerms,
    parsed_node_affinity,
)
from extender.values.objects.pod import Pod

_NUMERIC = (Operator.GREATER_THAN, Operator.LESS_THAN)


def required_node_affinity_mask(snapshot: Snapshot, pod: Pod) -> Mask:
    """(N,) the nodes that match spec.nodeSelector and required node affinity; terms with errors match nothing.

    Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match.
    """
    required = parsed_node_affinity(pod)
    mask = np.ones(len(snapshot.nodes), np.bool_)
    if required.labels is not None:
        mask = label_selector_mask(snapshot, required.labels)
    if required.selector is not None:
        mask &= node_selector_mask(snapshot, required.selector)
    return mask


def node_selector_mask(snapshot: Snapshot, selector: ParsedNodeSelector) -> Mask:
    """(N,) the nodes that any term matches."""
    mask = np.zeros(len(snapshot.nodes), np.bool_)
    for term in selector.terms:
        mask |= term_mask(snapshot, term)
    return mask


def weights_of_terms(snapshot: Snapshot, preferred: PreferredTerms) -> Int64s:
    """(N,) the sum of the weights of the terms that match the node."""
    weights = np.zeros(len(snapshot.nodes), np.int64)
    for preferred_term in preferred.terms:
        weights += term_mask(snapshot, preferred_term.term) * np.int64(preferred_term.weight)
    return weights


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
    """(V + 1,) whether each value of the label matches, by code; the last, at ABSENT, is for nodes without."""
    values = column.values
    if requirement.operator in _NUMERIC:
        return _matching_numbers(column, requirement)
    # The values that the requirement names all match or all do not, and so do all others: two evaluations are enough
    # for labels such as the hostname, which have thousands of values.
    other_value = "".join(requirement.values) + "?"
    matches = np.full(len(values) + 1, requirement.matches_value(other_value), np.bool_)
    codes = {code for code in map(values.code_of, requirement.values) if code != ABSENT}
    if codes:
        matches[[*codes]] = requirement.matches_value(requirement.values[0])
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

"""Selectors over nodes as masks: `objects.node_selectors` matches one node, this module matches all nodes at once.

A requirement is evaluated once for each value that its label has in the cluster, not once for each node.
"""

import numpy as np

from extender.objects.label_selectors import Operator, Requirement, Selector
from extender.objects.node_selectors import NAME_FIELD, FieldRequirement, ParsedNodeSelector, ParsedTerm, required_node_affinity
from extender.objects.pod import Pod
from extender.snapshot.axes import Mask
from extender.snapshot.columns import LabelColumn
from extender.snapshot.snapshot import Snapshot
from extender.snapshot.symbols import ABSENT

_NUMERIC = (Operator.GREATER_THAN, Operator.LESS_THAN)


def required_node_affinity_mask(snapshot: Snapshot, pod: Pod) -> Mask:
    """(N,) the nodes that match the pod's spec.nodeSelector and required node affinity; terms with errors match nothing.

    Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (v1.36.2).
    """
    required = required_node_affinity(pod)
    mask = np.ones(len(snapshot.nodes), np.bool_) if required.labels is None else label_selector_mask(snapshot, required.labels)
    if required.selector is not None:
        mask &= node_selector_mask(snapshot, required.selector)
    return mask


def node_selector_mask(snapshot: Snapshot, selector: ParsedNodeSelector) -> Mask:
    """(N,) the nodes that any term matches."""
    nodes = snapshot.nodes
    mask = np.zeros(len(nodes), np.bool_)
    # Terms of one expression about the same label are taken together by value, and spread over the nodes once: there may be thousands.
    by_key: dict[str, Mask] = {}
    for term in selector.terms:
        key = term.expressions[0].key if len(term.expressions) == 1 and not (term.fields or term.errors) else None
        if key in nodes.label_keys:
            matching = _matching_values(nodes.label(key), term.expressions[0])
            by_key[key] = by_key[key] | matching if key in by_key else matching
        else:
            mask |= term_mask(snapshot, term)
    for key, matching in by_key.items():
        mask |= matching[nodes.label(key).codes]
    return mask


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
        return np.array([*map(requirement.matches_value, values), requirement.matches_value(None)], np.bool_)
    # The values that the requirement names all match or all do not, and so do all others: two evaluations are enough for labels such as the
    # hostname, which have thousands of values.
    other_value = "".join(requirement.values) + "?"
    matches = np.full(len(values) + 1, requirement.matches_value(other_value), np.bool_)
    named = [code for code in map(values.code_of, requirement.values) if code != ABSENT]
    if named:
        matches[named] = requirement.matches_value(requirement.values[0])
    matches[ABSENT] = requirement.matches_value(None)
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

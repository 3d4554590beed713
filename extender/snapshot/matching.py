"""Selectors over nodes, as masks: what `objects.node_selectors` says of one node, said of all at once.

A requirement is judged once per value that its label has in the cluster, never once per node.
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
    """(N,) the nodes that fulfil the pod's spec.nodeSelector and required node affinity; terms with errors match nothing.

    Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match (v1.36.2).
    """
    required = required_node_affinity(pod)
    mask = np.ones(len(snapshot.nodes), np.bool_) if required.labels is None else label_selector_mask(snapshot, required.labels)
    if required.selector is not None:
        mask &= node_selector_mask(snapshot, required.selector)
    return mask


def node_selector_mask(snapshot: Snapshot, selector: ParsedNodeSelector) -> Mask:
    """(N,) the nodes that any term matches."""
    mask = np.zeros(len(snapshot.nodes), np.bool_)
    for term in selector.terms:
        mask |= term_mask(snapshot, term)
    return mask


def term_mask(snapshot: Snapshot, term: ParsedTerm) -> Mask:
    """(N,) the nodes that fulfil all of the term; none if it has errors."""
    if term.errors:
        return np.zeros(len(snapshot.nodes), np.bool_)
    mask = np.ones(len(snapshot.nodes), np.bool_)
    for expression in term.expressions:
        mask &= requirement_mask(snapshot, expression)
    for field in term.fields:
        mask &= _field_mask(snapshot, field)
    return mask


def label_selector_mask(snapshot: Snapshot, selector: Selector) -> Mask:
    """(N,) the nodes with labels that the selector selects."""
    if not selector.selectable:
        return np.zeros(len(snapshot.nodes), np.bool_)
    mask = np.ones(len(snapshot.nodes), np.bool_)
    for requirement in selector.requirements:
        mask &= requirement_mask(snapshot, requirement)
    return mask


def requirement_mask(snapshot: Snapshot, requirement: Requirement) -> Mask:
    """(N,) the nodes whose label fulfils the requirement."""
    column = snapshot.nodes.label(requirement.key)
    mask: Mask = _answers(column, requirement)[column.codes]
    return mask


def _answers(column: LabelColumn, requirement: Requirement) -> Mask:
    """(V + 1,) the answer for every value of the label by code, and at the end, where ABSENT finds it, for nodes without it."""
    values = column.values
    if requirement.operator in _NUMERIC:
        return np.array([*map(requirement.matches_value, values), requirement.matches_value(None)], np.bool_)
    # All values that the requirement mentions share one answer, and so do all others: a label such as the hostname has thousands.
    unmentioned = "".join(requirement.values) + "?"
    answers = np.full(len(values) + 1, requirement.matches_value(unmentioned), np.bool_)
    mentioned = [code for code in map(values.code_of, requirement.values) if code != ABSENT]
    if mentioned:
        answers[mentioned] = requirement.matches_value(requirement.values[0])
    answers[ABSENT] = requirement.matches_value(None)
    return answers


def _field_mask(snapshot: Snapshot, requirement: FieldRequirement) -> Mask:
    places = snapshot.nodes.index
    mask = np.full(len(places), requirement.matches_name("?" + requirement.value), np.bool_)
    if requirement.field == NAME_FIELD and requirement.value in places:
        mask[places[requirement.value]] = not requirement.negated
    if "" in places:
        # A node without a name has no fields, and then upstream asks for none.
        mask[places[""]] = True
    return mask

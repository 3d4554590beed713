"""Node selectors and affinity, parsed once: terms of label and node name requirements, or their errors.

Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import msgspec

from extender.values.caches import cached_by_size
from extender.values.golang.field_errors import FieldError, aggregate, child, index, invalid, marshalled, not_supported
from extender.values.golang.schema import written_or_null
from extender.values.objects.label_selectors import (
    OPERATORS_OF_API,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    requirement_errors,
    selector_from_labels,
)
from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node import Node
from extender.values.objects.pod import Affinity, NodeAffinity, Pod, PodSpec, PreferredSchedulingTerm

NAME_FIELD: Final = "metadata.name"
"""The one field of a node that a term can speak of."""

_OPERATORS: Final = OPERATORS_OF_API | {"Gt": Operator.GREATER_THAN, "Lt": Operator.LESS_THAN}
_ENCODE: Final = msgspec.json.Encoder().encode
_DEMANDS: Final = msgspec.json.Decoder(tuple[dict[str, str] | None, NodeSelector | None])
_PREFERENCES: Final = msgspec.json.Decoder(list[PreferredSchedulingTerm])
_FIELD_OPERATORS: Final = ("In", "NotIn")


@final
class FieldRequirement(msgspec.Struct, frozen=True):
    """A field of the node is `value`, or is not if `negated`. Any field but NAME_FIELD reads as empty."""

    field: str
    value: str
    negated: bool = False

    def matches_name(self, name: str) -> bool:
        return ((name if self.field == NAME_FIELD else "") == self.value) != self.negated


@final
class ParsedTerm(msgspec.Struct, frozen=True):
    """All `expressions` and all `fields` together; a term with `errors` has neither and matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    errors: tuple[FieldError, ...] = ()

    def matches(self, node: Node) -> bool:
        """Returns whether the node fulfils the term. A node without a name fulfils every field requirement."""
        if self.errors:
            return False
        labels, name = node.labels, node.name
        if not all(expression.matches_value(labels.get(expression.key)) for expression in self.expressions):
            return False
        return not name or all(requirement.matches_name(name) for requirement in self.fields)


@final
class ParsedNodeSelector(msgspec.Struct, frozen=True):
    """Any one of `terms`. Empty terms match nothing and are left out."""

    terms: tuple[ParsedTerm, ...] = ()

    @property
    def error(self) -> str | None:
        """What is wrong with the terms, as one text; None if nothing is."""
        errors = [error for term in self.terms for error in term.errors]
        return aggregate(errors) if errors else None

    def matches(self, node: Node) -> bool:
        """Returns whether a term matches the node, whatever terms with errors (LazyErrorNodeSelector.Match)."""
        return any(term.matches(node) for term in self.terms)


@final
class RequiredNodeAffinity(msgspec.Struct, frozen=True):
    """What a pod requires of its node: `labels` (spec.nodeSelector) and `selector` (affinity), or None."""

    labels: Selector | None = None
    selector: ParsedNodeSelector | None = None

    def matches(self, node: Node) -> bool:
        """Returns whether the node is good enough. Upstream: nodeaffinity.go, RequiredNodeAffinity.Match."""
        if self.labels is not None and not self.labels.matches(node.labels):
            return False
        return self.selector is None or self.selector.matches(node)

    def error(self, node: Node) -> str | None:
        """Returns the faulty terms, if the node did not match and they could have made it match; else None."""
        if self.selector is None or self.matches(node):
            return None
        return self.selector.error if self.labels is None or self.labels.matches(node.labels) else None


_NO_DEMANDS: Final = RequiredNodeAffinity()


@final
class PreferredTerm(msgspec.Struct, frozen=True):
    """A node that matches `term` is worth `weight` more."""

    weight: int
    term: ParsedTerm


@final
class PreferredTerms(msgspec.Struct, frozen=True):
    """A pod's preferences among nodes. Terms of weight 0 and empty terms are left out."""

    terms: tuple[PreferredTerm, ...] = ()

    def score(self, node: Node) -> int:
        """Returns the weights of all terms that match the node, together."""
        return sum(preferred.weight for preferred in self.terms if preferred.term.matches(node))


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Returns what the pod demands of its node; nothing is refused (GetRequiredNodeAffinity)."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    return RequiredNodeAffinity(
        labels=selector_from_labels(pod.spec.node_selector) if pod.spec.node_selector else None,
        selector=node_selector_of(required) if required is not None else None,
    )


def parsed_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Returns `required_node_affinity`, which is kept for pods with equal demands."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    if required is None and not pod.spec.node_selector:
        return _NO_DEMANDS
    return _parsed_demands(_ENCODE((pod.spec.node_selector, required)))


@cached_by_size(1024)
def _parsed_demands(encoded: bytes) -> RequiredNodeAffinity:
    node_selector, required = _DEMANDS.decode(encoded)
    affinity = Affinity(node_affinity=NodeAffinity(required=required))
    return required_node_affinity(Pod(spec=PodSpec(node_selector=node_selector, affinity=affinity)))


def parsed_preferred_terms(terms: Sequence[PreferredSchedulingTerm]) -> PreferredTerms:
    """Returns `preferred_terms`, which are kept for pods with equal terms. Raises as it does."""
    return _parsed_preferences(_ENCODE(terms))


@cached_by_size(1024)
def _parsed_preferences(encoded: bytes) -> PreferredTerms:
    return preferred_terms(_PREFERENCES.decode(encoded))


def node_selector_of(selector: NodeSelector, path: str = "") -> ParsedNodeSelector:
    """Returns the selector with its faulty terms marked, at `path` (NewLazyErrorNodeSelector)."""
    terms_path = child(path, "nodeSelectorTerms")
    terms = enumerate(selector.node_selector_terms)
    return ParsedNodeSelector(tuple(_term(term, terms_path, place) for place, term in terms if not _is_empty(term)))


def strict_node_selector_of(selector: NodeSelector, path: str = "") -> ParsedNodeSelector:
    """Returns the selector. Raises SelectorError with all faults of its terms (NewNodeSelector)."""
    parsed = node_selector_of(selector, path)
    if parsed.error is not None:
        raise SelectorError(parsed.error)
    return parsed


def preferred_terms(terms: Sequence[PreferredSchedulingTerm]) -> PreferredTerms:
    """Returns the terms that can raise a score. Raises SelectorError with all faults (NewPreferredSchedulingTerms)."""
    parsed = tuple(
        PreferredTerm(preferred.weight, _term(preferred.preference, "", place))
        for place, preferred in enumerate(terms)
        if preferred.weight != 0 and not _is_empty(preferred.preference)
    )
    errors = [error for preferred in parsed for error in preferred.term.errors]
    if errors:
        raise SelectorError(aggregate(errors))
    return PreferredTerms(parsed)


def term_errors(path: str, terms: Iterable[NodeSelectorTerm]) -> Iterator[FieldError]:
    """Yields the errors of terms of a configuration in a list at `path`."""
    for place, term in enumerate(terms):
        yield from _term_at(index(path, place), term, is_from_text=True).errors


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _term(term: NodeSelectorTerm, terms_path: str, place: int) -> ParsedTerm:
    parsed = _term_at("", term)
    # Only what is wrong is said where: a pod may have thousands of terms.
    return _term_at(index(terms_path, place), term) if parsed.errors else parsed


def _term_at(path: str, term: NodeSelectorTerm, *, is_from_text: bool = False) -> ParsedTerm:
    errors: list[FieldError] = []
    expressions = [
        _expression(expression, index(child(path, "matchExpressions"), place), errors, is_from_text=is_from_text)
        for place, expression in enumerate(term.match_expressions)
    ]
    fields = [
        _field(field, index(child(path, "matchFields"), place), errors) for place, field in enumerate(term.match_fields)
    ]
    if errors:
        return ParsedTerm(errors=tuple(errors))
    return ParsedTerm(tuple(filter(None, expressions)), tuple(filter(None, fields)))


def _expression(
    expression: NodeSelectorRequirement, path: str, errors: list[FieldError], *, is_from_text: bool
) -> Requirement | None:
    operator = _OPERATORS.get(expression.operator)
    if operator is None:
        errors.append(not_supported(child(path, "operator"), marshalled(expression.operator), _OPERATORS))
        return None
    errors += requirement_errors(expression.key, operator, expression.values, path, is_from_text=is_from_text)
    return Requirement(expression.key, operator, tuple(expression.values))


def _field(field: NodeSelectorRequirement, path: str, errors: list[FieldError]) -> FieldRequirement | None:
    if field.operator not in _FIELD_OPERATORS:
        errors.append(not_supported(child(path, "operator"), marshalled(field.operator), _FIELD_OPERATORS))
        return None
    if len(field.values) != 1:
        errors.append(invalid(child(path, "values"), written_or_null(field.values), "must have one element"))
        return None
    return FieldRequirement(field.key, field.values[0], negated=field.operator == "NotIn")

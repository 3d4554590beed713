"""What is wrong with a node affinity that a configuration gives to every pod.

Upstream: pkg/scheduler/apis/config/validation, validation_pluginargs.go, ValidateNodeAffinityArgs.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from extender.config.errors import FieldError
from extender.config.json_text import as_json
from extender.config.wire import WrittenEmpty
from extender.objects.field_errors import child, index, quoted
from extender.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.objects.node_selectors import node_selector_of
from extender.objects.pod import NodeAffinity

_TERMS: Final = "nodeSelectorTerms"
_ERROR: Final = re.compile(r"(.*?): ((?:Invalid|Unsupported) value: .*)", re.DOTALL)
_EMPTY_TERM: Final = NodeSelectorTerm()


def validate_node_affinity(path: str, affinity: NodeAffinity) -> Iterator[FieldError]:
    """Every term that no selector can be made of. Preferred terms of weight 0 are not looked at."""
    if affinity.required is not None:
        required_path = child(path, "requiredDuringSchedulingIgnoredDuringExecution")
        yield from _terms(child(required_path, _TERMS), affinity.required.node_selector_terms)
    preferred = [term.preference if term.weight != 0 else _EMPTY_TERM for term in affinity.preferred or ()]
    yield from _terms(child(path, "preferredDuringSchedulingIgnoredDuringExecution"), preferred)


def _terms(path: str, terms: Sequence[NodeSelectorTerm]) -> Iterator[FieldError]:
    requirements = dict(_requirements(path, terms))
    for parsed in node_selector_of(NodeSelector(node_selector_terms=list(terms))).terms:
        for error in parsed.errors:
            match = _ERROR.fullmatch(error)
            if match is None:
                raise ValueError(f"an error of a node selector without a path: {error}")
            error_path, message = path + match[1].removeprefix(_TERMS), match[2]
            requirement_path, _, member = error_path.rpartition(".")
            requirement = requirements.get(requirement_path)
            if requirement is not None:
                message = _as_upstream_shows(member, requirement, message)
            yield FieldError(error_path, message)


def _requirements(path: str, terms: Sequence[NodeSelectorTerm]) -> Iterator[tuple[str, NodeSelectorRequirement]]:
    for place, term in enumerate(terms):
        for name, requirements in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields)):
            for position, requirement in enumerate(requirements):
                yield index(child(index(path, place), name), position), requirement


def _as_upstream_shows(member: str, requirement: NodeSelectorRequirement, message: str) -> str:
    """The message with the value as a configuration's is shown: a list that was written though empty, an operator as JSON."""
    if member == "values" and isinstance(requirement.values, WrittenEmpty):
        return message.replace("Invalid value: null", "Invalid value: []", 1)
    if member == "operator":
        return message.replace(quoted(requirement.operator), as_json(requirement.operator), 1)
    return message

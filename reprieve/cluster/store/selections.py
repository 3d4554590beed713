"""Label and field selectors as query parameters spell them, and the stored objects that they select.

Upstream: apimachinery/pkg/fields/selector.go; runtime/conversion.go, DefaultMetaV1FieldSelectorConversion.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from extender.rules import statuses
from extender.rules.api_resources import Resource
from extender.values.golang.quoting import quoted
from extender.values.objects.label_selectors import Selector, SelectorError
from extender.values.objects.label_syntax import parse_selector
from reprieve.cluster.store.object_store import field_paths
from reprieve.cluster.store.stored_objects import Stored

_NAME: Final = -1
_NAMESPACE: Final = -2
_OPERATOR: Final = re.compile(r"!=|==|=")
_SET_OPERATORS: Final = {"In": "in", "NotIn": "notin"}
_ESCAPED: Final = re.compile(r"\\(.?)", re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class FieldTerm:
    """Requires that a field has the one value, or that it has none of the values.

    `place` is its index in `Stored.fields`; negative for name and namespace, which are in the key.
    """

    place: int
    values: frozenset[str]
    is_equal: bool

    def matches(self, stored: Stored) -> bool:
        if self.place >= 0:
            return (stored.fields[self.place] in self.values) == self.is_equal
        return ((stored.name if self.place == _NAME else stored.namespace) in self.values) == self.is_equal


@final
@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """The label and field selectors of a list or watch."""

    labels: Selector
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_everything(self) -> bool:
        return self.labels.is_empty and not self.fields

    @property
    def name(self) -> str | None:
        """Returns the name that a selector requires; None without such a selector."""
        return next((next(iter(term.values)) for term in self.fields if term.place == _NAME and term.is_equal), None)

    def matches(self, stored: Stored) -> bool:
        return all(term.matches(stored) for term in self.fields) and self.labels.matches(stored.labels)

    def of(self, stored: Iterable[Stored]) -> Iterator[Stored]:
        return iter(stored) if self.is_everything else filter(self.matches, stored)


def selection(resource: Resource, labels: str, fields: str) -> ObjectSelection:
    """Returns the selection of these query parameters. Raises ApiStatus 400 if one cannot be read."""
    try:
        selector = parse_selector(labels)
    except SelectorError as error:
        raise statuses.bad_request(str(error)) from error
    return ObjectSelection(selector, tuple(_terms(resource, fields)))


def named(resource: Resource, selected: ObjectSelection, name: str) -> ObjectSelection:
    """Returns the selection for the watch of a single object (handlers/get.go, listOpts)."""
    if selected.fields and selected.name != name:
        raise statuses.bad_request("fieldSelector metadata.name doesn't match requested name")
    return ObjectSelection(selected.labels, (*selected.fields, FieldTerm(_NAME, frozenset((name,)), True)))


def _terms(resource: Resource, text: str) -> list[FieldTerm]:
    paths = field_paths(resource.stored_as)
    equal: dict[tuple[int, str], None] = {}
    unequal: dict[int, set[str]] = {}
    for part in sorted(_split(text)):
        if not part:
            continue
        operator = _OPERATOR.search(part)
        if operator is None:
            raise statuses.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        value = _unescaped(part[operator.end() :])
        place = _place(resource, part[: operator.start()], paths)
        if operator[0] == "!=":
            unequal.setdefault(place, set()).add(value)
        else:
            equal[place, value] = None
    # One term per field (and per equal value), so that matching does not slow down with the length of the text.
    return [
        *(FieldTerm(place, frozenset((value,)), True) for place, value in equal),
        *(FieldTerm(place, frozenset(values), False) for place, values in unequal.items()),
    ]


def _place(resource: Resource, field: str, paths: Sequence[str]) -> int:
    path = resource.fields.get(field)
    if path is None:
        if resource.selectable is None:
            fields = '"metadata.name", "metadata.namespace"'
            raise statuses.bad_request(f"{quoted(field)} is not a known field selector: only {fields}")
        raise statuses.bad_request(f"field label not supported: {field}")
    if path == "metadata.name":
        return _NAME
    return _NAMESPACE if path == "metadata.namespace" else paths.index(path)


def _split(text: str) -> Iterator[str]:
    """Yields the parts between commas; a backslash before a comma makes it part of the text."""
    begin, is_escaped = 0, False
    for place, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == ",":
            yield text[begin:place]
            begin = place + 1
    yield text[begin:]


def _unescaped(value: str) -> str:
    """Upstream: fields/selector.go, UnescapeValue."""
    bare = _ESCAPED.sub("", value)
    for escape in _ESCAPED.finditer(value):
        if escape[1] not in ("\\", ",", "="):
            raise statuses.bad_request(f"invalid field selector: invalid escape sequence: {escape[0]}")
    if "," in bare or "=" in bare:
        character = next(character for character in bare if character in ",=")
        # Upstream prints the number of the character.
        raise statuses.bad_request(f"invalid field selector: unescaped character in value: {ord(character)}")
    return _ESCAPED.sub(r"\1", value)


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Returns a metav1.LabelSelector as query parameters spell it, by key: `a=b,c in (d,e),!f`.

    Upstream: apis/meta/v1/helpers.go, FormatLabelSelector; labels/selector.go, Selector.String.
    """
    requirements = [(name, f"{name}={value}") for name, value in ((selector or {}).get("matchLabels") or {}).items()]
    for expression in (selector or {}).get("matchExpressions") or ():
        key, operator = expression["key"], expression["operator"]
        if operator in _SET_OPERATORS:
            text = f"{key} {_SET_OPERATORS[operator]} ({','.join(sorted(expression.get('values') or ()))})"
        else:
            text = key if operator == "Exists" else f"!{key}"
        requirements.append((key, text))
    return ",".join(text for _, text in sorted(requirements, key=lambda requirement: requirement[0]))

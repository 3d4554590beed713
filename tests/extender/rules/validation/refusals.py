"""The table of refusals, `refusals.yaml`, and the objects that provoke them.

A kind has a `valid` object, and rows for its refusals. A row of `created` is what to change in the valid object, and
the errors, or how they begin. A row of `updated`, or of a subresource, is what to change in the stored object, what
to change in the valid one so that it is the stored one (if anything), and the errors. A change is paths and values;
null removes.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import yaml

from extender.rules import validation
from extender.rules.api_resources import RESOURCES, Object, Resource
from extender.rules.validation import workload_rules
from extender.values.config.feature_gates import DEFAULT_FEATURES
from extender.values.golang.field_errors import FieldError
from tests.reprieve.cluster.made_objects import made

TABLE: Final = Path(__file__).with_name("refusals.yaml")


class _Loader(yaml.CSafeLoader):
    """Reads `!times [3, x]` as `xxx`, or as a list of three if x is no text; `!items [3, x]` as a list of three, and
    `!keys [3, x]` as a map of three.
    """

    def times(self, node: yaml.SequenceNode) -> Any:
        number, value = self.construct_sequence(node, deep=True)
        return number * value if isinstance(value, str) else [value] * number

    def items(self, node: yaml.SequenceNode) -> Any:
        number, value = self.construct_sequence(node, deep=True)
        return [value] * number

    def keys(self, node: yaml.SequenceNode) -> Any:
        number, value = self.construct_sequence(node, deep=True)
        return {f"k{place}": value for place in range(number)}


_Loader.add_constructor("!times", _Loader.times)
_Loader.add_constructor("!items", _Loader.items)
_Loader.add_constructor("!keys", _Loader.keys)


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that is refused: `verb` is `created`, `updated` or a subresource."""

    resource: Resource
    verb: str
    old: Object
    new: Object
    errors: list[str]

    def refused(self) -> list[FieldError]:
        if self.verb == "created":
            errors, old = validation.validate_create(self.resource, self.new), None
        elif self.verb == "scale":
            return workload_rules.validate_scale(self.new)
        else:
            subresource, old = "" if self.verb == "updated" else self.verb, self.old
            errors = validation.validate_update(self.resource, self.new, old, subresource)
        return [*errors, *validation.behind_gates(self.new, old, DEFAULT_FEATURES)]


def valid_objects() -> Mapping[Resource, Object]:
    """Returns the valid object of each kind in the table, as the server has it after its creation."""
    return {resource: _valid(resource, rows["valid"]) for resource, rows in _table()}


def refusals() -> Iterator[Refusal]:
    """Yields the rows of the table."""
    for resource, rows in _table():
        valid = _valid(resource, rows.pop("valid"))
        for verb, refused in rows.items():
            for change, *earlier, errors in refused:
                old = _changed(valid, *earlier)
                yield Refusal(
                    resource, verb, old, _changed(old, change), [errors] if isinstance(errors, str) else errors
                )


def _table() -> Iterator[tuple[Resource, dict[str, Any]]]:
    resources = {resource.qualified: resource for resource in RESOURCES}
    # One loader, so that all rows of a kind are read once; it only reads what is safe.
    for name, rows in yaml.load(TABLE.read_text(encoding="utf-8"), Loader=_Loader).items():
        yield resources[name], rows


def _valid(resource: Resource, manifest: Object) -> Object:
    metadata = {"name": "x", "resourceVersion": "1"} | ({"namespace": "default"} if resource.namespaced else {})
    return made(resource, {**manifest, "metadata": metadata | manifest.get("metadata", {})})


def _changed(obj: Object, *changes: Mapping[str, Any]) -> Object:
    obj = copy.deepcopy(obj)
    for change in changes:
        for path, value in change.items():
            _set_at(obj, path.split("."), copy.deepcopy(value))
    return obj


def _set_at(parent: Any, path: list[str], value: Any) -> None:
    name, *rest = path
    if isinstance(parent, list):
        place = int(name)
        if rest:
            _set_at(parent[place], rest, value)
        else:
            parent[place : place + 1] = [value]
    elif rest:
        _set_at(parent.setdefault(name, {}), rest, value)
    elif value is None:
        parent.pop(name, None)
    else:
        parent[name] = value

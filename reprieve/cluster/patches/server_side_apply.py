"""Server-side apply: several managers declare the fields of an object.

A manager always applies all the fields that it cares about, and owns them. A field that it no longer applies is
removed, unless another manager owns it; a field that another manager owns with another value is a conflict, unless the
request forces it. First of all, an applied object has to fit its type.

Upstream: structured-merge-diff/v6, merge/update.go, typed/validate.go, typed/helpers.go;
apimachinery/pkg/util/managedfields/internal.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

import orjson

from extender.rules.api_resources import Object, Resource
from extender.rules.schema import api_types
from extender.rules.statuses import ApiStatus, bad_request
from extender.rules.validation.metadata_rules import TOTAL_ANNOTATION_SIZE_LIMIT, annotation_bytes
from extender.values.golang.json import JsonError
from extender.values.golang.quoting import printed, printed_type, quoted
from extender.values.golang.schema import GoType, Kind, ListOf, MapOf, Scalar, Struct
from extender.values.golang.times import rfc3339
from reprieve.cluster.patches import field_sets, managed_fields, typed_values
from reprieve.cluster.patches.field_sets import LEAF, FieldSet
from reprieve.cluster.patches.managed_fields import FieldOwner, Owned, Owners
from reprieve.cluster.patches.typed_values import UnkeyedItemError

BEFORE_FIRST_APPLY: Final = "before-first-apply"
KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_NEVER_OWNED: Final = field_sets.of_paths(
    ("apiVersion",), ("kind",), ("metadata",), *(("metadata", name) for name in managed_fields.NEVER_OWNED)
)


def apply(
    resource: Resource,
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool = False,
    subresource: str = "",
    now: datetime,
) -> Object:
    """Returns the object after `manager` applied its fields, managedFields included, before defaults and admission.

    Arguments:
        live: the stored object; None if the object is created.
        applied: JSON values that have not been read by the schema.
        force: take over fields of other managers.

    Raises:
        ApiStatus: 409 with a cause for each conflict; 400 if the value is no applied object of this resource; 500 if it
            does not fit its type.
    """
    _check(resource, applied)
    kind = api_types.type_of(resource)
    ignored = managed_fields.reset_fields(resource, subresource)
    me = FieldOwner(manager or "unknown", "Apply", "", subresource)
    time = rfc3339(now)
    before = _bare(managed_fields.zero_value(kind) if live is None else live)
    owners = _owners(resource, kind, live, subresource, time)

    mine = field_sets.without(typed_values.fields_of(kind, applied), ignored)
    last = owners.get(me)
    claims = {**owners, me: Owned(mine, resource.api_version)}
    # 1. Merge the applied value into the live one; remove the fields applied last time that nobody owns now.
    merged = typed_values.merge(kind, before, applied)
    after = merged if last is None else _pruned(kind, merged, last.fields, claims)

    # 2. A change of a field that another manager owns is a conflict.
    comparison = managed_fields.compare(kind, before, after, ignored)
    other_owners = {owner: owned for owner, owned in owners.items() if owner != me}
    conflicts = _conflicts(other_owners, comparison.changed, resource.api_version)
    if conflicts and not force:
        _raise_unless_allowed(resource, kind, before, conflicts, manager)
    # 3. Other managers lose the changed fields; this one owns all that it applied.
    lost = field_sets.union(comparison.changed, comparison.removed)
    result = managed_fields.after_loss(other_owners, lost, resource.api_version)
    mine = field_sets.difference(mine, _NEVER_OWNED)
    if mine:
        # A manager that changes nothing keeps the time of its last change.
        is_same = live is not None and after == before
        result[me] = Owned(mine, resource.api_version, (last.time if last else None) if is_same else time)

    obj = _read(resource, after)
    if manager == KUBECTL:
        _remember_applied(obj, applied)
    if result:
        obj["metadata"]["managedFields"] = managed_fields.encode(result)
    return obj


def _check(resource: Resource, applied: Object) -> None:
    claimed = f"{applied.get('apiVersion', '')}, Kind={applied.get('kind', '')}"
    expected = f"{resource.api_version}, Kind={resource.kind}"
    metadata = applied.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    if claimed != expected:
        raise bad_request(f"invalid object type: {_with_group(claimed)}")
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    problem = problem_text(api_types.type_of(resource), applied)
    if problem:
        raise ApiStatus(500, "", f"failed to create typed patch object ({_called(resource, metadata)}): {problem}")


def _read(resource: Resource, after: Object) -> Object:
    try:
        obj, _ = api_types.read(resource, after)
    except JsonError as error:
        called = _called(resource, after.get("metadata") or {})
        raise ApiStatus(500, "", f"failed to convert new typed object ({called}) to object: {error}") from error
    return obj


def _called(resource: Resource, metadata: Mapping[str, Any]) -> str:
    address = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return f"{address}; {_with_group(f'{resource.api_version}, Kind={resource.kind}')}"


def _with_group(api_version_and_kind: str) -> str:
    """Returns a GroupVersionKind as Go prints it, with an empty text before the slash for the core group."""
    return api_version_and_kind if "/" in api_version_and_kind.partition(",")[0] else f"/{api_version_and_kind}"


def _owners(resource: Resource, kind: Struct, live: Object | None, subresource: str, time: str) -> Owners:
    try:
        owners = managed_fields.decode(live)
    except managed_fields.MalformedError as error:
        raise ApiStatus(500, "", f"failed to decode managed fields: {error}") from error
    if owners or live is None:
        return owners
    # Fields that were set before the object was tracked get an owner, so that the first apply does not remove them.
    ignored = managed_fields.reset_fields(resource, subresource)
    comparison = managed_fields.compare(kind, managed_fields.zero_value(kind), live, ignored)
    owner = FieldOwner(BEFORE_FIRST_APPLY, "Update", resource.api_version, subresource)
    return managed_fields.after_update({}, comparison, owner, time)


def _bare(obj: Object) -> Object:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


# --- removal


def _pruned(kind: Struct, merged: Object, last: FieldSet, claims: Owners) -> Object:
    """Returns the merged object without the fields that the manager no longer applies and nobody else owns."""
    if not last:
        return merged
    last = typed_values.with_named_fields(kind, last)
    claimed = LEAF
    for owned in claims.values():
        claimed = field_sets.union(claimed, owned.fields)
    claimed = typed_values.with_named_fields(kind, claimed)
    present = _named_fields_of(kind, merged)
    # Removes all fields applied last time; adds back the owned ones, and then those that were never applied.
    unapplied = _named_fields_of(kind, typed_values.remove(kind, merged, last))
    owned = typed_values.remove(kind, merged, field_sets.difference(present, field_sets.union(unapplied, claimed)))
    surplus = field_sets.difference(present, _named_fields_of(kind, owned))
    result: Object = typed_values.remove(kind, merged, field_sets.intersection(surplus, last))
    return result


def _named_fields_of(kind: Struct, value: Any) -> FieldSet:
    return typed_values.with_named_fields(kind, typed_values.fields_of(kind, value))


# --- conflicts


@final
@dataclass(frozen=True, slots=True)
class _Conflict:
    owner: FieldOwner
    fields: FieldSet

    @property
    def manager(self) -> str:
        text = quoted(self.owner.manager)
        if self.owner.subresource:
            text += f" with subresource {quoted(self.owner.subresource)}"
        return f"{text} using {self.owner.api_version}" if self.owner.operation == "Update" else text


def _conflicts(owners: Owners, changed: FieldSet, api_version: str) -> list[_Conflict]:
    conflicts = [
        _Conflict(owner, field_sets.intersection(owned.fields, changed))
        for owner, owned in sorted(owners.items(), key=lambda pair: pair[0])
        if owned.api_version == api_version
    ]
    return [conflict for conflict in conflicts if conflict.fields]


def _raise_unless_allowed(
    resource: Resource, kind: Struct, live: Object, conflicts: list[_Conflict], manager: str
) -> None:
    """Raises the conflicts, except kubectl's about fields that client-side apply set, as the annotation says."""
    if manager == KUBECTL:
        allowed = _last_applied_fields(resource, kind, live)
        conflicts = [
            _Conflict(conflict.owner, field_sets.difference(conflict.fields, allowed)) for conflict in conflicts
        ]
        conflicts = [conflict for conflict in conflicts if conflict.fields]
    if conflicts:
        raise conflict_status(conflicts)


def conflict_status(conflicts: list[_Conflict]) -> ApiStatus:
    """Returns 409: other managers own fields that would change. Upstream: conflict.go, NewConflictError."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {conflict.manager}", "field": path}
        for conflict in conflicts
        for path in field_sets.paths(conflict.fields)
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for conflict in conflicts:
            lines.append(f"conflicts with {conflict.manager}:")
            lines += [f"- {path}" for path in field_sets.paths(conflict.fields)]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiStatus(409, "Conflict", message, {"causes": causes})


# --- the annotation of client-side apply


def _last_applied_fields(resource: Resource, kind: Struct, live: Object) -> FieldSet:
    """Returns the fields that client-side apply set and that have not changed since."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        obj = orjson.loads(text or "")
    except orjson.JSONDecodeError:
        return LEAF
    if not isinstance(obj, dict) or obj.get("apiVersion") != resource.api_version or problem_text(kind, obj):
        return LEAF
    comparison = typed_values.compare(kind, obj, live)
    differing = field_sets.union(comparison.changed, comparison.removed)
    return field_sets.difference(typed_values.fields_of(kind, obj), differing)


def _remember_applied(obj: Object, applied: Object) -> None:
    """Updates the annotation of client-side apply, if there is one, so that kubectl can return to it."""
    annotations = obj["metadata"].get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    metadata = dict(applied.get("metadata") or {})
    if metadata.get("annotations"):
        pairs = metadata["annotations"].items()
        metadata["annotations"] = {name: value for name, value in pairs if name != LAST_APPLIED}
    form = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    text = orjson.dumps({**applied, "metadata": metadata}, option=form).decode()
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    annotations = {**annotations, LAST_APPLIED: text}
    if annotation_bytes(annotations) > TOTAL_ANNOTATION_SIZE_LIMIT:
        del annotations[LAST_APPLIED]
    obj["metadata"]["annotations"] = annotations


_NUMBERS: Final = frozenset((Kind.INT32, Kind.INT64, Kind.UINT32, Kind.FLOAT64))
_TEXTS: Final = frozenset((Kind.STRING, Kind.BYTES, Kind.DURATION))


def problem_text(kind: GoType, value: Any) -> str:
    """Returns the problems of a value as one text; empty if it has none."""
    problems = list(_problems(kind, value, ""))
    return "".join(problems) if len(problems) < 2 else "\n".join(["errors:", *(f"  {problem}" for problem in problems)])


def _problems(kind: GoType, value: Any, path: str) -> Iterator[str]:
    if value is None:
        return
    if isinstance(kind, Scalar):
        yield from _scalar_problems(kind.kind, value, path)
    elif isinstance(kind, ListOf):
        yield from _list_problems(kind, value, path) if isinstance(value, list) else _wrong_shape("list", value, path)
    elif isinstance(kind, Struct | MapOf):
        yield from _map_problems(kind, value, path) if isinstance(value, dict) else _wrong_shape("map", value, path)


def _wrong_shape(expected: str, value: Any, path: str) -> list[str]:
    return [_placed(path, f"expected {expected}, got &{{{printed(value)}}}")]


def _scalar_problems(kind: Kind, value: Any, path: str) -> Iterator[str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in _NUMBERS:
        if not is_number:
            yield _placed(path, f"expected numeric (int or float), got {printed_type(value)}")
    elif kind in _TEXTS:
        if not isinstance(value, str):
            yield _placed(path, f"expected string, got &value.valueUnstructured{{Value:{printed(value)}}}")
    elif kind is Kind.BOOL:
        if not isinstance(value, bool):
            text = json.dumps(value) if isinstance(value, str) else printed(value)
            yield _placed(path, f"expected boolean, got &value.valueUnstructured{{Value:{text}}}")
    elif not isinstance(value, str | int | float):
        yield _placed(path, f"expected any scalar, got &{{{printed(value)}}}")


def _list_problems(kind: ListOf, items: list[Any], path: str) -> Iterator[str]:
    elements = set()
    for place, item in enumerate(items):
        element = f"i:{place}"
        if kind.list_type != "atomic":
            try:
                element = typed_values.item_element(kind, item)
            except UnkeyedItemError as error:
                yield _placed(path, f"element {place}: {error}")
                return
            if element in elements:
                yield _placed(path, f"duplicate entries for key {field_sets.element_text(element)}")
            elements.add(element)
        yield from _problems(kind.item, item, path + field_sets.element_text(element))


def _map_problems(kind: Struct | MapOf, value: dict[str, Any], path: str) -> Iterator[str]:
    for name, below in value.items():
        type_ = typed_values.type_below(kind, name)
        if type_ is None:
            # Upstream stops at the first unknown field of an object.
            yield _placed(f"{path}.{name}", "field not declared in schema")
            return
        yield from _problems(type_, below, f"{path}.{name}")


def _placed(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem

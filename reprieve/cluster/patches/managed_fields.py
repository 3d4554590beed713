"""metadata.managedFields: reads, writes and computes the owners of the fields of an object.

A create, update or patch makes its field manager the owner of the fields that it changed; other managers lose the
fields that were changed or removed. Server-side apply has its own rules (`server_side_apply`). Upstream computes this
before admission and before the strategy prepares the object, and so does the registry.

Upstream: apimachinery/pkg/util/managedfields/internal; structured-merge-diff/v6/merge/update.go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Final, Literal, NamedTuple, final

from extender.rules.api_resources import Object, Resource
from extender.rules.schema import api_types
from extender.values.golang.schema import Struct
from extender.values.golang.times import rfc3339
from reprieve.cluster.patches import field_sets, typed_values
from reprieve.cluster.patches.field_sets import LEAF, FieldSet
from reprieve.cluster.patches.typed_values import Comparison

DEFAULT_MAX_UPDATE_MANAGERS: Final = 10
"""The largest number of updaters; beyond it the oldest are merged into one."""
OLD_UPDATES: Final = "ancient-changes"


class FieldOwner(NamedTuple):
    """The identity of an entry. The API version counts for updates only: a manager that applies has one entry."""

    manager: str
    operation: str
    api_version: str
    subresource: str


@final
@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of an owner, the API version that names them, and the time of its last change."""

    fields: FieldSet
    api_version: str
    time: str | None = None


Owners = dict[FieldOwner, Owned]


@final
class MalformedError(ValueError):
    """An entry of managedFields cannot be read."""


def decode(obj: Object | None) -> Owners:
    """Returns the owners of an object's fields. Raises MalformedError with upstream's text."""
    owners: Owners = {}
    for place, entry in enumerate((obj or {}).get("metadata", {}).get("managedFields") or ()):
        operation, api_version, fields_type = entry.get("operation"), entry.get("apiVersion"), entry.get("fieldsType")
        if operation not in ("Apply", "Update"):
            raise MalformedError("operation must be `Apply` or `Update`")
        if not api_version:
            raise MalformedError("apiVersion must not be empty")
        if not fields_type:
            raise MalformedError(f"missing fieldsType in managed fields entry {place}")
        if fields_type != "FieldsV1":
            raise MalformedError(f'invalid fieldsType "{fields_type}" in managed fields entry {place}')
        fields = entry.get("fieldsV1") or LEAF
        if not field_sets.is_well_formed(fields):
            raise MalformedError(f"error decoding fieldsV1 in managed fields entry {place}")
        owner = FieldOwner(
            entry.get("manager", ""),
            operation,
            api_version if operation == "Update" else "",
            entry.get("subresource", ""),
        )
        owners[owner] = Owned(fields, api_version, entry.get("time"))
    return owners


def encode(owners: Owners) -> list[Object]:
    """Returns the managedFields: first the entries of apply, then those of updates, by time."""
    entries = []
    for owner, owned in sorted(owners.items(), key=lambda pair: (pair[0].operation, pair[1].time or "", pair[0])):
        entry: Object = {"manager": owner.manager, "operation": owner.operation, "apiVersion": owned.api_version}
        if not owner.manager:
            del entry["manager"]
        if owned.time is not None:
            entry["time"] = owned.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": owned.fields}
        if owner.subresource:
            entry["subresource"] = owner.subresource
        entries.append(entry)
    return entries


def capped(owners: Owners) -> Owners:
    """Returns the owners, with the oldest updaters of each version merged beyond the maximum (capmanagers.go)."""
    updaters = sorted(
        (pair for pair in owners.items() if pair[0].operation == "Update"),
        key=lambda pair: (pair[1].time or "", pair[0]),
    )
    count = len(updaters)
    if count <= DEFAULT_MAX_UPDATE_MANAGERS:
        return owners
    result = dict(owners)
    first_of_version: dict[str, FieldOwner] = {}
    for owner, owned in updaters:
        if count <= DEFAULT_MAX_UPDATE_MANAGERS:
            break
        version = owned.api_version
        first = first_of_version.setdefault(version, owner)
        if first == owner:
            continue
        bucket = FieldOwner(OLD_UPDATES, "Update", version, "")
        together = result.get(bucket) or result.pop(first)
        result[bucket] = Owned(field_sets.union(owned.fields, together.fields), version, owned.time)
        if owner != bucket:
            del result[owner]
        count -= 1
    return result


Operation = Literal["Apply", "Update"]


def updated(
    resource: Resource,
    old: Object | None,
    new: Object,
    *,
    manager: str,
    operation: Operation = "Update",
    subresource: str = "",
    now: datetime,
) -> list[Object]:
    """Returns the managedFields of an object after a create, update or patch; empty if the object should have none.

    Arguments:
        old: the stored object; None if the object is created.
        new: the object with its defaults. In a write to the object itself its own managedFields count, so that callers
            can edit or reset them.
    """
    owners = _of_request(old, new, is_subresource=bool(subresource))
    if not owners and old is not None:
        # An update does not begin to track an object that was not tracked before.
        return []
    kind = api_types.type_of(resource)
    owner = FieldOwner(manager or "unknown", operation, resource.api_version, subresource)
    try:
        comparison = compare(kind, zero_value(kind) if old is None else old, new, reset_fields(resource, subresource))
    except typed_values.UnkeyedItemError:
        # Validation will refuse such an object; until then, as upstream, its managedFields stay.
        return [] if old is None else list(old["metadata"].get("managedFields") or ())
    return encode(capped(after_update(owners, comparison, owner, rfc3339(now))))


def after_update(owners: Owners, comparison: Comparison, owner: FieldOwner, time: str) -> Owners:
    """Returns the owners after `owner` changed an object. Its time moves only if it gained fields."""
    changed = comparison.changed
    result = after_loss(owners, field_sets.union(changed, comparison.removed), owner.api_version)
    if changed:
        previous = result.get(owner)
        fields = field_sets.union(previous.fields, changed) if previous else changed
        result[owner] = Owned(fields, owner.api_version, time)
    return result


def after_loss(owners: Owners, lost: FieldSet, api_version: str) -> Owners:
    """Returns the owners without these fields. Fields of another API version stay as they are."""
    result = {}
    for owner, owned in owners.items():
        remainder = field_sets.difference(owned.fields, lost) if owned.api_version == api_version else owned.fields
        if remainder:
            result[owner] = owned if remainder is owned.fields else replace(owned, fields=remainder)
    return result


NEVER_OWNED: Final = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
"""The metadata fields without an owner. Upstream: stripmeta.go."""

TYPE_META: Final = frozenset(("kind", "apiVersion"))

_STATUS: Final = field_sets.of_paths(("status",))
_SPEC: Final = field_sets.of_paths(("spec",))
_METADATA_AND_SPEC: Final = field_sets.of_paths(("metadata",), ("spec",))
_OF_STATUS: Final[Mapping[str, FieldSet]] = {
    "Pod": field_sets.of_paths(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    "Deployment": field_sets.of_paths(("spec",), ("metadata", "labels")),
    "ResourceClaim": _METADATA_AND_SPEC,
    "VolumeAttachment": _METADATA_AND_SPEC,
}


def reset_fields(resource: Resource, subresource: str) -> FieldSet:
    """Returns the fields that a write to a subresource neither changes nor owns (GetResetFields)."""
    if subresource == "status":
        return _OF_STATUS.get(resource.kind, _SPEC)
    if not subresource and resource.subresource("status") is not None:
        return _STATUS
    return LEAF


def compare(kind: Struct, old: Object, new: Object, ignored: FieldSet) -> Comparison:
    """Returns the differences of two objects in the fields that can have owners and are not ignored."""
    comparison = typed_values.compare(kind, _ownable(old, ignored), _ownable(new, ignored))
    if not any(node for node in ignored.values()):
        return comparison
    return Comparison(
        *(field_sets.without(part, ignored) for part in (comparison.added, comparison.modified, comparison.removed))
    )


def _ownable(obj: Object, ignored: FieldSet) -> Object:
    result = {name: value for name, value in obj.items() if name not in TYPE_META and ignored.get(f"f:{name}") != LEAF}
    if "metadata" in result:
        result["metadata"] = {name: value for name, value in (obj["metadata"] or {}).items() if name not in NEVER_OWNED}
    return result


@cache
def zero_value(kind: Struct) -> Object:
    """Returns the object without content: setting a field to its zero value does not make it owned."""
    result: Object = kind.zero()
    return result


def _of_request(old: Object | None, new: Object, *, is_subresource: bool) -> Owners:
    live = _of_object(old)
    entries = new["metadata"].get("managedFields")
    if is_subresource or entries is None:
        return live
    if entries in ([], [{}]):
        # An empty list resets the owners, as upstream.
        return {}
    return _of_object(new) or live


def _of_object(obj: Object | None) -> Owners:
    try:
        return decode(obj)
    except MalformedError:
        return {}

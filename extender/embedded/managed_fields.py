"""Who set which field of an object: metadata.managedFields, computed when an object is written.

A create, update or patch makes its caller the owner of what it changed; nobody keeps what somebody else changed or took away. Server-side
apply is next door, in `apply`. Upstream computes this before admission and before the strategy prepares the object, and so should callers.

Upstream: apimachinery/pkg/util/managedfields/internal; structured-merge-diff/v6/merge/update.go (v1.36.2).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Final, Literal

from extender.embedded import comparing, field_sets, owners, schema
from extender.embedded.comparing import Comparison
from extender.embedded.field_sets import LEAF, FieldSet
from extender.embedded.owners import Owned, Owner, Owners
from extender.embedded.resources import Object, Resource
from extender.golang.schema import Struct

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
    """The managedFields of an object after a create, update or patch; empty: the object should have none.

    Arguments:
        old: what was stored; None: the object is created.
        new: with the defaults filled in. In a write to the object itself its own managedFields count, so that callers may edit or reset
            them.
        manager: who writes: the fieldManager of the request or the first part of its User-Agent.
        operation: always `Update` here; `Apply` is what `apply` leaves behind.
        subresource: which one was written to; empty: the object itself.
    """
    known = _of_request(old, new, is_subresource=bool(subresource))
    if not known and old is not None:
        # Nobody has been keeping track of this object, and nobody begins to with an update.
        return []
    kind = schema.type_of(resource)
    owner = Owner(manager or "unknown", operation, resource.api_version, subresource)
    try:
        comparison = compare(kind, zero_value(kind) if old is None else old, new, reset_fields(resource, subresource))
    except comparing.UnkeyedItemError:
        # Validation will refuse such an object; until then, as upstream, what was known stays.
        return [] if old is None else list(old["metadata"].get("managedFields") or ())
    return owners.encode(owners.capped(after_update(known, comparison, owner, owners.timestamp(now))))


def after_update(known: Owners, comparison: Comparison, owner: Owner, time: str) -> Owners:
    """Who owns what after `owner` made an object differ so. Its time moves only if it gained something."""
    changed = comparison.changed
    result = after_loss(known, field_sets.union(changed, comparison.removed), owner.api_version)
    if changed:
        previous = result.get(owner)
        fields = field_sets.union(previous.fields, changed) if previous else changed
        result[owner] = Owned(fields, owner.api_version, time)
    return result


def after_loss(known: Owners, lost: FieldSet, api_version: str) -> Owners:
    """Who still owns something without these fields. What is owned as of another version has other names, and stays as it is."""
    result = {}
    for owner, owned in known.items():
        left = field_sets.difference(owned.fields, lost) if owned.api_version == api_version else owned.fields
        if left:
            result[owner] = owned if left is owned.fields else replace(owned, fields=left)
    return result


NEVER_OWNED: Final = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion")
)
"""Fields of metadata that have no owner. Upstream: stripmeta.go."""

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
    """What a write to this face of an object leaves alone, so that it makes nobody its owner. Upstream: GetResetFields."""
    if subresource == "status":
        return _OF_STATUS.get(resource.kind, _SPEC)
    if not subresource and resource.subresource("status") is not None:
        return _STATUS
    return LEAF


def compare(kind: Struct, old: Object, new: Object, ignored: FieldSet) -> Comparison:
    """How two objects differ in the fields that can have owners and are not ignored."""
    comparison = comparing.compare(kind, _ownable(old, ignored), _ownable(new, ignored))
    if not any(node for node in ignored.values()):
        return comparison
    return Comparison(*(field_sets.without(part, ignored) for part in (comparison.added, comparison.modified, comparison.removed)))


def _ownable(obj: Object, ignored: FieldSet) -> Object:
    result = {name: value for name, value in obj.items() if name not in TYPE_META and ignored.get(f"f:{name}") != LEAF}
    if "metadata" in result:
        result["metadata"] = {name: value for name, value in (obj["metadata"] or {}).items() if name not in NEVER_OWNED}
    return result


@cache
def zero_value(kind: Struct) -> Object:
    """The object that says nothing. What is there already when nothing was said becomes nobody's by being said again."""
    result: Object = kind.zero()
    return result


def _of_request(old: Object | None, new: Object, *, is_subresource: bool) -> Owners:
    live = _of_object(old)
    given = new["metadata"].get("managedFields")
    if is_subresource or given is None:
        return live
    if given in ([], [{}]):
        # Upstream's way to have the record started afresh.
        return {}
    return _of_object(new) or live


def _of_object(obj: Object | None) -> Owners:
    try:
        return owners.decode(obj)
    except owners.MalformedError:
        return {}

"""The entries of metadata.managedFields: who owns which fields of an object, read and written.

Upstream: apimachinery/pkg/util/managedfields/internal/managedfields.go, capmanagers.go (v1.36.2).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, final

from extender.embedded import field_sets
from extender.embedded.field_sets import LEAF, FieldSet
from extender.embedded.resources import Object

MAX_UPDATE_MANAGERS: Final = 10
"""With more updaters than this the oldest become one. Upstream: DefaultMaxUpdateManagers."""
OLD_UPDATES: Final = "ancient-changes"


class Owner(NamedTuple):
    """What tells an entry of managedFields apart. The API version counts for updates only: who applies has one entry."""

    manager: str
    operation: str
    api_version: str
    subresource: str


@final
@dataclass(frozen=True, slots=True)
class Owned:
    """What an owner owns, as of which version, and when it last changed something."""

    fields: FieldSet
    api_version: str
    time: str | None = None


Owners = dict[Owner, Owned]


def timestamp(now: datetime) -> str:
    """As a metav1.Time is written."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@final
class MalformedError(ValueError):
    """An entry of managedFields is not one."""


def decode(obj: Object | None) -> Owners:
    """Who owns what of an object, as its managedFields say.

    Raises:
        MalformedError: they are not well formed; with upstream's text.
    """
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
        owner = Owner(entry.get("manager", ""), operation, api_version if operation == "Update" else "", entry.get("subresource", ""))
        owners[owner] = Owned(fields, api_version, entry.get("time"))
    return owners


def encode(owners: Owners) -> list[Object]:
    """The managedFields: who applied first, then by time."""
    entries = []
    for owner, owned in sorted(owners.items(), key=lambda each: (each[0].operation, each[1].time or "", each[0])):
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
    """The owners with the oldest updates of a version put together until few enough are left. Upstream: capmanagers.go."""
    updaters = sorted((each for each in owners.items() if each[0].operation == "Update"), key=lambda each: (each[1].time or "", each[0]))
    left = len(updaters)
    if left <= MAX_UPDATE_MANAGERS:
        return owners
    result = dict(owners)
    first_of_version: dict[str, Owner] = {}
    for owner, owned in updaters:
        if left <= MAX_UPDATE_MANAGERS:
            break
        version = owned.api_version
        first = first_of_version.setdefault(version, owner)
        if first == owner:
            continue
        bucket = Owner(OLD_UPDATES, "Update", version, "")
        together = result.get(bucket) or result.pop(first)
        result[bucket] = Owned(field_sets.union(owned.fields, together.fields), version, owned.time)
        if owner != bucket:
            del result[owner]
        left -= 1
    return result

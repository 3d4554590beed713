"""Store: the objects of one kind as the API server reported them, and what each event changes.

Events may arrive twice, late, or out of order. A newer object is never overwritten by an older one, and a deleted
object stays deleted. A whole new list replaces everything.

Upstream: client-go/tools/cache/store.go; apimachinery/pkg/util/resourceversion/resourceversion.go,
CompareResourceVersion.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar, final

from extender.values import limits
from extender.values.objects.cluster import Key
from extender.values.objects.meta import HasMetadata, ObjectMeta


def is_older(version: str, than: str) -> bool:
    """Returns whether `version` is certainly older; False for equal ones and what cannot be compared."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


T = TypeVar("T", bound=HasMetadata)


@final
class Change(NamedTuple, Generic[T]):
    """An object was added (`old` is None), modified, or deleted (`new` is None). Old and new have the same UID."""

    old: T | None
    new: T | None


@final
class Store(Generic[T]):
    """Objects by namespace and name, and the last deleted ones."""

    def __init__(self) -> None:
        self.objects: dict[Key, T] = {}
        self.num_stale = 0
        """The number of events that were older than the known object."""
        self._buried: dict[str, str] = {}
        """UID -> resource version of the deletion, oldest first."""

    def put(self, new: T) -> Sequence[Change[T]]:
        """Adds or modifies an object. Another UID under a known name means that the known object was deleted."""
        meta = new.metadata
        key = (meta.namespace, meta.name)
        stored = self.objects.get(key)
        if stored is None:
            end = self._buried.get(meta.uid)
            if end is not None and not is_older(end, meta.resource_version):
                self.num_stale += 1
                return ()
            self.objects[key] = new
            return (Change(None, new),)
        if meta.resource_version == stored.metadata.resource_version or is_older(
            meta.resource_version, stored.metadata.resource_version
        ):
            self.num_stale += 1
            return ()
        self.objects[key] = new
        if meta.uid == stored.metadata.uid:
            return (Change(stored, new),)
        self._bury(stored.metadata.uid, meta.resource_version)
        return (Change(stored, None), Change(None, new))

    def remove(self, identity: ObjectMeta) -> Sequence[Change[T]]:
        """Deletes an object. An unknown one is remembered, so that a late event does not add it."""
        key = (identity.namespace, identity.name)
        stored = self.objects.get(key)
        self._bury(identity.uid, identity.resource_version)
        if stored is None:
            return ()
        if stored.metadata.uid != identity.uid:
            if is_older(identity.resource_version, stored.metadata.resource_version):
                self.num_stale += 1
                return ()
            self._bury(stored.metadata.uid, identity.resource_version)
        del self.objects[key]
        return (Change(stored, None),)

    def keep_unreadable(self, meta: ObjectMeta) -> Sequence[Change[T]]:
        """Handles an object that cannot be read: its known version stays, another UID's is deleted."""
        stored = self.objects.get((meta.namespace, meta.name))
        if (
            stored is None
            or stored.metadata.uid == meta.uid
            or is_older(meta.resource_version, stored.metadata.resource_version)
        ):
            return ()
        del self.objects[meta.namespace, meta.name]
        self._bury(stored.metadata.uid, meta.resource_version)
        return (Change(stored, None),)

    def replace(self, objects: Mapping[Key, T], unreadable: Mapping[Key, str]) -> Sequence[Change[T]]:
        """Replaces all objects by these; the known versions of those with `unreadable` UIDs stay."""
        former, self.objects = self.objects, dict(objects)
        self._buried.clear()
        absent_keys = [key for key in former if key not in objects]
        for key in [key for key in absent_keys if unreadable.get(key) == former[key].metadata.uid]:
            self.objects[key] = former[key]
        deletions = [Change(former[key], None) for key in absent_keys if key not in self.objects]
        return [*deletions, *(change for key, new in objects.items() for change in _changes(former.get(key), new))]

    def _bury(self, uid: str, version: str) -> None:
        self._buried.pop(uid, None)
        self._buried[uid] = version
        if len(self._buried) > limits.DELETIONS_REMEMBERED:
            del self._buried[next(iter(self._buried))]


def _changes(before: T | None, new: T) -> Sequence[Change[T]]:
    if before is None:
        return (Change(None, new),)
    if before.metadata.uid != new.metadata.uid:
        return Change(before, None), Change(None, new)
    return () if before == new else (Change(before, new),)

"""Store: the objects of one kind as the API server reported them, and what each event changes.

Events may arrive twice, late, or out of order. A newer object is never overwritten by an older one, and a deleted
object stays deleted. A whole new list replaces everything.

Upstream: client-go/tools/cache/store.go; apimachinery/pkg/util/resourceversion/resourceversion.go,
CompareResourceVersion (v1.36.2).
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Final, Generic, TypeVar, final

from extender.values.objects.cluster import Key
from extender.values.objects.meta import HasMetadata, ObjectMeta


def is_older(version: str, than: str) -> bool:
    """Returns whether `version` is certainly older than `than`; False for equal ones and for those that cannot be
    compared.
    """
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


MAX_BURIED: Final = 10_000
"""The number of deleted objects that are remembered, the last ones."""

COMPARED_AT_ONCE: Final = 256
"""The number of objects of a list whose changes are delivered together: one to three milliseconds of work."""


NOTHING: Final[Mapping[Key, str]] = MappingProxyType({})


T = TypeVar("T", bound=HasMetadata)


@final
@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """An object was added (`old` is None), modified, or deleted (`new` is None). Old and new have the same UID."""

    old: T | None
    new: T | None


@final
class _ObjectsByKey(dict[Key, T]):
    """A dict that the collector of cycles goes on tracking.

    Python stops to track plain dicts whose values are in no cycle when it collects, and begins again with the next
    entry, so that a dict of all pods is young again and again: each time a collection walks through all of it.
    """

    __slots__ = ()


@final
class Store(Generic[T]):
    """Objects by namespace and name, and the last deleted ones."""

    def __init__(self) -> None:
        self.objects: dict[Key, T] = _ObjectsByKey()
        self.num_stale = 0
        """The number of events that were older than the known object."""
        self._buried: dict[str, str] = {}
        """UID -> resource version of the deletion, oldest first."""

    def put(self, new: T) -> Sequence[Change[T]]:
        """Adds or modifies an object. Another UID under a known name means that the known object was deleted."""
        meta = new.metadata
        key = (meta.namespace, meta.name)
        held = self.objects.get(key)
        if held is None:
            end = self._buried.get(meta.uid)
            if end is not None and not is_older(end, meta.resource_version):
                self.num_stale += 1
                return ()
            self.objects[key] = new
            return (Change(None, new),)
        if meta.resource_version == held.metadata.resource_version or is_older(
            meta.resource_version, held.metadata.resource_version
        ):
            self.num_stale += 1
            return ()
        self.objects[key] = new
        if meta.uid == held.metadata.uid:
            return (Change(held, new),)
        self._bury(held.metadata.uid, meta.resource_version)
        return (Change(held, None), Change(None, new))

    def remove(self, gone: ObjectMeta) -> Sequence[Change[T]]:
        """Deletes an object. An unknown one is remembered, so that a late event does not add it."""
        key = (gone.namespace, gone.name)
        held = self.objects.get(key)
        self._bury(gone.uid, gone.resource_version)
        if held is None:
            return ()
        if held.metadata.uid != gone.uid:
            if is_older(gone.resource_version, held.metadata.resource_version):
                self.num_stale += 1
                return ()
            self._bury(held.metadata.uid, gone.resource_version)
        del self.objects[key]
        return (Change(held, None),)

    def keep_unreadable(self, meta: ObjectMeta) -> Sequence[Change[T]]:
        """Handles an object that exists but cannot be read: its known version stays, and a known object of that name
        with another UID is deleted.
        """
        held = self.objects.get((meta.namespace, meta.name))
        if (
            held is None
            or held.metadata.uid == meta.uid
            or is_older(meta.resource_version, held.metadata.resource_version)
        ):
            return ()
        del self.objects[meta.namespace, meta.name]
        self._bury(held.metadata.uid, meta.resource_version)
        return (Change(held, None),)

    def replace(
        self, objects: Mapping[Key, T], unreadable: Mapping[Key, str] = NOTHING, *, alone: Container[Key] = ()
    ) -> Iterator[Sequence[Change[T]]]:
        """Replaces all objects by these, whatever was known before, and returns the changes in portions. Each portion
        is worked out when it is asked for; `objects` is complete at once.

        Arguments:
            unreadable: UIDs of objects that exist, too, but cannot be read; their known versions stay.
            alone: those of which each ends a portion, because they are long.
        """
        known, self.objects = self.objects, _ObjectsByKey(objects)
        self._buried.clear()
        missing = [key for key in known if key not in objects]
        for key in [key for key in missing if unreadable.get(key) == known[key].metadata.uid]:
            self.objects[key] = known[key]
        gone = ((key, () if key in self.objects else (Change(known[key], None),)) for key in missing)
        there = ((key, _change(known.get(key), new)) for key, new in objects.items())
        return _in_portions(chain(gone, there), alone)

    def _bury(self, uid: str, version: str) -> None:
        self._buried.pop(uid, None)
        self._buried[uid] = version
        if len(self._buried) > MAX_BURIED:
            del self._buried[next(iter(self._buried))]


def _change(before: T | None, new: T) -> Sequence[Change[T]]:
    if before is None:
        return (Change(None, new),)
    if before.metadata.uid != new.metadata.uid:
        return Change(before, None), Change(None, new)
    return () if before == new else (Change(before, new),)


def _in_portions(
    compared: Iterable[tuple[Key, Sequence[Change[T]]]], alone: Container[Key]
) -> Iterator[Sequence[Change[T]]]:
    portion: list[Change[T]] = []
    number = 0
    for key, changes in compared:
        portion += changes
        number += 1
        if number == COMPARED_AT_ONCE or key in alone:
            yield portion
            portion, number = [], 0
    if number:
        yield portion

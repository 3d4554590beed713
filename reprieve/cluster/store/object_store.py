"""The objects, one resourceVersion counter for all of them, and their latest changes.

An object is kept as its JSON, encoded once and without `kind` and `apiVersion`, so that a list is these bytes joined.
The store knows no rules of any kind; whatever is written has been checked.

Upstream: apiserver/pkg/storage; pkg/registry, the GetAttrs and SelectableFields of each kind.
"""

import asyncio
import bisect
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, takewhile
from typing import Final, Literal, final

from extender.rules.api_resources import RESOURCES, Object, Resource
from reprieve.cluster import limits, refusals
from reprieve.cluster.store.stored_objects import Stored, at_version, stored_object

HISTORY: Final = 20_000
"""The number of changes of each kind that are remembered. A watch or a page of a list may lag so far behind."""

HISTORY_BYTES: Final = 2**26
"""The bytes of objects in the remembered changes of a kind. Of large objects, fewer changes are remembered."""

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@final
@dataclass(frozen=True, slots=True)
class StoredChange:
    """One write: the object before it, if there was one, and after it.

    For a removal, `new` is the last state with the resourceVersion of the removal.
    """

    type: ChangeType
    stored_as: str
    old: Stored | None
    new: Stored

    @property
    def resource_version(self) -> int:
        return self.new.resource_version


class CompactedError(Exception):
    """The changes that a reader needs are no longer remembered."""


@cache
def field_paths(stored_as: str) -> tuple[str, ...]:
    """Returns the paths of the selectable fields of a kind, without name and namespace, which are in the key."""
    paths = {path for resource in RESOURCES if resource.stored_as == stored_as for path in resource.fields.values()}
    return tuple(sorted(paths - {"metadata.name", "metadata.namespace"}))


@final
class _Kind:
    """The objects of one kind, and their latest changes.

    State: `first` is the position of the first remembered change, counted from the beginning; `compacted` is the newest
    resourceVersion whose change is forgotten; `waiting` holds the readers that wait for a change, in order of arrival,
    so that a run can be repeated.
    """

    def __init__(self, stored_as: str, history: int) -> None:
        self.paths: Final = field_paths(stored_as)
        self.history: Final = history
        self.objects: Final[dict[str, Stored]] = {}
        self.changes: Final[list[StoredChange]] = []
        self.first = 0
        self.compacted = 0
        self._num_bytes = 0
        self.waiting: Final[dict[asyncio.Future[None], None]] = {}
        self._keys: list[str] = []
        self._added: list[str] = []
        self._has_removed = False

    def record(self, change: StoredChange) -> None:
        key = change.new.key
        if change.type == "DELETED":
            del self.objects[key]
            self._has_removed = True
            self._added.clear()
        else:
            if change.old is None and not self._has_removed:
                self._added.append(key)
            self.objects[key] = change.new
        self.changes.append(change)
        self._num_bytes += len(change.new.body)
        # Forgetting moves the whole list, so that it is done once for a quarter of the history.
        if len(self.changes) > self.history + self.history // 4:
            self.forget(len(self.changes) - self.history)
        if self._num_bytes > HISTORY_BYTES + HISTORY_BYTES // 4:
            totals = accumulate(len(change.new.body) for change in reversed(self.changes))
            self.forget(len(self.changes) - sum(1 for _ in takewhile(HISTORY_BYTES.__ge__, totals)))
        for future in self.waiting:
            if not future.done():
                future.set_result(None)
        self.waiting.clear()

    def forget(self, count: int) -> None:
        if count > 0:
            self.compacted = max(self.compacted, self.changes[count - 1].resource_version)
            self._num_bytes -= sum(len(change.new.body) for change in self.changes[:count])
            del self.changes[:count]
            self.first += count

    def keys(self) -> list[str]:
        """Returns all keys in order. The first call after a creation or removal sorts them."""
        if self._has_removed:
            self._keys = sorted(self.objects)
        elif self._added:
            self._keys.extend(self._added)
            self._keys.sort()
        self._added.clear()
        self._has_removed = False
        return self._keys

    def position_after(self, resource_version: int) -> int:
        """Returns the position of the first change after a resourceVersion. Raises CompactedError if forgotten."""
        if resource_version < self.compacted:
            raise CompactedError
        return self.first + bisect.bisect_right(self.changes, resource_version, key=_resource_version)

    def as_of(self, resource_version: int) -> dict[str, Stored | None]:
        """Returns the state at a resourceVersion of the objects that have changed since; None if absent then."""
        earlier: dict[str, Stored | None] = {}
        for change in reversed(self.changes[self.position_after(resource_version) - self.first :]):
            earlier[change.new.key] = change.old
        return earlier


def _resource_version(change: StoredChange) -> int:
    return change.resource_version


@final
class _Kinds(dict[str, _Kind]):
    """The kinds by the name under which they are stored, made at first use and `compacted` up to then."""

    def __init__(self, history: int, compacted: int) -> None:
        super().__init__()
        self._history = history
        self.compacted = compacted

    def __missing__(self, stored_as: str) -> _Kind:
        kind = self[stored_as] = _Kind(stored_as, self._history)
        kind.compacted = self.compacted
        return kind


@final
class ObjectStore:
    """State, home of the embedded cluster: objects, their latest changes, the resourceVersion.

    The store remembers at least `history` changes of each kind, and none up to the resourceVersion it begins with.
    """

    def __init__(self, *, history: int = HISTORY, resource_version: int = 1) -> None:
        self._kinds: Final = _Kinds(history, resource_version)
        self._resource_version = resource_version

    @property
    def resource_version(self) -> int:
        """Returns the resourceVersion of the latest write."""
        return self._resource_version

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self._kinds[resource.stored_as].objects.get(key_of(resource, namespace, name))

    def put(self, resource: Resource, namespace: str, name: str, obj: Object) -> Stored:
        """Creates or replaces an object; sets its metadata.resourceVersion. Raises ApiStatus if it is too large."""
        kind = self._kinds[resource.stored_as]
        key = key_of(resource, namespace, name)
        old = kind.objects.get(key)
        version = self._resource_version + 1
        obj["metadata"]["resourceVersion"] = str(version)
        new = stored_object(key, version, obj, kind.paths)
        if len(new.body) > limits.OBJECT_BYTES:
            raise refusals.too_large_object()
        self._resource_version = version
        kind.record(StoredChange("ADDED" if old is None else "MODIFIED", resource.stored_as, old, new))
        return new

    def remove(self, resource: Resource, namespace: str, name: str) -> Stored:
        """Removes an object that exists; returns its last state, with the resourceVersion of the removal."""
        kind = self._kinds[resource.stored_as]
        old = kind.objects[key_of(resource, namespace, name)]
        self._resource_version += 1
        last = at_version(old, self._resource_version)
        kind.record(StoredChange("DELETED", resource.stored_as, old, last))
        return last

    def read(self, resource: Resource, namespace: str = "") -> list[Stored]:
        """Returns the objects in order of their keys."""
        return list(self.scan(resource, namespace)[1])

    def scan(
        self, resource: Resource, namespace: str = "", *, version: int | None = None, start: str = ""
    ) -> tuple[int, Iterator[Stored]]:
        """Returns the number of objects from the key `start` on, and these objects in order of their keys.

        They are as they were at `version`, or are now; the iterator ends with the next write. Raises CompactedError if
        changes since then are forgotten.
        """
        kind = self._kinds[resource.stored_as]
        low = max(f"{namespace}/" if namespace else "", start)
        high = f"{namespace}0" if namespace else ""  # "0" comes after "/"
        keys = kind.keys()
        places = range(bisect.bisect_left(keys, low), bisect.bisect_left(keys, high) if high else len(keys))
        changed = kind.as_of(version) if version is not None and version < self._resource_version else {}
        if not changed:
            return len(places), (kind.objects[keys[place]] for place in places)
        earlier = {key: state for key, state in changed.items() if key >= low and (not high or key < high)}
        keys = keys[places.start : places.stop]
        if removed := earlier.keys() - kind.objects.keys():
            keys = sorted([*keys, *removed])
        states = (earlier[key] if key in earlier else kind.objects[key] for key in keys)
        num_absent = sum(state is None for state in earlier.values())
        return len(keys) - num_absent, (state for state in states if state is not None)

    def compact(self, resource_version: int) -> None:
        """Forgets the changes up to this resourceVersion, as etcd does every few minutes."""
        compacted = min(resource_version, self._resource_version)
        for kind in self._kinds.values():
            kind.forget(bisect.bisect_right(kind.changes, resource_version, key=_resource_version))
            kind.compacted = max(kind.compacted, compacted)
        self._kinds.compacted = max(self._kinds.compacted, compacted)

    def compacted(self, resource: Resource) -> int:
        """Returns the resourceVersion up to which changes of this kind are forgotten."""
        return self._kinds[resource.stored_as].compacted

    def follow(self, resources: Iterable[Resource], after: int) -> "Cursor":
        """Returns a reader of the changes of these kinds after a resourceVersion. Raises CompactedError."""
        return Cursor(
            [self._kinds[name] for name in dict.fromkeys(resource.stored_as for resource in resources)], after
        )


@final
class Cursor:
    """A reader's place in the history of some kinds. It holds no changes: the history overtakes a slow reader."""

    def __init__(self, kinds: Sequence[_Kind], after: int) -> None:
        self._kinds: Final = kinds
        self._positions: Final = [kind.position_after(after) for kind in kinds]

    def take(self, limit: int = sys.maxsize) -> list[StoredChange]:
        """Returns the changes since the last call by resourceVersion, about `limit` of each kind at most.

        Raises CompactedError if the reader was too slow, and some changes are forgotten.
        """
        changes: list[StoredChange] = []
        for number, kind in enumerate(self._kinds):
            begin = self._positions[number] - kind.first
            if begin < 0:
                raise CompactedError
            if begin >= len(kind.changes):
                continue
            batch = kind.changes[begin : begin + limit]
            self._positions[number] += len(batch)
            changes += batch
        if len(self._kinds) > 1:
            changes.sort(key=_resource_version)
        return changes

    async def wait(self) -> None:
        """Returns once there are changes to take."""
        if any(self._positions[number] < kind.first + len(kind.changes) for number, kind in enumerate(self._kinds)):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for kind in self._kinds:
            kind.waiting[future] = None
        try:
            await future
        finally:
            for kind in self._kinds:
                kind.waiting.pop(future, None)


def key_of(resource: Resource, namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if resource.namespaced else name

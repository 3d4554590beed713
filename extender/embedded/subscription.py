"""Changes as values, for those who live in the same process."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from extender.embedded.resources import Object, Resource
from extender.embedded.store import Change, ChangeType, Store, Stored


@final
@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One write: `old` is None for what was created, `new` for what was removed."""

    type: ChangeType
    resource: Resource
    old: Object | None
    new: Object | None


@final
class Subscription:
    """An async iterator over the changes of some kinds, in order, from the moment it was made.

    It raises CompactedError if it was left unread for so long that changes were forgotten; its owner then lists, and subscribes anew.
    """

    def __init__(self, store: Store, resources: Iterable[Resource]) -> None:
        self._by_storage: Final = {each.stored_as: each for each in resources}
        self._cursor: Final = store.follow(self._by_storage.values(), store.resource_version)
        self._ready: Final[deque[ObjectChange]] = deque()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> ObjectChange:
        while not self._ready:
            await self._cursor.wait()
            self._ready.extend(self.take())
        return self._ready.popleft()

    def take(self) -> list[ObjectChange]:
        """All the changes that are there now; may be none."""
        return [_as_values(self._by_storage[change.stored_as], change) for change in self._cursor.take()]


def _as_values(resource: Resource, change: Change) -> ObjectChange:
    old = None if change.old is None else shown(resource, change.old)
    return ObjectChange(change.type, resource, old, None if change.type == "DELETED" else shown(resource, change.new))


def shown(resource: Resource, stored: Stored) -> Object:
    """The stored object with its kind."""
    return {"kind": resource.kind, "apiVersion": resource.api_version, **stored.decoded()}

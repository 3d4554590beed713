"""Transaction: a write that is worked out beside the event loop.

Upstream: apiserver/pkg/storage/etcd3/store.go, GuaranteedUpdate (v1.36.2).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, final

from extender.cluster.api_resources import Object, Resource
from extender.cluster.store.object_store import Objects, ObjectStore
from extender.cluster.store.stored_object import Stored


@final
class Transaction(Objects):
    """Objects as one thread reads them, and what it writes: nothing is written before `commit`, nor is it read here.

    Everything but `commit` may be called in a thread while the store is written elsewhere: what it reads of the store
    is one look into a dict, which no write can interrupt.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store: Final = store
        self._found: Final[list[tuple[tuple[Resource, str, str], Stored | None]]] = []
        self._read: Final[list[tuple[Resource, list[Stored]]]] = []
        self._writes: Final[list[Callable[[], object]]] = []

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        stored = self._store.get(resource, namespace, name)
        self._found.append(((resource, namespace, name), stored))
        return stored

    def read(self, resource: Resource, namespace: str = "") -> Iterable[Stored]:
        objects = self._store.all(resource)
        self._read.append((resource, objects))
        return sorted((each for each in objects if namespace in ("", each.namespace)), key=lambda each: each.key)

    def put(self, resource: Resource, namespace: str, name: str, obj: Object) -> None:
        self._writes.append(partial(self._store.put, resource, namespace, name, obj))

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        self._writes.append(partial(self._store.remove, resource, namespace, name))

    def commit(self) -> bool:
        """Writes, unless something that was read has changed since; returns whether it has written. Only in the event
        loop.

        Raises:
            ApiStatus: an object is too large.
        """
        if any(self._store.get(*place) is not stored for place, stored in self._found):
            return False
        if any(self._store.all(resource) != objects for resource, objects in self._read):
            return False
        for write in self._writes:
            write()
        return True

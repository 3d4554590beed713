"""AssumeCache: claims and volumes as they will be once what was decided is written.

Its state, in full: for each object that something was decided about, the object with that in it. It lasts until it is restored, or until
the API server has a newer version: then what was decided is in there, or came to nothing.

Upstream: pkg/scheduler/util/assumecache/assume_cache.go; framework/plugins/volumebinding/assume_cache.go (v1.36.2).
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, TypeVar, final

from extender.golang.quoting import quoted
from extender.objects.meta import version
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

CLAIM_KIND: Final = "v1.PersistentVolumeClaim"
VOLUME_KIND: Final = "v1.PersistentVolume"


class AssumeError(Exception):
    """The object cannot be assumed: it is gone, or has changed since it was looked at. The message is upstream's."""


@final
class AssumeCache(Generic[K, T]):
    """Assumed objects of one kind, over the table that holds them as the API server has them."""

    __slots__ = ("_assumed", "_kind")

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._assumed: dict[K, T] = {}

    def get(self, key: K, table: Mapping[K, T]) -> T | None:
        """The object as assumed, else as the API server has it; None if it has none."""
        known = table.get(key)
        assumed = self._assumed.get(key)
        return known if known is None or assumed is None or version(known.metadata) > version(assumed.metadata) else assumed

    def overlaid(self, objects: Mapping[K, T], table: Mapping[K, T]) -> Iterator[T]:
        """Some of the table's objects, each as assumed if it is."""
        if not self._assumed:
            yield from objects.values()
            return
        for key, known in objects.items():
            yield self.get(key, table) or known

    def assume(self, key: K, changed: T, table: Mapping[K, T]) -> None:
        """The object is as given from now on.

        Raises:
            AssumeError: it is gone, or newer than what it was changed from.
        """
        latest = self.get(key, table)
        name = key if isinstance(key, str) else "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
        if latest is None:
            raise AssumeError(not_found(self._kind, name))
        if version(changed.metadata) < version(latest.metadata):
            raise AssumeError(
                f"{self._kind} {quoted(name)} is out of sync (stored: {version(latest.metadata)}, assume: {version(changed.metadata)})"
            )
        self._drop_spent(table)
        self._assumed[key] = changed

    def restore(self, key: K) -> None:
        """The object is as the API server has it. Idempotent."""
        self._assumed.pop(key, None)

    def __len__(self) -> int:
        return len(self._assumed)

    def _drop_spent(self, table: Mapping[K, T]) -> None:
        spent = [key for key, assumed in self._assumed.items() if self.get(key, table) is not assumed]
        for key in spent:
            del self._assumed[key]


def not_found(kind: str, name: str) -> str:
    """The assume cache's words."""
    return f"could not find {kind} {quoted(name)}"

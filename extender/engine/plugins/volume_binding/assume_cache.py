"""AssumeCache: claims and volumes with changes that were decided but not yet observed.

Its state, in full: the assumed version of each changed object. It lasts until it is restored, or until the API server
has a newer version, which contains the change or supersedes it.

Upstream: pkg/scheduler/util/assumecache/assume_cache.go; framework/plugins/volumebinding/assume_cache.go (v1.36.2).
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, TypeVar, final

from extender.values.golang.quoting import quoted
from extender.values.objects.meta import version
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

FEW: Final = 16
"""As many assumed objects are kept though the API server has newer versions."""

CLAIM_KIND: Final = "v1.PersistentVolumeClaim"
VOLUME_KIND: Final = "v1.PersistentVolume"


class AssumeError(Exception):
    """The object cannot be assumed: it was deleted, or changed since it was read. The message is upstream's."""


@final
class AssumeCache(Generic[K, T]):
    """Assumed objects of one kind, over the table of the API server's objects."""

    __slots__ = ("_assumed", "_kind", "_most")

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._assumed: dict[K, T] = {}
        self._most = FEW

    def get(self, key: K, table: Mapping[K, T]) -> T | None:
        """Returns the assumed object, else that of the API server; None if the API server has none."""
        known = table.get(key)
        assumed = self._assumed.get(key)
        return (
            known
            if known is None or assumed is None or version(known.metadata) > version(assumed.metadata)
            else assumed
        )

    def overlaid(self, objects: Mapping[K, T], table: Mapping[K, T]) -> Iterator[T]:
        """Yields objects of the table, in their assumed version where there is one."""
        if not self._assumed:
            yield from objects.values()
            return
        for key, known in objects.items():
            yield self.get(key, table) or known

    def assume(self, key: K, changed: T, table: Mapping[K, T]) -> None:
        """Assumes a changed object. Raises AssumeError if it was deleted, or is newer than what was changed."""
        latest = self.get(key, table)
        name = key if isinstance(key, str) else "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
        if latest is None:
            raise AssumeError(not_found(self._kind, name))
        if version(changed.metadata) < version(latest.metadata):
            raise AssumeError(
                f"{self._kind} {quoted(name)} is out of sync (stored: {version(latest.metadata)}, assume: "
                f"{version(changed.metadata)})"
            )
        self._assumed[key] = changed
        if len(self._assumed) > self._most:
            self._drop_spent(table)
            self._most = 2 * len(self._assumed) + FEW  # each is looked at twice at most, however many a pod has

    def restore(self, key: K) -> None:
        """Drops the assumed object. Idempotent."""
        self._assumed.pop(key, None)

    def __len__(self) -> int:
        return len(self._assumed)

    def _drop_spent(self, table: Mapping[K, T]) -> None:
        spent = [key for key, assumed in self._assumed.items() if self.get(key, table) is not assumed]
        for key in spent:
            del self._assumed[key]


def not_found(kind: str, name: str) -> str:
    """Returns the error text of upstream's assume cache."""
    return f"could not find {kind} {quoted(name)}"

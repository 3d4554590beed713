"""A dispatcher without an API server: it records the calls of plugins, and performs them on the objects of a Cache as
an API server would.

    writes = RecordedWrites(cache)
    framework = make_framework(VolumeBinding, dispatcher=writes, live=cache)
    ...
    assert writes.calls == [PatchPersistentVolume(...)]

It supports one object of each name, versions, and the refusals that plugins must handle. A write shows in the Cache at
once, or when `deliver()` is called, as if the watch were late.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, final

from extender.engine.cache import Cache
from extender.engine.framework import ApiCall, BindPod, CallConflict, CallError, CallNotFound
from extender.engine.framework.storage_calls import (
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    PatchPersistentVolume,
    PatchPersistentVolumeClaim,
    ProtectResourceClaim,
    ReadResourceClaim,
    ReserveResourceClaim,
    UnprotectResourceClaim,
    UnreserveResourceClaim,
)
from extender.values.objects.cluster import Key
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim
from reprieve.lab.simulation.storage_writes import (
    ClaimWrite,
    claim_after,
    created_claim,
    volume_after,
    volume_claim_after,
)

T = TypeVar("T")
W = TypeVar("W", PersistentVolume, PersistentVolumeClaim, ResourceClaim)


@final
@dataclass(slots=True, eq=False)
class _Failure:
    kind: type[ApiCall[Any]]
    error: CallError
    after: int


@final
class RecordedWrites:
    """Performs calls on the objects of a cache.

    Arguments:
        late: whether writes show in the cache only after `deliver()`.
    """

    def __init__(self, cache: Cache, *, late: bool = False) -> None:
        self.calls: list[ApiCall[Any]] = []
        """All calls, refused or not, in order."""
        self.bound: dict[str, str] = {}
        """Pod UID -> node."""
        self._objects = cache.objects
        self._late = late
        self._written: dict[tuple[str, object], Callable[[], None]] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._volume_claims: dict[Key, PersistentVolumeClaim] = {}
        self._resource_claims: dict[Key, ResourceClaim] = {}
        self._failures: list[_Failure] = []
        self._last_version = 1000

    def fail(self, kind: type[ApiCall[Any]], error: CallError, *, after: int = 0) -> None:
        """Makes one call of a kind fail with this error and do nothing: the next one, or a later one."""
        self._failures.append(_Failure(kind, error, after))

    def deliver(self) -> None:
        """Shows the writes in the cache."""
        for show in self._written.values():
            show()
        self._written.clear()
        self._volumes.clear()
        self._volume_claims.clear()
        self._resource_claims.clear()

    async def perform(self, call: ApiCall[T]) -> T:
        """Performs the call after other tasks had a turn.

        Raises:
            CallError: the error given to `fail`, or a refusal as of an API server.
        """
        await asyncio.sleep(0)
        result: T = self._perform(call)
        return result

    def submit(self, call: ApiCall[T]) -> "asyncio.Future[T | None]":
        """Performs the call after other tasks had a turn."""
        done: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def perform() -> None:
            try:
                done.set_result(self._perform(call))
            except CallError:
                done.set_result(None)

        asyncio.get_running_loop().call_soon(perform)
        return done

    def _perform(self, call: ApiCall[Any]) -> Any:
        self.calls.append(call)
        for failure in [failure for failure in self._failures if isinstance(call, failure.kind)]:
            if failure.after == 0:
                self._failures.remove(failure)
                raise failure.error
            failure.after -= 1
        match call:
            case BindPod():
                if self.bound.setdefault(call.uid, call.node) != call.node:
                    text = f'pod {call.name} is already assigned to node "{self.bound[call.uid]}"'
                    raise CallConflict(f'Operation cannot be fulfilled on pods/binding "{call.name}": {text}')
                return None
            case PatchPersistentVolume():
                return self._patch_volume(call)
            case PatchPersistentVolumeClaim():
                return self._patch_volume_claim(call)
            case ReadResourceClaim():
                return self._claim((call.namespace, call.name))
            case CreateResourceClaim():
                return self._create_claim(call)
            case DeleteResourceClaim():
                return self._delete_claim(call)
            case (
                ProtectResourceClaim()
                | ReserveResourceClaim()
                | UnreserveResourceClaim()
                | DeallocateResourceClaim()
                | UnprotectResourceClaim()
            ):
                return self._change_claim(call)
        return None

    def _patch_volume(self, call: PatchPersistentVolume) -> PersistentVolume:
        volume = self._volumes.get(call.name) or self._objects.pvs.get(call.name)
        if volume is None:
            raise CallNotFound(f'persistentvolumes "{call.name}" not found')
        new = volume_after(call, volume)
        new = self._versioned(new)
        self._volumes[call.name] = new
        self._show(("pv", call.name), lambda: self._objects.pvs.__setitem__(call.name, new))
        return new

    def _patch_volume_claim(self, call: PatchPersistentVolumeClaim) -> PersistentVolumeClaim:
        key = (call.namespace, call.name)
        claim = self._volume_claims.get(key) or self._objects.pvcs.get(key)
        if claim is None:
            raise CallNotFound(f'persistentvolumeclaims "{call.name}" not found')
        new = self._versioned(volume_claim_after(call, claim))
        self._volume_claims[key] = new
        self._show(("pvc", key), lambda: self._objects.pvcs.__setitem__(key, new))
        return new

    def _claim(self, key: Key) -> ResourceClaim:
        claim = self._resource_claims.get(key) or self._objects.resource_claims.get(key)
        if claim is None:
            raise CallNotFound(f'resourceclaims.resource.k8s.io "{key[1]}" not found')
        return claim

    def _create_claim(self, call: CreateResourceClaim) -> ResourceClaim:
        new = self._versioned(created_claim(call, "1"))
        key = (call.namespace, new.name)
        self._resource_claims[key] = new
        self._show(("claim", key), lambda: self._objects.resource_claims.__setitem__(key, new))
        return new

    def _delete_claim(self, call: DeleteResourceClaim) -> None:
        key = (call.namespace, call.name)
        if self._claim(key).metadata.finalizers:
            raise CallError(f'resourceclaims.resource.k8s.io "{call.name}" has finalizers')
        self._resource_claims.pop(key, None)
        self._show(("claim", key), partial(_remove, self._objects.resource_claims, key))

    def _change_claim(self, call: ClaimWrite) -> ResourceClaim:
        key = (call.namespace, call.name)
        claim = self._claim(key)
        new = self._versioned(claim_after(call, claim))
        self._resource_claims[key] = new
        self._show(("claim", key), lambda: self._objects.resource_claims.__setitem__(key, new))
        return new

    def _versioned(self, obj: W) -> W:
        self._last_version += 1
        return replaced(obj, metadata=replaced(obj.metadata, resource_version=str(self._last_version)))

    def _show(self, what: tuple[str, object], show: Callable[[], None]) -> None:
        self._written[what] = show
        if not self._late:
            self.deliver()


def _remove(claims: dict[Key, ResourceClaim], key: Key) -> None:
    claims.pop(key, None)

"""The claims of a pod: bound, to be bound with the pod, and unbound although they bind immediately. They come from a
Storage, whose AssumeCaches have the decisions about claims and volumes.

Upstream: framework/plugins/volumebinding, volume_binding.go, podHasPVCs; binder.go, GetPodVolumeClaims;
assume_cache.go; pkg/scheduler/util/assumecache/assume_cache.go.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, final

import msgspec

from extender.values.golang.quoting import quoted
from extender.values.objects.claims import (
    CLAIM_LOST,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_name,
    claim_not_found,
    is_fully_bound,
    why_not_owned,
)
from extender.values.objects.cluster import ClusterObjects, Key
from extender.values.objects.meta import version
from extender.values.objects.pod import Pod, Volume
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

FEW: Final = 16
"""This many assumed objects are kept although the API server has newer versions."""

CLAIM_KIND: Final = "v1.PersistentVolumeClaim"
VOLUME_KIND: Final = "v1.PersistentVolume"


class AssumeError(Exception):
    """The object cannot be assumed: it was deleted, or changed since it was read. The message is upstream's."""


@final
@dataclass(slots=True, eq=False)
class AssumeCache(Generic[K, T]):
    """Claims or volumes with changes that were decided but not yet observed, over the API server's table of them.

    State: the assumed version of each changed object with the UIDs of the pods that it is for, until the last of them
    restores it, or until the API server has a newer one, which contains the change or supersedes it.
    """

    kind: str
    _assumed: dict[K, tuple[T, set[str]]] = field(default_factory=dict)
    _most: int = FEW

    def get(self, key: K, table: Mapping[K, T]) -> T | None:
        """Returns the assumed object, else that of the API server; None if the API server has none."""
        observed, before = table.get(key), self._assumed.get(key)
        if observed is None or before is None or version(observed.metadata) > version(before[0].metadata):
            return observed
        return before[0]

    def overlaid(self, objects: Mapping[K, T], table: Mapping[K, T]) -> Iterator[T]:
        """Yields objects of the table, in their assumed version where there is one."""
        if not self._assumed:
            yield from objects.values()
            return
        for key, observed in objects.items():
            yield self.get(key, table) or observed

    def assume(self, key: K, changed: T, table: Mapping[K, T], uid: str) -> None:
        """Assumes a changed object for a pod; other pods may share it.

        Raises AssumeError if the object was deleted, or is newer than the changed one.
        """
        latest = self.get(key, table)
        name = key if isinstance(key, str) else "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
        if latest is None:
            raise AssumeError(not_found(self.kind, name))
        if version(changed.metadata) < version(latest.metadata):
            raise AssumeError(
                f"{self.kind} {quoted(name)} is out of sync (stored: {version(latest.metadata)}, assume: "
                f"{version(changed.metadata)})"
            )
        before = self._assumed.get(key)
        sharers: set[str] = before[1] if before is not None and before[0] is latest else set()
        self._assumed[key] = changed, {uid, *sharers}
        if len(self._assumed) > self._most:
            spent = [key for key, (assumed, _) in self._assumed.items() if self.get(key, table) is not assumed]
            for stale_key in spent:
                del self._assumed[stale_key]
            self._most = 2 * len(self._assumed) + FEW  # each is looked at twice at most, however many a pod has

    def restore(self, key: K, uid: str) -> None:
        """Drops what was assumed for a pod, unless others share it. Idempotent."""
        before = self._assumed.get(key)
        if before is not None:
            before[1].discard(uid)
            if not before[1]:
                del self._assumed[key]

    def __len__(self) -> int:
        return len(self._assumed)


def not_found(kind: str, name: str) -> str:
    return f"could not find {kind} {quoted(name)}"


class BindingModeError(Exception):
    """A StorageClass has no binding mode. The message is upstream's."""


@final
class Storage(msgspec.Struct, frozen=True):
    """The claims and volumes of one cycle, with their assumed versions."""

    objects: ClusterObjects
    assumed_claims: AssumeCache[Key, PersistentVolumeClaim]
    assumed_volumes: AssumeCache[str, PersistentVolume]
    compares_attributes: bool = True
    """Whether a claim only gets a volume of its VolumeAttributesClass: the feature gate of that name."""

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self.assumed_claims.get((namespace, name), self.objects.pvcs)

    def volume(self, name: str) -> PersistentVolume | None:
        return self.assumed_volumes.get(name, self.objects.pvs)

    def may_have_volumes(self, claim: PersistentVolumeClaim) -> bool:
        """Returns False if there are no `volumes_for` the claim, and its selector need not be checked."""
        references = (claim.namespace, claim.metadata.name), None
        of_class = (self.objects.pvs.group((claim_class(claim), reference)) for reference in references)
        return claim.spec.selector is not None or any(of_class)

    def volumes_for(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        """Yields the class's volumes that are free or name the claim, in order; assumed ones may name others now."""
        storage_class, volumes = claim_class(claim), self.objects.pvs
        for reference in ((claim.namespace, claim.metadata.name), None):
            yield from self.assumed_volumes.overlaid(volumes.group((storage_class, reference)), volumes)


@final
class DelayedClaim(msgspec.Struct, frozen=True):
    """An unbound claim that waits for the pod's node, and its class."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass


@final
class PodClaims(msgspec.Struct, frozen=True):
    """The claims of a pod, in the order of its volumes."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[DelayedClaim, ...] = ()
    immediate: tuple[PersistentVolumeClaim, ...] = ()
    """Unbound ones that should have been bound before the pod was scheduled."""

    @property
    def all_bound(self) -> bool:
        """True if there is nothing to bind."""
        return not self.delayed and not self.immediate


def why_unusable(pod: Pod, volumes: Iterable[Volume], objects: ClusterObjects) -> str | None:
    """Returns the error of the first claim that is unusable in the API server's state; None if all are usable.

    The volumes are those of the pod, each claim named once.
    """
    for volume in volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        is_ephemeral = volume.persistent_volume_claim is None
        claim = objects.pvcs.get((pod.namespace, name))
        if claim is None:
            if is_ephemeral:
                return f"waiting for ephemeral volume controller to create the persistentvolumeclaim {quoted(name)}"
            return claim_not_found(name)
        if claim.status.phase == CLAIM_LOST:
            lost = quoted(claim.spec.volume_name)
            return f"persistentvolumeclaim {quoted(name)} bound to non-existent persistentvolume {lost}"
        if claim.metadata.deletion_timestamp is not None:
            return f"persistentvolumeclaim {quoted(name)} is being deleted"
        refusal = why_not_owned(claim, pod.name, pod.uid) if is_ephemeral else None
        if refusal is not None:
            return refusal
    return None


def claims_of(pod: Pod, storage: Storage) -> PodClaims:
    """Returns the claims of a pod, which exist. Raises BindingModeError if a class has no binding mode."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[DelayedClaim] = []
    immediate: list[PersistentVolumeClaim] = []
    claims_by_name: dict[str, DelayedClaim | None] = {}
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        if name in claims_by_name:
            # A claim that is named again gets another volume; it makes no other difference.
            repeated = claims_by_name[name]
            if repeated is not None:
                delayed.append(repeated)
            continue
        claims_by_name[name] = None
        claim = storage.claim(pod.namespace, name)
        if claim is None:
            continue
        if is_fully_bound(claim):
            bound.append(claim)
            continue
        storage_class = _delaying_class(claim, storage.objects)
        # A claim that names a volume without being bound was bound by hand: the volume controller has to complete that.
        if storage_class is not None and not claim.spec.volume_name:
            waiting = claims_by_name[name] = DelayedClaim(claim, storage_class)
            delayed.append(waiting)
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))


def _delaying_class(claim: PersistentVolumeClaim, objects: ClusterObjects) -> StorageClass | None:
    """Returns the claim's class if it waits for a first consumer (pv_helpers.go, IsDelayBindingMode)."""
    name = claim_class(claim)
    storage_class = objects.storage_classes.get(name)
    if storage_class is None:
        return None
    if storage_class.volume_binding_mode is None:
        raise BindingModeError(f"VolumeBindingMode not set for StorageClass {quoted(name)}")
    return storage_class if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else None

"""VolumeRestrictions: keeps pods apart whose disk one node attaches only once, or whose claim one pod may use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.volume_advice import VolumeAdvice
from extender.engine.snapshot.axes import Mask
from extender.engine.snapshot.pod_attributes import PodSymbol, VolumeClass, num_parts
from extender.engine.snapshot.symbols import VolumeIndex
from extender.engine.snapshot.tallies import Tallies
from extender.values.caches import cached_by_size
from extender.values.objects.claims import READ_WRITE_ONCE_POD, claim_not_found, names_claim
from extender.values.objects.pod import Volume
from extender.values.objects.storage import PersistentVolumeClaim

REASON_DISK: Final = "node(s) had no available disk"
REASON_READ_WRITE_ONCE_POD: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

Disk = tuple[str, ...]
"""The identity of a disk: its kind, and its name within the kind."""


@final
class _PodUse(msgspec.Struct, frozen=True):
    """The disks and claims of the pod that other pods may use."""

    disks: frozenset[tuple[Disk, bool]]
    """(disk, whether it is only read)."""
    claims: frozenset[str]
    """The names of its ReadWriteOncePod claims."""
    claims_in_use: int
    """The number of these claims that a pod in the cluster uses."""


@final
class _PodVolumes(msgspec.Struct, frozen=True):
    """The volumes of a pod that may restrict other pods."""

    claims: tuple[str, ...]
    """The names of the claims that it names, each once, in order."""
    disks: frozenset[tuple[Disk, bool]]
    """The disks as `_PodUse` has them."""
    are_restricted: bool
    """True if it has a disk of a kind that one node can attach only once."""

    @staticmethod
    def of(pod: fwk.Pod) -> "_PodVolumes":
        volumes = pod.spec.volumes
        return _PodVolumes(_claims(pod), frozenset(disks_used(volumes).items()), any(map(_is_restricted, volumes)))


_WANTED: Final = fwk.StateKey[_PodUse]("PreFilterVolumeRestrictions")


@final
class VolumeRestrictions(fwk.PreFilterPlugin, fwk.FilterPlugin, VolumeAdvice):
    """Refuses nodes where a pod uses a disk of this pod, unless both only read it; and all nodes while a
    ReadWriteOncePod claim is in use.

    Upstream: framework/plugins/volumerestrictions/volume_restrictions.go.
    """

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._volumes = fwk.PodMemo[_PodVolumes]()

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """Registers for deletions of pods, new nodes and new claims. The volumes of a pod never change."""
        return [
            fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE, _after_pod_deletion),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, fwk.ActionType.ADD, _after_claim_addition),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without such disks whose exclusive claims are free; unresolvable if a claim is missing."""
        if not pod.spec.volumes:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        volumes = self._volumes.of(state, lambda: _PodVolumes.of(pod))
        claims: set[str] = set()
        for name in volumes.claims:
            claim = snapshot.objects.pvcs.get((pod.namespace, name))
            if claim is None:
                return fwk.PreFilterResult(fwk.unresolvable(claim_not_found(name)))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                claims.add(name)
        claims_in_use = sum(_is_in_use(snapshot, pod.namespace, name) for name in claims)
        if not volumes.are_restricted and not claims_in_use:
            return fwk.PreFilterResult(fwk.SKIP)
        state.write(_WANTED, _PodUse(volumes.disks, frozenset(claims), claims_in_use))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        pod_use = state.find(_WANTED)
        if pod_use is None:
            raise fwk.NotFoundError(f'cannot read "{_WANTED.name}" from cycleState')
        return fwk.first_of(
            [
                fwk.reject(self._has_disk_conflict(pod_use, rows), REASON_DISK),
                fwk.reject(self._has_claim_in_use(pod_use, rows), REASON_READ_WRITE_ONCE_POD),
            ]
        )

    def _has_disk_conflict(self, pod_use: _PodUse, rows: fwk.Rows) -> Mask:
        if not pod_use.disks:
            return np.zeros(len(rows), np.bool_)

        def conflicts(used: PodSymbol) -> int:
            return _conflict(pod_use.disks, _disks_of_class(used) if isinstance(used, VolumeClass) else {})

        def relevant(tallies: Tallies, first: int) -> Iterable[int]:
            return tallies.index(fwk.Attribute.VOLUMES, VolumeIndex).with_disks(first)

        question = (self.name, "disks", pod_use.disks)
        num_conflicts = rows.tally(fwk.Attribute.VOLUMES, question, conflicts, relevant)
        mask: Mask = num_conflicts > 0
        return mask

    def _has_claim_in_use(self, pod_use: _PodUse, rows: fwk.Rows) -> Mask:
        claims, in_use = pod_use.claims, np.full(len(rows), pod_use.claims_in_use, np.int64)
        if claims:

            def times_used(used: PodSymbol) -> int:
                return sum(name in claims for name in used.claims) if isinstance(used, VolumeClass) else 0

            def relevant(tallies: Tallies, first: int) -> Iterable[int]:
                return tallies.index(fwk.Attribute.VOLUMES, VolumeIndex).users(claims, first)

            # Like upstream, starts from the number of claims in use, and adds how often each pod that comes to the node
            # or leaves it uses a claim of one of these names, even in another namespace.
            change = rows.tally_change(fwk.Attribute.VOLUMES, (self.name, "claims", claims), times_used, relevant)
            if change is not None:
                in_use += change
        mask: Mask = in_use > 0
        return mask


def disks_used(volumes: Iterable[Volume]) -> dict[Disk, bool]:
    """Returns disk -> whether it is only read, if it attaches once; RBD images per monitor (isVolumeConflict)."""
    disks: dict[Disk, bool] = {}
    for volume in volumes:
        for disk, is_only_read in _disks_of(volume):
            disks[disk] = is_only_read and disks.get(disk, True)
    return disks


@cached_by_size(256, lambda used: 64 * num_parts(used))
def _disks_of_class(used: VolumeClass) -> Mapping[Disk, bool]:
    return disks_used(used.disks())


def _conflict(disks: Iterable[tuple[Disk, bool]], used: Mapping[Disk, bool]) -> bool:
    """True if a wanted disk is in use, and not only read on both sides."""
    return any(disk in used and not (is_only_read and used[disk]) for disk, is_only_read in disks)


def _is_restricted(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def _disks_of(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    gce, ebs, iscsi, rbd = volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd
    if gce is not None:
        yield ("gce", gce.pd_name), gce.read_only
    if ebs is not None:
        # An EBS volume can be attached only once, even read-only.
        yield ("ebs", ebs.volume_id), False
    if iscsi is not None:
        yield ("iscsi", iscsi.iqn), iscsi.read_only
    if rbd is not None:
        for monitor in rbd.monitors:
            yield ("rbd", rbd.pool, rbd.image, monitor), rbd.read_only


def _is_in_use(snapshot: fwk.Snapshot, namespace: str, claim: str) -> bool:
    """True if a pod on any node uses the claim (StorageInfos().IsPVCUsedByPods)."""
    symbols, pods = snapshot.tallies.symbols[fwk.Attribute.VOLUMES], snapshot.pods
    codes, has_node = pods.codes[fwk.Attribute.VOLUMES], pods.node >= 0
    for code in snapshot.tallies.index(fwk.Attribute.VOLUMES, VolumeIndex).users([claim]):
        used = symbols[code]
        if isinstance(used, VolumeClass) and used.namespace == namespace and bool((has_node & (codes == code)).any()):
            return True
    return False


def _after_pod_deletion(pod: fwk.Pod, old: fwk.Pod, new: None) -> fwk.QueueingHint:
    if old.namespace != pod.namespace:
        return fwk.QueueingHint.QUEUE_SKIP
    # Like upstream, does not look up whether a shared claim is ReadWriteOncePod.
    return fwk.queue_if(
        _conflict(disks_used(pod.spec.volumes).items(), disks_used(old.spec.volumes))
        or not {*_claims(pod)}.isdisjoint(_claims(old))
    )


def _claims(pod: fwk.Pod) -> tuple[str, ...]:
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return tuple(dict.fromkeys(source.claim_name for source in sources if source is not None))


def _after_claim_addition(pod: fwk.Pod, old: None, new: PersistentVolumeClaim) -> fwk.QueueingHint:
    return fwk.queue_if(names_claim(pod, new))

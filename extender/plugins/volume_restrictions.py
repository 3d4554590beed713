"""VolumeRestrictions: disks that one node attaches only once, and claims that only one pod in the cluster may use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.objects.claims import READ_WRITE_ONCE_POD, claim_not_found, names_claim
from extender.objects.pod import Volume
from extender.objects.storage import PersistentVolumeClaim
from extender.plugins.volume_advice import VolumeAdvice
from extender.snapshot.axes import Mask
from extender.snapshot.pod_attributes import PodSymbol, VolumeClass
from extender.snapshot.symbols import VolumeIndex

REASON_DISK: Final = "node(s) had no available disk"
REASON_READ_WRITE_ONCE_POD: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

Disk = tuple[str, ...]
"""What makes a disk that disk: its kind, and what it is known by there."""


@final
@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the pod asks for that others may have."""

    disks: frozenset[tuple[Disk, bool]]
    """And whether they are only read."""
    claims: frozenset[str]
    """Names of its ReadWriteOncePod claims."""
    claims_in_use: int
    """How many of those a pod somewhere in the cluster uses."""


_WANTED: Final = fwk.StateKey[_Wanted]("PreFilterVolumeRestrictions")


@final
class VolumeRestrictions(fwk.PreFilterPlugin, fwk.FilterPlugin, VolumeAdvice):
    """Refuses nodes where a pod has a disk of this pod, unless both only read it; and all nodes while a ReadWriteOncePod claim is in use.

    Upstream: framework/plugins/volumerestrictions/volume_restrictions.go (v1.36.2).
    """

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """A pod that had the pod's disk or claim is gone, a node came, or a missing claim did. The volumes of a pod never change."""
        return [
            fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE, _after_pod_deletion),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, fwk.ActionType.ADD, _after_claim_addition),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skip for pods without such disks whose ReadWriteOncePod claims are free; unresolvable when a claim does not exist."""
        needs_check = any(_is_restricted(volume) for volume in pod.spec.volumes)
        claims: set[str] = set()
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = snapshot.objects.pvcs.get((pod.namespace, name))
            if claim is None:
                return fwk.PreFilterResult(fwk.unresolvable(claim_not_found(name)))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                claims.add(name)
        claims_in_use = sum(_is_in_use(snapshot, pod.namespace, name) for name in claims)
        if not needs_check and not claims_in_use:
            return fwk.PreFilterResult(fwk.SKIP)
        disks = frozenset(disks_used(pod.spec.volumes).items())
        state.write(_WANTED, _Wanted(disks, frozenset(claims), claims_in_use))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refused as long as one pod is in the way: on the row for disks, anywhere for claims."""
        wanted = state.find(_WANTED)
        if wanted is None:
            raise fwk.NotFoundError(f'cannot read "{_WANTED.name}" from cycleState')
        return fwk.first_of(
            [
                fwk.reject(self._lacks_disk(wanted, rows), REASON_DISK),
                fwk.reject(self._lacks_claim(wanted, rows), REASON_READ_WRITE_ONCE_POD),
            ]
        )

    def _lacks_disk(self, wanted: _Wanted, rows: fwk.Rows) -> Mask:
        if not wanted.disks:
            return np.zeros(len(rows), np.bool_)

        def is_in_the_way(used: PodSymbol) -> int:
            return isinstance(used, VolumeClass) and _conflict(wanted.disks, disks_used(used.disks()))

        relevant = rows.snapshot.tallies.index(fwk.Attribute.VOLUMES, VolumeIndex).with_disks
        in_the_way = rows.tally(fwk.Attribute.VOLUMES, (self.name, "disks", wanted.disks), is_in_the_way, relevant)
        mask: Mask = in_the_way > 0
        return mask

    def _lacks_claim(self, wanted: _Wanted, rows: fwk.Rows) -> Mask:
        claims, in_use = wanted.claims, np.full(len(rows), wanted.claims_in_use, np.int64)
        if claims:
            index = rows.snapshot.tallies.index(fwk.Attribute.VOLUMES, VolumeIndex)

            def times_used(used: PodSymbol) -> int:
                return sum(name in claims for name in used.claims) if isinstance(used, VolumeClass) else 0

            # Upstream starts from how many of the claims are in use, and then counts how often each pod that comes to the node or leaves it
            # uses a claim of one of these names, be it in another namespace.
            change = rows.tally_change(
                fwk.Attribute.VOLUMES, (self.name, "claims", claims), times_used, lambda first: index.users(claims, first)
            )
            if change is not None:
                in_use += change
        mask: Mask = in_use > 0
        return mask


def disks_used(volumes: Iterable[Volume]) -> dict[Disk, bool]:
    """The disks that can be attached only once, and whether they are only read. An RBD image is known by each of its monitors.

    Upstream: volume_restrictions.go, isVolumeConflict.
    """
    disks: dict[Disk, bool] = {}
    for volume in volumes:
        for disk, is_only_read in _disks_of(volume):
            disks[disk] = is_only_read and disks.get(disk, True)
    return disks


def _conflict(wanted: Iterable[tuple[Disk, bool]], used: Mapping[Disk, bool]) -> bool:
    """Whether a wanted disk is in use, and not only to be read on both sides."""
    return any(disk in used and not (is_only_read and used[disk]) for disk, is_only_read in wanted)


def _is_restricted(volume: Volume) -> bool:
    sources = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi)
    return any(source is not None for source in sources)


def _disks_of(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    gce, ebs, iscsi, rbd = volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd
    if gce is not None:
        yield ("gce", gce.pd_name), gce.read_only
    if ebs is not None:
        # An EBS volume is attached once even to be read.
        yield ("ebs", ebs.volume_id), False
    if iscsi is not None:
        yield ("iscsi", iscsi.iqn), iscsi.read_only
    if rbd is not None:
        for monitor in rbd.monitors:
            yield ("rbd", rbd.pool, rbd.image, monitor), rbd.read_only


def _is_in_use(snapshot: fwk.Snapshot, namespace: str, claim: str) -> bool:
    """Whether a pod on any node uses the claim. Upstream: StorageInfos().IsPVCUsedByPods."""
    symbols, pods = snapshot.tallies.symbols[fwk.Attribute.VOLUMES], snapshot.pods
    codes, is_somewhere = pods.codes[fwk.Attribute.VOLUMES], pods.node >= 0
    for code in snapshot.tallies.index(fwk.Attribute.VOLUMES, VolumeIndex).users([claim]):
        used = symbols[code]
        if isinstance(used, VolumeClass) and used.namespace == namespace and bool((is_somewhere & (codes == code)).any()):
            return True
    return False


def _after_pod_deletion(pod: fwk.Pod, old: fwk.Pod, new: None) -> fwk.QueueingHint:
    if old.namespace != pod.namespace:
        return fwk.QueueingHint.QUEUE_SKIP
    # Whether a shared claim is a ReadWriteOncePod one is not looked up: it is not worth the time.
    return fwk.queue_if(
        _conflict(disks_used(pod.spec.volumes).items(), disks_used(old.spec.volumes)) or not _claims(pod).isdisjoint(_claims(old))
    )


def _claims(pod: fwk.Pod) -> frozenset[str]:
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return frozenset(source.claim_name for source in sources if source is not None)


def _after_claim_addition(pod: fwk.Pod, old: None, new: PersistentVolumeClaim) -> fwk.QueueingHint:
    return fwk.queue_if(names_claim(pod, new))

"""NodeVolumeLimits: the plugin, its count of volumes against the limits of drivers, and its queueing hints."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.node_volume_limits.csi_volumes import (
    CannotCountError,
    CountedVolumes,
    CsiVolume,
    CsiVolumeFinder,
    CsiVolumes,
    Migration,
)
from extender.engine.plugins.volume_advice import VolumeAdvice
from extender.engine.snapshot.axes import Int64s, Mask
from extender.engine.snapshot.pod_attributes import PodSymbol, VolumeClass
from extender.values.objects.claims import claim_name, uses_claim
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.csi_translation import TranslationError, in_tree_plugin, inline_handle
from extender.values.objects.storage import (
    AttachProfile,
    CSINode,
    PersistentVolumeClaim,
    VolumeAttachment,
    attach_profile,
)

_LIMITS_OTHER_DRIVERS: Final = 2**40
"""The room on a node that only limits other drivers: enough for any pods that can be counted."""
_MUST_BE_COUNTED: Final = 2**41
"""The number of volumes of a pod if counting may fail: more than the room of every node with a limit."""
_NO_ROOM: Final = -1


def volumes_named(pods: PodSymbol) -> int:
    """Returns the number of volumes that each pod of a class names, an upper bound of those attached."""
    if not isinstance(pods, VolumeClass):
        return 0
    if pods.ephemeral_claims or pods.encoded_disks or "" in pods.claims:
        return _MUST_BE_COUNTED
    return len(frozenset(pods.claims))


class DriverUse(NamedTuple):
    """The volumes that a driver has attached to a node, those that a pod would add, and the limit."""

    driver: str
    attached: int
    added: int
    limit: int


@final
class VolumeCounter:
    """The pod's volumes, and the room on the nodes, for one cycle. Claims, volumes and attachments must not change.

    `needs_drivers` is the gate VolumeLimitScaling: drivers may require that they are installed where their volumes are
    used.
    """

    def __init__(
        self, pod: fwk.Pod, volumes: CountedVolumes, snapshot: fwk.Snapshot, *, needs_drivers: bool = False
    ) -> None:
        self._objects = snapshot.objects
        self._needs_drivers = needs_drivers
        self._finder = CsiVolumeFinder(self._objects)
        self._attachments: dict[str, CsiVolumes] = {}
        self._pod, self._volumes = pod, volumes
        self._pod_volumes: dict[Migration, CsiVolumes | fwk.Status] = {}
        self.room: Int64s = self._room(snapshot)
        """(N,) the most volumes that the node's pods may name for this pod's to fit; negative where they never fit."""

    def _volumes_with(self, migration: Migration) -> CsiVolumes | fwk.Status:
        """Returns the pod's volumes where this migration is on, or why they cannot be counted."""
        volumes = self._pod_volumes.get(migration)
        if volumes is None:
            try:
                volumes = self._finder.of_pod(self._pod, self._volumes, migration)
            except CannotCountError as exc:
                volumes = exc.status
            self._pod_volumes[migration] = volumes
        return volumes

    def statuses_of(self, rows: fwk.Rows, chosen: Sequence[int]) -> list[fwk.Status]:
        symbols = rows.snapshot.tallies.symbols[fwk.Attribute.VOLUMES]
        names = (rows.snapshot.nodes.objects[place].name for place in rows.node[chosen].tolist())
        return [
            self._status(name, [(code, symbols[code]) for code in codes])
            for name, codes in zip(names, rows.codes_on(chosen, fwk.Attribute.VOLUMES), strict=True)
        ]

    def _status(self, name: str, classes: Sequence[tuple[int, PodSymbol]]) -> fwk.Status:
        node = self._objects.csi_nodes.get(name)
        profile = None if node is None else attach_profile(node)
        migration = Migration.on(profile)
        pod_volumes = self._volumes_with(migration)
        if isinstance(pod_volumes, fwk.Status):
            return pod_volumes
        driver = self._missing_driver(pod_volumes, profile)
        if driver:
            return fwk.unschedulable(f"{driver} CSI driver is not installed on the node")
        limits = {} if profile is None else dict(profile.limits)
        if not pod_volumes or not limits:
            return fwk.SUCCESS
        try:
            uses = [*self._uses(name, classes, pod_volumes, limits, migration)]
        except CannotCountError as exc:
            return exc.status
        return fwk.unschedulable(REASON) if any(use.attached + use.added > use.limit for use in uses) else fwk.SUCCESS

    def use_on(self, rows: fwk.Rows, row: int) -> Iterator[DriverUse]:
        """Yields the use of the drivers of the pod's volumes on a row's node. Raises CannotCountError."""
        symbols = rows.snapshot.tallies.symbols[fwk.Attribute.VOLUMES]
        name = rows.snapshot.nodes.objects[rows.node[row]].name
        node = self._objects.csi_nodes.get(name)
        migration = Migration.on(None if node is None else attach_profile(node))
        pod_volumes = self._volumes_with(migration)
        if node is not None and not isinstance(pod_volumes, fwk.Status):
            classes = [(code, symbols[code]) for code in rows.codes_on([row], fwk.Attribute.VOLUMES)[0]]
            yield from self._uses(name, classes, pod_volumes, dict(attach_profile(node).limits), migration)

    def _uses(
        self,
        name: str,
        classes: Sequence[tuple[int, PodSymbol]],
        pod_volumes: CsiVolumes,
        limits: Mapping[str, int],
        migration: Migration,
    ) -> Iterator[DriverUse]:
        attached = self._attached_by(classes, migration)
        fresh = Counter(volume.driver for volume in pod_volumes - attached)
        present = attached | self._attachments_to(name)
        for driver, count in fresh.items():
            if driver in limits:
                yield DriverUse(driver, sum(volume.driver == driver for volume in present), count, limits[driver])

    def _missing_driver(self, pod_volumes: CsiVolumes, profile: AttachProfile | None) -> str:
        """Returns a driver that the node lacks though its volumes need it there; empty if there is none."""
        if not self._needs_drivers:
            return ""
        absent = {volume.driver for volume in pod_volumes} - (frozenset() if profile is None else profile.drivers)
        return next((name for name in sorted(absent) if self._is_required(name)), "")

    def _is_required(self, name: str) -> bool:
        driver = self._objects.csi_drivers.get(name)
        return driver is not None and bool(driver.spec.prevent_pod_scheduling_if_missing)

    def _attached_by(self, classes: Sequence[tuple[int, PodSymbol]], migration: Migration) -> CsiVolumes:
        volume_sets = [
            self._finder.of_class(code, pods, migration) for code, pods in classes if isinstance(pods, VolumeClass)
        ]
        return frozenset().union(*volume_sets)

    def _attachments_to(self, node: str) -> CsiVolumes:
        attachments = self._attachments.get(node)
        if attachments is None:
            attachments = self._attachments[node] = frozenset(_attachments(self._objects, node))
        return attachments

    def _room(self, snapshot: fwk.Snapshot) -> Int64s:
        objects, places = snapshot.objects, snapshot.nodes.index
        room = np.full(len(snapshot.nodes), self._room_with(None), np.int64)
        for profile, nodes in objects.csi_nodes.groups().items():
            room[[places[name] for name in nodes if name in places]] = self._room_with(profile)
        attached = [
            (places[name], len(attachments))
            for name, attachments in objects.volume_attachments.groups().items()
            if name in places
        ]
        if attached:
            attached_places, counts = zip(*attached, strict=True)
            room[list(attached_places)] -= np.array(counts, np.int64)
        return room

    def _room_with(self, profile: AttachProfile | None) -> int:
        """Returns the most volumes that may be attached to a node of this profile for the pod's to fit."""
        pod_volumes = self._volumes_with(Migration.on(profile))
        if isinstance(pod_volumes, fwk.Status) or self._missing_driver(pod_volumes, profile):
            return _NO_ROOM
        if profile is None or not profile.limits or not pod_volumes:
            return _UNLIMITED
        fresh = Counter(volume.driver for volume in pod_volumes)
        return min(
            (limit - fresh[driver] for driver, limit in profile.limits if driver in fresh),
            default=_LIMITS_OTHER_DRIVERS,
        )


def _attachments(objects: ClusterObjects, node: str) -> Iterator[CsiVolume]:
    """Yields volumes attached to the node or being attached, whether used or not (getNodeVolumeAttachmentInfo)."""
    for attachment in objects.volume_attachments.group(node).values():
        name = attachment.spec.source.persistent_volume_name
        volume = objects.pvs.get(name) if name is not None else None
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            yield CsiVolume(attachment.spec.attacher, volume.spec.csi.volume_handle)


_COUNTING: Final = fwk.StateKey[VolumeCounter]("PreFilterNodeVolumeLimits")


@final
class NodeVolumeLimits(fwk.PreFilterPlugin, fwk.FilterPlugin, VolumeAdvice):
    """Refuses nodes where a CSI driver cannot attach the pod's volumes in addition to those attached; a shared volume
    counts once.

    Upstream: framework/plugins/nodevolumelimits/csi.go.
    """

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._volumes = fwk.PodMemo[CountedVolumes]()
        self._needs_drivers = self.feature_gates.enabled("VolumeLimitScaling")

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        add, delete = fwk.ActionType.ADD, fwk.ActionType.DELETE
        return [
            fwk.on(fwk.EventResource.CSI_NODE, add),
            fwk.on(fwk.EventResource.CSI_NODE, fwk.ActionType.UPDATE, after_csi_node_update),
            fwk.on(fwk.EventResource.POD, delete, after_pod_deletion),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, add, after_claim_addition),
            fwk.on(fwk.EventResource.VOLUME_ATTACHMENT, delete, after_attachment_deletion),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without claims and without in-line disks that a CSI driver may attach."""
        volumes = self._counted(state, pod)
        if not volumes.all:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        state.write(_COUNTING, VolumeCounter(pod, volumes, snapshot, needs_drivers=self._needs_drivers))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def _counted(self, state: fwk.CycleState, pod: fwk.Pod) -> CountedVolumes:
        return self._volumes.of(state, lambda: CountedVolumes.of(pod))

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refuses rows whose pods have too many volumes attached.

        The volumes that the pods of a row name are summed for all rows at once, an upper bound. Only where it exceeds
        the room are the volumes themselves looked at: pods may share volumes, and other drivers may have some of them.
        """
        counter = state.find(_COUNTING)
        if counter is None:
            counter = VolumeCounter(pod, self._counted(state, pod), rows.snapshot, needs_drivers=self._needs_drivers)
        num_named = rows.tally(fwk.Attribute.VOLUMES, (self.name,), volumes_named)
        uncertain = np.flatnonzero(num_named > counter.room[rows.node]).tolist()
        return _verdicts(dict(zip(uncertain, counter.statuses_of(rows, uncertain), strict=True)), len(rows))


def _verdicts(statuses: dict[int, fwk.Status], num_rows: int) -> fwk.Verdicts:
    codes = np.zeros(num_rows, np.int8)
    reasons: dict[str, Mask] = {}
    for row, status in statuses.items():
        codes[row] = status.code
        for reason in status.reasons:
            reasons.setdefault(reason, np.zeros(num_rows, np.bool_))[row] = True
    return fwk.Verdicts(codes, tuple(reasons.items()))


def after_csi_node_update(pod: fwk.Pod, old: CSINode, new: CSINode) -> fwk.QueueingHint:
    """Queues the pod if a driver can attach more volumes than before."""
    had = _limits(old)
    return fwk.queue_if(any(limit > had.get(driver, 0) for driver, limit in _limits(new).items()))


def _limits(node: CSINode) -> dict[str, int]:
    """Returns driver -> its limit; here a driver without a limit has 0."""
    return {
        driver.name: (driver.allocatable.count or 0) if driver.allocatable is not None else 0
        for driver in node.spec.drivers
    }


def after_pod_deletion(pod: fwk.Pod, old: fwk.Pod, new: None) -> fwk.QueueingHint:
    """Queues the pod if the deleted pod had a node or a nomination, and volumes that a CSI driver may have attached."""
    if not old.spec.node_name and not old.status.nominated_node_name:
        return fwk.QueueingHint.QUEUE_SKIP
    return fwk.queue_if(
        any(claim_name(old, volume) is not None or in_tree_plugin(volume) is not None for volume in old.spec.volumes)
    )


def after_claim_addition(pod: fwk.Pod, old: None, new: PersistentVolumeClaim) -> fwk.QueueingHint:
    """Queues the pod if the claim is its own."""
    return fwk.queue_if(uses_claim(pod, new))


def after_attachment_deletion(pod: fwk.Pod, old: VolumeAttachment, new: None) -> fwk.QueueingHint:
    """Queues the pod if it has claims, or a disk of the driver. Raises TranslationError."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return fwk.QueueingHint.QUEUE
        plugin = in_tree_plugin(volume)
        if plugin is None:
            continue
        try:
            inline_handle(volume, plugin)
        except TranslationError as exc:
            raise TranslationError(f"converting volume({volume.name}) from inline to csi: {exc}") from exc
        if plugin.driver == old.spec.attacher:
            return fwk.QueueingHint.QUEUE
    return fwk.QueueingHint.QUEUE_SKIP


REASON: Final = "node(s) exceed max volume count"

_UNLIMITED: Final = 2**62
"""The room on a node where nothing needs to be counted."""

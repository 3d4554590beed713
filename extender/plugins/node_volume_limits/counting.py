"""Counting volumes: what a node has attached, what a pod adds, and what the drivers allow.

Upstream: framework/plugins/nodevolumelimits/csi.go, Filter (v1.36.2).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.objects.cluster import ClusterObjects
from extender.objects.storage import CSINode
from extender.plugins.node_volume_limits.csi_volumes import CannotCountError, CsiVolume, CsiVolumeFinder, CsiVolumes, Migration
from extender.snapshot.axes import Int64s
from extender.snapshot.pod_attributes import PodSymbol, VolumeClass

REASON: Final = "node(s) exceed max volume count"

_UNLIMITED: Final = 2**62
"""Room on a node where nothing needs to be counted."""
_NOT_LIMITED_BY_OURS: Final = 2**40
"""Room on a node that limits only other drivers: enough for any pods that can be counted."""
_MUST_BE_COUNTED: Final = 2**41
"""Volumes of a pod for which counting may fail: more than there is room for, wherever there is a limit."""
_NO_ROOM: Final = -1


def volumes_named(pods: PodSymbol) -> int:
    """How many volumes each pod of a class names: it cannot have more attached."""
    if not isinstance(pods, VolumeClass):
        return 0
    if pods.ephemeral_claims or pods.encoded_disks or "" in pods.claims:
        return _MUST_BE_COUNTED
    return len(pods.claims)


@final
class Counting:
    """What one cycle needs to know of the pod and of the nodes."""

    def __init__(self, pod: fwk.Pod, snapshot: fwk.Snapshot) -> None:
        objects = self._objects = snapshot.objects
        self._finder = CsiVolumeFinder(objects)
        self._wanted = {migration: self._wanted_by(pod, migration) for migration in Migration}
        self.room: Int64s = self._room(snapshot)
        """(N,) how many volumes the node's pods may name so that this pod's surely fit; less than 0 where that is not to be had."""

    def status_of(self, rows: fwk.Rows, row: int) -> fwk.Status:
        """The row's answer by looking at every volume there."""
        snapshot = rows.snapshot
        name = snapshot.nodes.objects[int(rows.node[row])].name
        node = self._objects.csi_nodes.get(name)
        migration = Migration.NONE if node is None else Migration.on(node)
        wanted = self._wanted[migration]
        if isinstance(wanted, fwk.Status):
            return wanted
        limits = {} if node is None else _limits(node)
        if not limits:
            return fwk.SUCCESS
        try:
            attached = self._attached(rows, row, migration)
        except CannotCountError as exc:
            return exc.status
        fresh = Counter(volume.driver for volume in wanted - attached)
        present = Counter(volume.driver for volume in attached.union(_attachments(self._objects, name)))
        too_many = any(driver in limits and present[driver] + count > limits[driver] for driver, count in fresh.items())
        return fwk.unschedulable(REASON) if too_many else fwk.SUCCESS

    def _wanted_by(self, pod: fwk.Pod, migration: Migration) -> CsiVolumes | fwk.Status:
        try:
            return self._finder.of_pod(pod, migration)
        except CannotCountError as exc:
            return exc.status

    def _room(self, snapshot: fwk.Snapshot) -> Int64s:
        objects = snapshot.objects
        without_csi_node = self._wanted[Migration.NONE]
        room = np.full(len(snapshot.nodes), _NO_ROOM if isinstance(without_csi_node, fwk.Status) else _UNLIMITED, np.int64)
        fresh = {
            migration: Counter(volume.driver for volume in wanted)
            for migration, wanted in self._wanted.items()
            if not isinstance(wanted, fwk.Status)
        }
        places = snapshot.nodes.index
        for name, node in objects.csi_nodes.items():
            place = places.get(name)
            if place is not None:
                by_driver = fresh.get(Migration.on(node))
                attachments = objects.volume_attachments.group(name)
                room[place] = _NO_ROOM if by_driver is None else _room_on(node, by_driver, len(attachments))
        return room

    def _attached(self, rows: fwk.Rows, row: int, migration: Migration) -> CsiVolumes:
        """The volumes that the row's pods use."""
        symbols = rows.snapshot.tallies.symbols[fwk.Attribute.VOLUMES]
        classes = ((code, symbols[code]) for code in rows.codes_on(row, fwk.Attribute.VOLUMES))
        found = [self._finder.of_class(code, pods, migration) for code, pods in classes if isinstance(pods, VolumeClass)]
        return frozenset().union(*found)


def _room_on(node: CSINode, fresh: Counter[str], num_attachments: int) -> int:
    """How many volumes the node's pods may name so that the fresh ones, by driver, surely fit besides them."""
    limits = _limits(node)
    if not fresh or not limits:
        return _UNLIMITED
    room = min((limits[driver] - count for driver, count in fresh.items() if driver in limits), default=_NOT_LIMITED_BY_OURS)
    return room - num_attachments


def _limits(node: CSINode) -> dict[str, int]:
    """Driver -> how many of its volumes can be attached. Upstream: csi.go, getVolumeLimits."""
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _attachments(objects: ClusterObjects, node: str) -> Iterator[CsiVolume]:
    """The volumes that are attached to the node, or about to be, whether a pod uses them or not.

    Upstream: csi.go, getNodeVolumeAttachmentInfo.
    """
    for attachment in objects.volume_attachments.group(node).values():
        name = attachment.spec.source.persistent_volume_name
        volume = objects.pvs.get(name) if name is not None else None
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            yield CsiVolume(attachment.spec.attacher, volume.spec.csi.volume_handle)

"""The CSI volumes that pods attach; in-tree volumes are translated to those of CSI drivers.

Upstream: framework/plugins/nodevolumelimits/csi.go, filterAttachableVolumes; utils.go, isCSIMigrationOn.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.snapshot.pod_attributes import VolumeClass
from extender.values.objects.claims import (
    claim_class,
    claim_name,
    claim_not_found,
    volumes_with_claims,
    why_not_owned,
)
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.csi_translation import (
    PLUGIN_BY_NAME,
    PORTWORX,
    InTreePlugin,
    TranslationError,
    in_tree_plugin,
    inline_handle,
    translated,
)
from extender.values.objects.pod import Volume
from extender.values.objects.storage import AttachProfile, PersistentVolumeClaim

NO_CLAIM_NAME: Final = "PersistentVolumeClaim had no name"


class CsiVolume(NamedTuple):
    """A volume by its driver and handle; one that is not provisioned yet by its claim."""

    driver: str
    handle: str
    unbound_claim: str = ""
    """namespace/name, if there is no handle."""


CsiVolumes = frozenset[CsiVolume]


class Migration(enum.IntEnum):
    """The in-tree volumes that a node attaches through CSI drivers."""

    NONE = 0
    """None, because the node has no CSINode."""
    USUAL = 1
    """Those of the large clouds and of Cinder."""
    WITH_PORTWORX = 2
    """Those of Portworx as well, as the CSINode declares."""

    @staticmethod
    def on(profile: AttachProfile | None) -> "Migration":
        """Returns the migration of nodes with this profile, which is None for nodes without a CSINode."""
        if profile is None:
            return Migration.NONE
        return Migration.WITH_PORTWORX if PORTWORX.name in profile.migrated_plugins else Migration.USUAL

    def covers(self, plugin: InTreePlugin) -> bool:
        """True if the plugin's volumes are counted as CSI volumes."""
        if not plugin.is_migrated or self is Migration.NONE:
            return False
        return not plugin.needs_annotation or self is Migration.WITH_PORTWORX


class CannotCountError(Exception):
    """It is unknown which volumes a pod attaches. `status` has the reason."""

    def __init__(self, status: fwk.Status) -> None:
        super().__init__(status.message)
        self.status = status


@final
class CsiVolumeFinder:
    """Finds the volumes of pods, once for each class of them, in one cycle; claims and volumes must not change."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects
        self._known: dict[tuple[int, Migration], CsiVolumes] = {}

    def of_pod(self, pod: fwk.Pod, volumes: "CountedVolumes", migration: Migration) -> CsiVolumes:
        """Returns the volumes that a pod to place with these volumes would attach.

        Raises CannotCountError for the first claim that does not exist or is not the pod's, or disk without a CSI form.
        """
        disks = volumes.disks[migration]
        if disks is None:  # of several errors the first counts
            return _found(self._volumes_of_pod(pod, volumes.all, migration))
        return _found(self._volumes_of_pod(pod, volumes.with_claims, migration)) | disks

    def of_class(self, code: int, pods: VolumeClass, migration: Migration) -> CsiVolumes:
        """Returns the volumes of pods of the class, without missing claims. Raises CannotCountError for disks."""
        volumes = self._known.get((code, migration))
        if volumes is None:
            volumes = self._known[code, migration] = _found(self._volumes_of_class(pods, migration))
        return volumes

    def _volumes_of_pod(
        self, pod: fwk.Pod, volumes: Iterable[Volume], migration: Migration
    ) -> Iterator[CsiVolume | None]:
        for volume in volumes:
            name = claim_name(pod, volume)
            if name is None:
                yield _of_disk(volume, migration)
                continue
            claim = self._claim(pod.namespace, name)
            if claim is None:
                raise CannotCountError(
                    fwk.unresolvable(f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}")
                )
            if volume.persistent_volume_claim is None:
                _refuse_foreign(claim, pod.name, pod.uid)
            yield self._of_claim(claim, migration)

    def _volumes_of_class(self, pods: VolumeClass, migration: Migration) -> Iterator[CsiVolume | None]:
        for name in dict.fromkeys(pods.claims):
            claim = self._claim(pods.namespace, name)
            if claim is not None:
                yield self._of_claim(claim, migration)
        for name in pods.ephemeral_claims:
            claim = self._claim(pods.namespace, name)
            if claim is not None:
                _refuse_foreign(claim, *pods.owner)
                yield self._of_claim(claim, migration)
        for disk in pods.disks():
            yield _of_disk(disk, migration)

    def _claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        if not name:
            raise CannotCountError(fwk.error(NO_CLAIM_NAME))
        return self._objects.pvcs.get((namespace, name))

    def _of_claim(self, claim: PersistentVolumeClaim, migration: Migration) -> CsiVolume | None:
        """Returns the volume of a claim; None if it is not of a CSI driver (getCSIDriverInfo)."""
        volume = self._objects.pvs.get(claim.spec.volume_name)
        if volume is None:
            return self._to_be_provisioned(claim, migration)
        csi = volume.spec.csi
        if csi is None:
            plugin = in_tree_plugin(volume)
            if plugin is None or not migration.covers(plugin):
                return None
            try:
                csi = translated(volume, plugin).spec.csi
            except TranslationError:
                # Upstream does not count such a volume.
                return None
        return (
            CsiVolume(csi.driver, csi.volume_handle) if csi is not None and csi.driver and csi.volume_handle else None
        )

    def _to_be_provisioned(self, claim: PersistentVolumeClaim, migration: Migration) -> CsiVolume | None:
        """Returns the volume that the driver of its class will provision (getCSIDriverInfoFromSC)."""
        storage_class = self._objects.storage_classes.get(claim_class(claim))
        driver = storage_class.provisioner if storage_class is not None else ""
        plugin = PLUGIN_BY_NAME.get(driver)
        if plugin is not None:
            driver = plugin.driver if migration.covers(plugin) else ""
        return CsiVolume(driver, "", claim.key) if driver else None


@final
class CountedVolumes(msgspec.Struct, frozen=True):
    """The volumes of a pod that use a claim, one for each claim, or that a CSI driver may attach."""

    all: tuple[Volume, ...]
    """In order."""
    with_claims: tuple[Volume, ...]
    disks: Mapping[Migration, CsiVolumes | None]
    """The volumes of in-line disks, by migration; None where one has no CSI form."""

    @staticmethod
    def of(pod: fwk.Pod) -> "CountedVolumes":
        with_claims = volumes_with_claims(pod)
        disks = [
            volume
            for volume in pod.spec.volumes
            if claim_name(pod, volume) is None and in_tree_plugin(volume) is not None
        ]
        counted_ids = {id(volume) for volume in (*with_claims, *disks)}
        in_order = tuple(volume for volume in pod.spec.volumes if id(volume) in counted_ids)
        return CountedVolumes(
            in_order, with_claims, {migration: _of_disks(disks, migration) for migration in Migration}
        )


def _of_disks(disks: Sequence[Volume], migration: Migration) -> CsiVolumes | None:
    try:
        return _found(_of_disk(volume, migration) for volume in disks)
    except CannotCountError:
        return None


def _of_disk(volume: Volume, migration: Migration) -> CsiVolume | None:
    """Returns the CSI volume of an in-line disk; None if it is not of a CSI driver (checkAttachableInlineVolume)."""
    plugin = in_tree_plugin(volume)
    if plugin is None or not migration.covers(plugin):
        return None
    try:
        return CsiVolume(plugin.driver, inline_handle(volume, plugin))
    except TranslationError as exc:
        raise CannotCountError(fwk.error(f"converting volume({volume.name}) from inline to csi: {exc}")) from exc


def _refuse_foreign(claim: PersistentVolumeClaim, pod_name: str, pod_uid: str) -> None:
    refusal = why_not_owned(claim, pod_name, pod_uid)
    if refusal is not None:
        raise CannotCountError(fwk.error(refusal))


def _found(volumes: Iterable[CsiVolume | None]) -> CsiVolumes:
    return frozenset(volume for volume in volumes if volume is not None)

"""The translation of in-tree volumes to the CSI volumes that serve them: drivers, handles, topology keys.

Only what scheduling can see of a translation is here: driver, volume handle, node affinity, and why a translation is
impossible. Upstream's scheduler considers five of the seven plugins as migrated; vSphere and Azure File volumes it
leaves as they are.

Upstream: staging/src/k8s.io/csi-translation-lib, translate.go, plugins/*.go;
pkg/scheduler/framework/plugins/volumebinding/binder.go and nodevolumelimits/utils.go, isCSIMigrationOn.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, final
from urllib.parse import unquote, urlsplit

import msgspec

from extender.values.objects import pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from extender.values.objects.storage import CSIPersistentVolumeSource, PersistentVolume, VolumeNodeAffinity

MULTI_ZONE_DELIMITER: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_MANAGED: Final = "managed"
_EBS_VOLUME_ID: Final = re.compile(r"vol-[^/]*")


class TranslationError(ValueError):
    """The volume has no CSI form. The message is upstream's."""


@final
class InTreePlugin(msgspec.Struct, frozen=True):
    """A volume plugin that a CSI driver took over from.

    Attributes:
        name: of the in-tree plugin, which is also its provisioner's.
        source: the field of a volume's source, on pods and on PersistentVolumes.
        is_migrated: whether upstream's scheduler takes the driver's part.
        needs_annotation: counting attached volumes, whether the node must say so as well.
        topology_key: the driver's label for the zone; "" if node affinity stays as it is.
    """

    name: str
    source: str
    driver: str
    is_migrated: bool = True
    needs_annotation: bool = False
    topology_key: str = ""


AWS_EBS: Final = InTreePlugin(
    "kubernetes.io/aws-ebs", "aws_elastic_block_store", "ebs.csi.aws.com", topology_key="topology.ebs.csi.aws.com/zone"
)
GCE_PD: Final = InTreePlugin(
    "kubernetes.io/gce-pd", "gce_persistent_disk", "pd.csi.storage.gke.io", topology_key="topology.gke.io/zone"
)
CINDER: Final = InTreePlugin(
    "kubernetes.io/cinder", "cinder", "cinder.csi.openstack.org", topology_key="topology.cinder.csi.openstack.org/zone"
)
AZURE_DISK: Final = InTreePlugin("kubernetes.io/azure-disk", "azure_disk", "disk.csi.azure.com")
PORTWORX: Final = InTreePlugin(
    "kubernetes.io/portworx-volume", "portworx_volume", "pxd.portworx.com", needs_annotation=True
)
AZURE_FILE: Final = InTreePlugin("kubernetes.io/azure-file", "azure_file", "file.csi.azure.com", is_migrated=False)
VSPHERE: Final = InTreePlugin(
    "kubernetes.io/vsphere-volume", "vsphere_volume", "csi.vsphere.vmware.com", is_migrated=False
)

_PLUGINS: Final = (AWS_EBS, GCE_PD, CINDER, AZURE_DISK, PORTWORX, AZURE_FILE, VSPHERE)
PLUGIN_BY_NAME: Final[Mapping[str, InTreePlugin]] = {plugin.name: plugin for plugin in _PLUGINS}


def in_tree_plugin(volume: pod.Volume | PersistentVolume) -> InTreePlugin | None:
    """Returns the plugin behind an in-tree volume that a CSI driver took over from (GetInTreePluginNameFromSpec)."""
    holder = volume.spec if isinstance(volume, PersistentVolume) else volume
    return next((plugin for plugin in _PLUGINS if getattr(holder, plugin.source) is not None), None)


def inline_handle(volume: pod.Volume, plugin: InTreePlugin) -> str:
    """Returns the CSI handle of a pod's volume (TranslateInTreeInlineVolumeToCSI). Raises TranslationError."""
    return _HANDLE_OF[plugin.name](getattr(volume, plugin.source), (_UNSPECIFIED,))


def translated(volume: PersistentVolume, plugin: InTreePlugin) -> PersistentVolume:
    """Returns an in-tree volume as a CSI one. Raises TranslationError (TranslateInTreePVToCSI)."""
    source = getattr(volume.spec, plugin.source)
    csi = CSIPersistentVolumeSource(
        driver=plugin.driver, volume_handle=_HANDLE_OF[plugin.name](source, _zones_of(volume))
    )
    affinity = _translated_affinity(volume, plugin.topology_key) if plugin.topology_key else volume.spec.node_affinity
    return replaced(volume, spec=replaced(volume.spec, csi=csi, node_affinity=affinity, **{plugin.source: None}))


# Handles.


def _ebs_handle(source: pod.AWSElasticBlockStore, zones: Sequence[str]) -> str:
    """Upstream: aws_ebs.go, KubernetesVolumeIDToEBSVolumeID."""
    volume_id = source.volume_id
    if not volume_id.startswith("aws://"):
        return volume_id
    try:
        path = unquote(urlsplit(volume_id).path)
    except ValueError as exc:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid disk name ({volume_id}): {exc}"
        ) from exc
    handle = path.strip("/")
    if _EBS_VOLUME_ID.fullmatch(handle) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return handle


def _gce_handle(source: pod.GCEPersistentDisk, zones: Sequence[str]) -> str:
    """Upstream: gce_pd.go, TranslateInTreePVToCSI."""
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{source.pd_name}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{source.pd_name}"


def _gce_region(zones: Iterable[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, expected: "
                f"{{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return regions.pop()


def _azure_disk_handle(source: pod.AzureDisk, zones: Sequence[str]) -> str:
    if source.kind is not None and source.kind.lower() != _MANAGED:
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    return source.disk_uri


def _volume_id(source: pod.CinderVolume | pod.PortworxVolume, zones: Sequence[str]) -> str:
    return source.volume_id


_HANDLE_OF: Final[Mapping[str, Callable[[Any, Sequence[str]], str]]] = {
    AWS_EBS.name: _ebs_handle,
    GCE_PD.name: _gce_handle,
    CINDER.name: _volume_id,
    AZURE_DISK.name: _azure_disk_handle,
    PORTWORX.name: _volume_id,
}
"""By plugin: the handle, of the source and the zones its labels name (never none of them; a single "" is no zone)."""


# Topology.


def _zones_of(volume: PersistentVolume) -> Sequence[str]:
    labels = volume.metadata.labels
    return (labels.get(BETA_ZONE_LABEL) or labels.get(ZONE_LABEL, "")).split(MULTI_ZONE_DELIMITER)


def _translated_affinity(volume: PersistentVolume, topology_key: str) -> VolumeNodeAffinity | None:
    """Zones under the driver's key, of the affinity or else the labels; regions under the label of today.

    Upstream: in_tree_volume.go, translateTopologyFromInTreeToCSI.
    """
    affinity, labels = volume.spec.node_affinity, volume.metadata.labels
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else []
    zone_label, region_label = _topology_labels(terms, labels)
    if any(requirement.values for requirement in _requirements(terms, zone_label)):
        terms = _with_key_replaced(terms, zone_label, topology_key)
    elif zone_label in labels:
        zones = sorted({zone.strip() for zone in labels[zone_label].split(MULTI_ZONE_DELIMITER)} - {""})
        if zones:
            in_zones = NodeSelectorRequirement(key=topology_key, operator="In", values=zones)
            terms = [
                replaced(term, match_expressions=[*term.match_expressions, in_zones])
                for term in terms or [NodeSelectorTerm()]
            ]
    if region_label == BETA_REGION_LABEL and any(
        requirement.values for requirement in _requirements(terms, BETA_REGION_LABEL)
    ):
        terms = _with_key_replaced(terms, BETA_REGION_LABEL, REGION_LABEL)
    if not terms:
        return affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=list(terms)))


def _topology_labels(terms: Sequence[NodeSelectorTerm], labels: Mapping[str, str]) -> tuple[str, str]:
    """Returns the labels for zone and region that are used: the old ones if no others occur (getTopologyLabel)."""
    of_today, old = (ZONE_LABEL, REGION_LABEL), (BETA_ZONE_LABEL, BETA_REGION_LABEL)
    if _requirements(terms, ZONE_LABEL):
        return of_today
    if _requirements(terms, BETA_ZONE_LABEL):
        return old
    return old if ZONE_LABEL not in labels and BETA_ZONE_LABEL in labels else of_today


def _requirements(terms: Iterable[NodeSelectorTerm], key: str) -> list[NodeSelectorRequirement]:
    return [requirement for term in terms for requirement in term.match_expressions if requirement.key == key]


def _with_key_replaced(terms: Iterable[NodeSelectorTerm], old: str, new: str) -> list[NodeSelectorTerm]:
    return [
        replaced(
            term, match_expressions=[replaced(it, key=new) if it.key == old else it for it in term.match_expressions]
        )
        for term in terms
    ]

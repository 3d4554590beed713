from collections.abc import Mapping

import msgspec
import pytest

from extender.testing import label_term
from extender.values.objects.csi_translation import (
    AWS_EBS,
    AZURE_DISK,
    CINDER,
    GCE_PD,
    PORTWORX,
    TranslationError,
    in_tree_plugin,
    inline_handle,
    translated,
)
from extender.values.objects.meta import NodeSelectorTerm
from extender.values.objects.node import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from extender.values.objects.pod import (
    AzureDisk,
    AzureFile,
    CinderVolume,
    GCEPersistentDisk,
    PortworxVolume,
    Volume,
    VsphereVolume,
)
from extender.values.objects.storage import (
    AttachProfile,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    PersistentVolume,
    VolumeNodeResources,
    attach_profile,
)
from tests.kit.storage import ebs_disk, gce_disk, make_csi_node, make_volume
from tests.kit.tables import cases

EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def gce_volume(labels: Mapping[str, str]) -> PersistentVolume:
    """An in-tree GCE disk."""
    volume = make_volume("pv", labels=labels)
    return msgspec.structs.replace(
        volume, spec=msgspec.structs.replace(volume.spec, gce_persistent_disk=GCEPersistentDisk(pd_name="d"))
    )


def terms_of(volume: PersistentVolume) -> list[NodeSelectorTerm] | None:
    affinity = volume.spec.node_affinity
    return None if affinity is None or affinity.required is None else affinity.required.node_selector_terms


@cases(
    "volume, plugin",
    ("EBS", ebs_disk("v"), "kubernetes.io/aws-ebs"),
    ("GCE", gce_disk("d"), "kubernetes.io/gce-pd"),
    ("Azure Disk", Volume(azure_disk=AzureDisk()), "kubernetes.io/azure-disk"),
    ("Azure File", Volume(azure_file=AzureFile()), "kubernetes.io/azure-file"),
    ("Cinder", Volume(cinder=CinderVolume()), "kubernetes.io/cinder"),
    ("Portworx", Volume(portworx_volume=PortworxVolume()), "kubernetes.io/portworx-volume"),
    ("vSphere", Volume(vsphere_volume=VsphereVolume()), "kubernetes.io/vsphere-volume"),
    ("a PersistentVolume", make_volume("pv", ebs="v"), "kubernetes.io/aws-ebs"),
    ("a CSI volume is none", make_volume("pv", csi="ebs.csi.aws.com"), None),
    ("nor are others", Volume(name="cfg"), None),
)
def test_in_tree_plugins(volume: Volume | PersistentVolume, plugin: str | None) -> None:
    """Those that CSI drivers took over from."""
    in_tree = in_tree_plugin(volume)

    assert (in_tree.name if in_tree is not None else None) == plugin


@cases(
    "volume_id, handle",
    ("as it is", "vol-1", "vol-1"),
    ("whatever it is", "anything", "anything"),
    ("with a zone", "aws://us-east-1a/vol-1", "vol-1"),
    ("without", "aws:///vol-1", "vol-1"),
)
def test_ebs_handles(volume_id: str, handle: str) -> None:
    assert inline_handle(ebs_disk(volume_id), AWS_EBS) == handle


@cases(
    "labels, handle",
    ("nowhere", {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
    ("in a zone", {ZONE_LABEL: "us-east1-b"}, "projects/UNSPECIFIED/zones/us-east1-b/disks/d"),
    ("old first", {BETA_ZONE_LABEL: "us-a1-b", ZONE_LABEL: "us-a1-c"}, "projects/UNSPECIFIED/zones/us-a1-b/disks/d"),
    ("in a region", {ZONE_LABEL: "us-a1-b__us-a1-c"}, "projects/UNSPECIFIED/regions/us-a1/disks/d"),
)
def test_gce_handles(labels: dict[str, str], handle: str) -> None:
    """A disk in several zones is one of their region."""
    csi = translated(gce_volume(labels), GCE_PD).spec.csi

    assert csi is not None
    assert (csi.driver, csi.volume_handle) == ("pd.csi.storage.gke.io", handle)


@cases(
    "volume, plugin, handle",
    ("GCE", gce_disk("d"), GCE_PD, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
    ("Azure", Volume(azure_disk=AzureDisk(disk_uri="/disks/d", kind="Managed")), AZURE_DISK, "/disks/d"),
    ("Cinder", Volume(cinder=CinderVolume(volume_id="v")), CINDER, "v"),
    ("Portworx", Volume(portworx_volume=PortworxVolume(volume_id="v")), PORTWORX, "v"),
)
def test_handles_of_disks_in_pods(volume: Volume, plugin: object, handle: str) -> None:
    assert inline_handle(volume, plugin) == handle  # type: ignore[arg-type]


@cases(
    "translate, message",
    (
        "EBS",
        lambda: inline_handle(ebs_disk("aws://z/disk"), AWS_EBS),
        "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://z/disk)",
    ),
    (
        "Azure",
        lambda: inline_handle(Volume(azure_disk=AzureDisk(kind="Dedicated")), AZURE_DISK),
        "kind(Dedicated) is not supported in csi migration",
    ),
    (
        "no zones of GCE",
        lambda: translated(gce_volume({ZONE_LABEL: "a__b"}), GCE_PD),
        "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: a",
    ),
    (
        "two regions",
        lambda: translated(gce_volume({ZONE_LABEL: "us-b1-b__us-a1-c"}), GCE_PD),
        "failed to get region from zones: multiple or no regions gotten from zones, got: map[us-a1:{} us-b1:{}]",
    ),
)
def test_volume_without_csi_form_is_refused_with_the_reason(translate: object, message: str) -> None:
    with pytest.raises(TranslationError) as refused:
        translate()  # type: ignore[operator]

    assert str(refused.value) == message


@cases(
    "labels, affinity, terms",
    ("says nothing", {}, None, None),
    ("labels stand in for an affinity", {ZONE_LABEL: "b__ a"}, None, [label_term(EBS_ZONE, "In", "a", "b")]),
    ("old ones, too", {BETA_ZONE_LABEL: "a"}, None, [label_term(EBS_ZONE, "In", "a")]),
    ("not without a zone", {ZONE_LABEL: "__"}, None, None),
    ("its label", {}, [label_term(ZONE_LABEL, "In", "a")], [label_term(EBS_ZONE, "In", "a")]),
    ("affinity first", {ZONE_LABEL: "b"}, [label_term(ZONE_LABEL, "In", "a")], [label_term(EBS_ZONE, "In", "a")]),
    ("an old label in the affinity", {}, [label_term(BETA_ZONE_LABEL, "In", "a")], [label_term(EBS_ZONE, "In", "a")]),
    ("other labels stay", {}, [label_term("rack", "In", "r")], [label_term("rack", "In", "r")]),
    (
        "an old region becomes the one of today",
        {BETA_ZONE_LABEL: "a"},
        [label_term(BETA_REGION_LABEL, "In", "r")],
        [
            NodeSelectorTerm(
                match_expressions=[
                    *label_term(REGION_LABEL, "In", "r").match_expressions,
                    *label_term(EBS_ZONE, "In", "a").match_expressions,
                ]
            )
        ],
    ),
)
def test_topology(
    labels: dict[str, str], affinity: list[NodeSelectorTerm] | None, terms: list[NodeSelectorTerm] | None
) -> None:
    """The CSI driver labels nodes with zones of its own."""
    assert terms_of(translated(make_volume("pv", ebs="v", labels=labels, affinity=affinity), AWS_EBS)) == terms


def test_volume_limits_of_a_csi_node() -> None:
    """Drivers without a limit have none; of two limits the last one holds."""
    node = make_csi_node("n", {"a": 1, "b": None}, migrated=["kubernetes.io/aws-ebs", "kubernetes.io/cinder"])
    twice = CSINode(
        spec=CSINodeSpec(
            drivers=[CSINodeDriver(name="a", allocatable=VolumeNodeResources(count=limit)) for limit in (1, 2)]
        )
    )

    migrated = frozenset({"kubernetes.io/aws-ebs", "kubernetes.io/cinder"})
    assert attach_profile(node) == AttachProfile((("a", 1),), migrated, frozenset({"a", "b"}))
    assert attach_profile(twice) == AttachProfile((("a", 2),), drivers=frozenset({"a"}))

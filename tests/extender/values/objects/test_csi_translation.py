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


@pytest.mark.parametrize(
    ("volume", "plugin"),
    [
        pytest.param(ebs_disk("v"), "kubernetes.io/aws-ebs", id="EBS"),
        pytest.param(gce_disk("d"), "kubernetes.io/gce-pd", id="GCE"),
        pytest.param(Volume(azure_disk=AzureDisk()), "kubernetes.io/azure-disk", id="Azure Disk"),
        pytest.param(Volume(azure_file=AzureFile()), "kubernetes.io/azure-file", id="Azure File"),
        pytest.param(Volume(cinder=CinderVolume()), "kubernetes.io/cinder", id="Cinder"),
        pytest.param(Volume(portworx_volume=PortworxVolume()), "kubernetes.io/portworx-volume", id="Portworx"),
        pytest.param(Volume(vsphere_volume=VsphereVolume()), "kubernetes.io/vsphere-volume", id="vSphere"),
        pytest.param(make_volume("pv", ebs="v"), "kubernetes.io/aws-ebs", id="a PersistentVolume"),
        pytest.param(make_volume("pv", csi="ebs.csi.aws.com"), None, id="a CSI volume is none"),
        pytest.param(Volume(name="cfg"), None, id="nor are others"),
    ],
)
def test_in_tree_plugins(volume: Volume | PersistentVolume, plugin: str | None) -> None:
    """Those that CSI drivers took over from."""
    found = in_tree_plugin(volume)

    assert (found.name if found is not None else None) == plugin


@pytest.mark.parametrize(
    ("volume_id", "handle"),
    [
        pytest.param("vol-1", "vol-1", id="as it is"),
        pytest.param("anything", "anything", id="whatever it is"),
        pytest.param("aws://us-east-1a/vol-1", "vol-1", id="with a zone"),
        pytest.param("aws:///vol-1", "vol-1", id="without"),
    ],
)
def test_ebs_handles(volume_id: str, handle: str) -> None:
    assert inline_handle(ebs_disk(volume_id), AWS_EBS) == handle


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        pytest.param({}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", id="nowhere"),
        pytest.param({ZONE_LABEL: "us-east1-b"}, "projects/UNSPECIFIED/zones/us-east1-b/disks/d", id="in a zone"),
        pytest.param(
            {BETA_ZONE_LABEL: "us-a1-b", ZONE_LABEL: "us-a1-c"},
            "projects/UNSPECIFIED/zones/us-a1-b/disks/d",
            id="old first",
        ),
        pytest.param({ZONE_LABEL: "us-a1-b__us-a1-c"}, "projects/UNSPECIFIED/regions/us-a1/disks/d", id="in a region"),
    ],
)
def test_gce_handles(labels: dict[str, str], handle: str) -> None:
    """A disk in several zones is one of their region."""
    csi = translated(gce_volume(labels), GCE_PD).spec.csi

    assert csi is not None
    assert (csi.driver, csi.volume_handle) == ("pd.csi.storage.gke.io", handle)


@pytest.mark.parametrize(
    ("volume", "plugin", "handle"),
    [
        pytest.param(gce_disk("d"), GCE_PD, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", id="GCE"),
        pytest.param(
            Volume(azure_disk=AzureDisk(disk_uri="/disks/d", kind="Managed")), AZURE_DISK, "/disks/d", id="Azure"
        ),
        pytest.param(Volume(cinder=CinderVolume(volume_id="v")), CINDER, "v", id="Cinder"),
        pytest.param(Volume(portworx_volume=PortworxVolume(volume_id="v")), PORTWORX, "v", id="Portworx"),
    ],
)
def test_handles_of_disks_in_pods(volume: Volume, plugin: object, handle: str) -> None:
    assert inline_handle(volume, plugin) == handle  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("translate", "message"),
    [
        pytest.param(
            lambda: inline_handle(ebs_disk("aws://z/disk"), AWS_EBS),
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://z/disk)",
            id="EBS",
        ),
        pytest.param(
            lambda: inline_handle(Volume(azure_disk=AzureDisk(kind="Dedicated")), AZURE_DISK),
            "kind(Dedicated) is not supported in csi migration",
            id="Azure",
        ),
        pytest.param(
            lambda: translated(gce_volume({ZONE_LABEL: "a__b"}), GCE_PD),
            "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: a",
            id="no zones of GCE",
        ),
        pytest.param(
            lambda: translated(gce_volume({ZONE_LABEL: "us-b1-b__us-a1-c"}), GCE_PD),
            "failed to get region from zones: multiple or no regions gotten from zones, got: map[us-a1:{} us-b1:{}]",
            id="two regions",
        ),
    ],
)
def test_volume_without_csi_form_is_refused_with_the_reason(translate: object, message: str) -> None:
    with pytest.raises(TranslationError) as refused:
        translate()  # type: ignore[operator]

    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("labels", "affinity", "terms"),
    [
        pytest.param({}, None, None, id="says nothing"),
        pytest.param(
            {ZONE_LABEL: "b__ a"}, None, [label_term(EBS_ZONE, "In", "a", "b")], id="labels stand in for an affinity"
        ),
        pytest.param({BETA_ZONE_LABEL: "a"}, None, [label_term(EBS_ZONE, "In", "a")], id="old ones, too"),
        pytest.param({ZONE_LABEL: "__"}, None, None, id="not without a zone"),
        pytest.param({}, [label_term(ZONE_LABEL, "In", "a")], [label_term(EBS_ZONE, "In", "a")], id="its label"),
        pytest.param(
            {ZONE_LABEL: "b"},
            [label_term(ZONE_LABEL, "In", "a")],
            [label_term(EBS_ZONE, "In", "a")],
            id="affinity first",
        ),
        pytest.param(
            {},
            [label_term(BETA_ZONE_LABEL, "In", "a")],
            [label_term(EBS_ZONE, "In", "a")],
            id="an old label in the affinity",
        ),
        pytest.param({}, [label_term("rack", "In", "r")], [label_term("rack", "In", "r")], id="other labels stay"),
        pytest.param(
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
            id="an old region becomes the one of today",
        ),
    ],
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

from collections.abc import Sequence
from typing import Any

import pytest

from extender.engine.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    Rows,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from extender.engine.plugins.node_volume_limits.plugin import NodeVolumeLimits
from extender.testing import PodBuilder, filter_nodes, make_framework, make_node, make_pod, make_snapshot
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import AzureFile, PortworxVolume, Volume
from tests.extender.moves import moves, slot_of
from tests.kit.storage import (
    ebs_disk,
    ephemeral,
    make_attachment,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
)

CSI = "csi.example.com"
EBS = "ebs.csi.aws.com"
PORTWORX = "pxd.portworx.com"
PORTWORX_DISK = Volume(name="px", portworx_volume=PortworxVolume(volume_id="v"))
NO_EBS_VOLUME = error(
    "converting volume(ebs) from inline to csi: "
    "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/other)"
)
GONE = unresolvable('looking up PVC default/gone: persistentvolumeclaim "gone" not found')
NOT_ITS_OWN = error("PVC default/r-scratch was not created for pod default/r (pod is not owner)")
TOO_MANY = unschedulable("node(s) exceed max volume count")
claiming, BESIDE = make_pod().claim, make_pod("r")
MISSING = unschedulable("csi.example.com CSI driver is not installed on the node")


def bound(name: str, driver: str = CSI, **more: Any) -> list[HasMetadata]:
    """A claim and its volume."""
    return [make_claim(name, volume=f"pv-{name}"), make_volume(f"pv-{name}", claim=name, csi=driver, **more)]


def answer_on_n(
    limits: dict[str, int | None],
    pod: PodBuilder,
    running: Sequence[PodBuilder],
    *objects: HasMetadata,
    migrated: Sequence[str] = (),
) -> Status:
    csi_node = make_csi_node("n", limits, migrated=migrated)
    snapshot = make_snapshot(make_node("n"), pods=[other.node("n") for other in running], objects=[csi_node, *objects])
    return filter_nodes(NodeVolumeLimits(), snapshot, pod.obj())["n"]


@pytest.mark.parametrize(
    ("pod", "running", "limits", "answer"),
    [
        pytest.param(make_pod(), [], {CSI: 0}, SKIP, id="no volumes"),
        pytest.param(claiming("a"), [], {CSI: 1}, SUCCESS, id="the last one"),
        pytest.param(claiming("a"), [], {CSI: 0}, TOO_MANY, id="none at all"),
        pytest.param(claiming("a"), [], {CSI: None}, SUCCESS, id="no limit"),
        pytest.param(claiming("a"), [], {EBS: 0}, SUCCESS, id="a limit for others"),
        pytest.param(claiming("a").claim("b"), [], {CSI: 1}, TOO_MANY, id="two of its own"),
        pytest.param(claiming("a").claim("a"), [], {CSI: 1}, SUCCESS, id="one, named twice"),
        pytest.param(claiming("a"), [BESIDE.claim("b")], {CSI: 1}, TOO_MANY, id="another pod has the last one"),
        pytest.param(claiming("a"), [BESIDE.claim("a")], {CSI: 1}, SUCCESS, id="the very volume is there"),
        pytest.param(
            claiming("a"), [BESIDE.claim("b"), make_pod("q").claim("b")], {CSI: 2}, SUCCESS, id="shared by others"
        ),
        pytest.param(claiming("a"), [BESIDE.claim("e")], {CSI: 1}, SUCCESS, id="others have other drivers"),
        pytest.param(claiming("a").claim("e"), [BESIDE.claim("e2")], {CSI: 9, EBS: 1}, TOO_MANY, id="a limit for each"),
        pytest.param(claiming("a"), [BESIDE.claim("gone")], {CSI: 1}, SUCCESS, id="others' lost claims do not count"),
        pytest.param(claiming("u"), [BESIDE.claim("a")], {CSI: 1}, TOO_MANY, id="a volume that is to be made counts"),
        pytest.param(claiming("u"), [BESIDE.claim("u")], {CSI: 1}, SUCCESS, id="and is known by its claim"),
        pytest.param(claiming("nobody's"), [], {CSI: 0}, SUCCESS, id="a class that does not exist counts for nothing"),
        pytest.param(claiming("local"), [], {CSI: 0}, SUCCESS, id="a volume of no driver counts for nothing"),
    ],
)
def test_limits(pod: PodBuilder, running: list[PodBuilder], limits: dict[str, int | None], answer: Status) -> None:
    """What is attached, each volume once, and what the pod adds must be no more than the driver can attach."""
    objects = [*bound("a"), *bound("b"), *bound("e", EBS), *bound("e2", EBS), *bound("local", "")]
    objects += [make_class("std", provisioner=CSI), make_claim("u"), make_claim("nobody's", storage_class="ghost")]

    assert answer_on_n(limits, pod, running, *objects) == answer


@pytest.mark.parametrize(
    ("attachment", "answer"),
    [
        pytest.param(make_attachment("pv-b", "n"), TOO_MANY, id="it counts, though no pod uses it"),
        pytest.param(make_attachment("pv-r", "n"), SUCCESS, id="one that a pod uses counts once"),
        pytest.param(make_attachment("pv-b", "elsewhere"), SUCCESS, id="another node's does not"),
        pytest.param(make_attachment("pv-gone", "n"), SUCCESS, id="nor one of no volume"),
        pytest.param(make_attachment("pv-b", "n", driver=""), SUCCESS, id="nor one without a driver"),
        pytest.param(make_attachment("pv-a", "n"), TOO_MANY, id="the pod's own counts twice, as upstream"),
    ],
)
def test_attachments(attachment: HasMetadata, answer: Status) -> None:
    """A volume is attached before its pod runs, and stays so for a while afterwards."""
    objects: list[HasMetadata] = [*bound("a"), *bound("b"), *bound("r"), attachment]

    assert answer_on_n({CSI: 2}, claiming("a"), [BESIDE.claim("r")], *objects) == answer


@pytest.mark.parametrize(
    ("volume", "migrated", "answer"),
    [
        pytest.param(ebs_disk("vol-1"), [], TOO_MANY, id="EBS goes by its driver"),
        pytest.param(ebs_disk("aws://zone/vol-1"), [], TOO_MANY, id="however it is spelled"),
        pytest.param(PORTWORX_DISK, [], SUCCESS, id="Portworx does not"),
        pytest.param(PORTWORX_DISK, ["kubernetes.io/portworx-volume"], TOO_MANY, id="unless the node says so"),
        pytest.param(
            Volume(name="af", azure_file=AzureFile(share_name="s")), [], SUCCESS, id="Azure File is not counted"
        ),
        pytest.param(ebs_disk("aws://zone/other"), [], NO_EBS_VOLUME, id="no EBS volume at all"),
    ],
)
def test_disks_in_the_pods_spec(volume: Volume, migrated: list[str], answer: Status) -> None:
    """In-tree disks are attached by the drivers that took over from the in-tree plugins."""
    assert answer_on_n({EBS: 0, PORTWORX: 0}, make_pod().volume(volume), [], migrated=migrated) == answer


def test_without_a_csi_node_nothing_is_counted() -> None:
    snapshot = make_snapshot(make_node("n"), objects=bound("a"))

    assert filter_nodes(NodeVolumeLimits(), snapshot, claiming("a").obj()) == {"n": SUCCESS}


def test_in_tree_volumes_of_claims_count_as_translated() -> None:
    objects = [make_claim("a", volume="pv"), make_volume("pv", claim="a", ebs="vol-1"), *bound("b", EBS)]

    assert answer_on_n({EBS: 1}, claiming("a"), [BESIDE.claim("b")], *objects) == TOO_MANY
    assert answer_on_n({EBS: 1}, claiming("a"), [make_pod("r").volume(ebs_disk("vol-1"))], *objects) == SUCCESS


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        pytest.param(claiming("gone"), GONE, id="none"),
        pytest.param(claiming(""), error("PersistentVolumeClaim had no name"), id="no name"),
        pytest.param(
            make_pod().volume(ephemeral()),
            error("PVC default/p-scratch was not created for pod default/p (pod is not owner)"),
            id="an ephemeral volume's claim of another owner",
        ),
    ],
)
@pytest.mark.parametrize("node", ["n", "without-csi-node"])
def test_claims_that_cannot_be_counted(pod: PodBuilder, answer: Status, node: str) -> None:
    """They are in the way even where nothing is limited."""
    objects: list[HasMetadata] = [make_csi_node("n", {CSI: 9}), make_claim("p-scratch")]
    snapshot = make_snapshot(make_node(node), objects=objects)

    assert filter_nodes(NodeVolumeLimits(), snapshot, pod.obj()) == {node: answer}


@pytest.mark.parametrize(
    ("limits", "answer"),
    [
        pytest.param({CSI: 9}, NOT_ITS_OWN, id="where there are limits"),
        pytest.param({EBS: 9}, NOT_ITS_OWN, id="whosever they are"),
        pytest.param({CSI: None}, SUCCESS, id="not where there are none"),
    ],
)
def test_a_running_pod_that_cannot_be_counted(limits: dict[str, int | None], answer: Status) -> None:
    running = make_pod("r").volume(ephemeral())

    assert answer_on_n(limits, claiming("a"), [running], *bound("a"), make_claim("r-scratch")) == answer


def test_an_ephemeral_volume_of_its_own_counts() -> None:
    pod = make_pod().volume(ephemeral())
    claim = make_claim("p-scratch", owner=pod.obj())

    assert answer_on_n({CSI: 0}, pod, [], claim, make_class("std", provisioner=CSI)) == TOO_MANY


@pytest.mark.parametrize(
    ("leaving", "ok"),
    [
        pytest.param(["r"], False, id="its volume stays, for another pod has it"),
        pytest.param(["r", "q"], True, id="the last one takes it along"),
    ],
)
def test_a_shared_volume_leaves_with_its_last_pod(leaving: list[str], ok: bool) -> None:
    running = [make_pod(name).claim("b").node("n") for name in "rq"]
    objects = [*bound("a"), *bound("b"), make_csi_node("n", {CSI: 1})]
    snapshot = make_snapshot(make_node("n"), pods=running, objects=objects)
    pod, state, plugin = claiming("a").obj(), CycleState(), NodeVolumeLimits()
    plugin.pre_filter(state, pod, snapshot)
    gone = moves(*((0, slot_of(snapshot, name), -1) for name in leaving))

    verdicts = plugin.filter(state, pod, Rows.of(snapshot).changed(gone))

    assert verdicts.ok.tolist() == [ok]


def test_filter_works_without_pre_filter() -> None:
    """A profile may run one and not the other."""
    snapshot = make_snapshot(make_node("n"), objects=[*bound("a"), make_csi_node("n", {CSI: 0})])
    plugin, rows = NodeVolumeLimits(), Rows.of(snapshot)

    assert plugin.filter(CycleState(), claiming("a").obj(), rows).status_of(0) == TOO_MANY
    assert plugin.filter(CycleState(), make_pod().obj(), rows).all_ok


@pytest.mark.parametrize(
    ("is_on", "is_required", "drivers", "answer"),
    [
        pytest.param(True, True, {}, MISSING, id="the node lacks it"),
        pytest.param(True, True, {EBS: 9}, MISSING, id="the node has another one"),
        pytest.param(True, True, {CSI: None}, SUCCESS, id="the node has it, without a limit"),
        pytest.param(True, True, {CSI: 0}, TOO_MANY, id="the node has it, and is full"),
        pytest.param(True, None, {}, SUCCESS, id="the driver does not ask for it"),
        pytest.param(False, True, {}, SUCCESS, id="the gate is off"),
    ],
)
def test_a_driver_may_require_to_be_installed(
    is_on: bool, is_required: bool | None, drivers: dict[str, int | None], answer: Status
) -> None:
    """
    VolumeLimitScaling with preventPodSchedulingIfMissing: a node without the driver takes no pod with volumes of it.
    """
    [plugin] = make_framework(NodeVolumeLimits, features={"VolumeLimitScaling": is_on}).plugins.pre_filter
    assert isinstance(plugin, NodeVolumeLimits)
    objects = [make_csi_driver(CSI, is_required=is_required), *bound("a")]
    csi_nodes = [make_csi_node("n", drivers)] if drivers else []
    snapshot = make_snapshot(make_node("n"), objects=[*csi_nodes, *objects])

    assert filter_nodes(plugin, snapshot, claiming("a").obj())["n"] == answer
    assert filter_nodes(plugin, snapshot, make_pod().obj())["n"] == SKIP

from collections.abc import Sequence
from typing import Any

import pytest

from extender.engine.framework import SKIP, SUCCESS, CycleState, Rows, Status, error, unresolvable, unschedulable
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
from tests.kit.tables import cases

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


@cases(
    "pod, running, limits, answer",
    ("no volumes", make_pod(), [], {CSI: 0}, SKIP),
    ("the last one", claiming("a"), [], {CSI: 1}, SUCCESS),
    ("none at all", claiming("a"), [], {CSI: 0}, TOO_MANY),
    ("no limit", claiming("a"), [], {CSI: None}, SUCCESS),
    ("a limit for others", claiming("a"), [], {EBS: 0}, SUCCESS),
    ("two of its own", claiming("a").claim("b"), [], {CSI: 1}, TOO_MANY),
    ("one, named twice", claiming("a").claim("a"), [], {CSI: 1}, SUCCESS),
    ("another pod has the last one", claiming("a"), [BESIDE.claim("b")], {CSI: 1}, TOO_MANY),
    ("the very volume is there", claiming("a"), [BESIDE.claim("a")], {CSI: 1}, SUCCESS),
    ("shared by others", claiming("a"), [BESIDE.claim("b"), make_pod("q").claim("b")], {CSI: 2}, SUCCESS),
    ("others have other drivers", claiming("a"), [BESIDE.claim("e")], {CSI: 1}, SUCCESS),
    ("a limit for each", claiming("a").claim("e"), [BESIDE.claim("e2")], {CSI: 9, EBS: 1}, TOO_MANY),
    ("others' lost claims do not count", claiming("a"), [BESIDE.claim("gone")], {CSI: 1}, SUCCESS),
    ("a volume that is to be made counts", claiming("u"), [BESIDE.claim("a")], {CSI: 1}, TOO_MANY),
    ("and is known by its claim", claiming("u"), [BESIDE.claim("u")], {CSI: 1}, SUCCESS),
    ("a class that does not exist counts for nothing", claiming("nobody's"), [], {CSI: 0}, SUCCESS),
    ("a volume of no driver counts for nothing", claiming("local"), [], {CSI: 0}, SUCCESS),
)
def test_limits(pod: PodBuilder, running: list[PodBuilder], limits: dict[str, int | None], answer: Status) -> None:
    """What is attached, each volume once, and what the pod adds must be no more than the driver can attach."""
    objects = [*bound("a"), *bound("b"), *bound("e", EBS), *bound("e2", EBS), *bound("local", "")]
    objects += [make_class("std", provisioner=CSI), make_claim("u"), make_claim("nobody's", storage_class="ghost")]

    assert answer_on_n(limits, pod, running, *objects) == answer


@cases(
    "attachment, answer",
    ("it counts, though no pod uses it", make_attachment("pv-b", "n"), TOO_MANY),
    ("one that a pod uses counts once", make_attachment("pv-r", "n"), SUCCESS),
    ("another node's does not", make_attachment("pv-b", "elsewhere"), SUCCESS),
    ("nor one of no volume", make_attachment("pv-gone", "n"), SUCCESS),
    ("nor one without a driver", make_attachment("pv-b", "n", driver=""), SUCCESS),
    ("the pod's own counts twice, as upstream", make_attachment("pv-a", "n"), TOO_MANY),
)
def test_attachments(attachment: HasMetadata, answer: Status) -> None:
    """A volume is attached before its pod runs, and stays so for a while afterwards."""
    objects: list[HasMetadata] = [*bound("a"), *bound("b"), *bound("r"), attachment]

    assert answer_on_n({CSI: 2}, claiming("a"), [BESIDE.claim("r")], *objects) == answer


@cases(
    "volume, migrated, answer",
    ("EBS goes by its driver", ebs_disk("vol-1"), [], TOO_MANY),
    ("however it is spelled", ebs_disk("aws://zone/vol-1"), [], TOO_MANY),
    ("Portworx does not", PORTWORX_DISK, [], SUCCESS),
    ("unless the node says so", PORTWORX_DISK, ["kubernetes.io/portworx-volume"], TOO_MANY),
    ("Azure File is not counted", Volume(name="af", azure_file=AzureFile(share_name="s")), [], SUCCESS),
    ("no EBS volume at all", ebs_disk("aws://zone/other"), [], NO_EBS_VOLUME),
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


@cases(
    "pod, answer",
    ("none", claiming("gone"), GONE),
    ("no name", claiming(""), error("PersistentVolumeClaim had no name")),
    (
        "an ephemeral volume's claim of another owner",
        make_pod().volume(ephemeral()),
        error("PVC default/p-scratch was not created for pod default/p (pod is not owner)"),
    ),
)
@pytest.mark.parametrize("node", ["n", "without-csi-node"])
def test_claims_that_cannot_be_counted(pod: PodBuilder, answer: Status, node: str) -> None:
    """They are in the way even where nothing is limited."""
    objects: list[HasMetadata] = [make_csi_node("n", {CSI: 9}), make_claim("p-scratch")]
    snapshot = make_snapshot(make_node(node), objects=objects)

    assert filter_nodes(NodeVolumeLimits(), snapshot, pod.obj()) == {node: answer}


@cases(
    "limits, answer",
    ("where there are limits", {CSI: 9}, NOT_ITS_OWN),
    ("whosever they are", {EBS: 9}, NOT_ITS_OWN),
    ("not where there are none", {CSI: None}, SUCCESS),
)
def test_a_running_pod_that_cannot_be_counted(limits: dict[str, int | None], answer: Status) -> None:
    running = make_pod("r").volume(ephemeral())

    assert answer_on_n(limits, claiming("a"), [running], *bound("a"), make_claim("r-scratch")) == answer


def test_an_ephemeral_volume_of_its_own_counts() -> None:
    pod = make_pod().volume(ephemeral())
    claim = make_claim("p-scratch", owner=pod.obj())

    assert answer_on_n({CSI: 0}, pod, [], claim, make_class("std", provisioner=CSI)) == TOO_MANY


@cases(
    "leaving, ok",
    ("its volume stays, for another pod has it", ["r"], False),
    ("the last one takes it along", ["r", "q"], True),
)
def test_a_shared_volume_leaves_with_its_last_pod(leaving: list[str], ok: bool) -> None:
    running = [make_pod(name).claim("b").node("n") for name in "rq"]
    objects = [*bound("a"), *bound("b"), make_csi_node("n", {CSI: 1})]
    snapshot = make_snapshot(make_node("n"), pods=running, objects=objects)
    pod, state, plugin = claiming("a").obj(), CycleState(), NodeVolumeLimits()
    plugin.pre_filter(state, pod, snapshot)
    departures = moves(*((0, slot_of(snapshot, name), -1) for name in leaving))

    verdicts = plugin.filter(state, pod, Rows.of(snapshot).changed(departures))

    assert verdicts.ok.tolist() == [ok]


def test_filter_works_without_pre_filter() -> None:
    """A profile may run one and not the other."""
    snapshot = make_snapshot(make_node("n"), objects=[*bound("a"), make_csi_node("n", {CSI: 0})])
    plugin, rows = NodeVolumeLimits(), Rows.of(snapshot)

    assert plugin.filter(CycleState(), claiming("a").obj(), rows).status_of(0) == TOO_MANY
    assert plugin.filter(CycleState(), make_pod().obj(), rows).all_ok


@cases(
    "is_on, is_required, drivers, answer",
    ("the node lacks it", True, True, {}, MISSING),
    ("the node has another one", True, True, {EBS: 9}, MISSING),
    ("the node has it, without a limit", True, True, {CSI: None}, SUCCESS),
    ("the node has it, and is full", True, True, {CSI: 0}, TOO_MANY),
    ("the driver does not ask for it", True, None, {}, SUCCESS),
    ("the gate is off", False, True, {}, SUCCESS),
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

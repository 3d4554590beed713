import pytest

from extender.engine.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    NotFoundError,
    Rows,
    Snapshot,
    Status,
    unresolvable,
    unschedulable,
)
from extender.engine.plugins.volume_restrictions import VolumeRestrictions
from extender.testing import PodBuilder, filter_nodes, make_node, make_pod, make_snapshot
from extender.values.objects.pod import Volume
from tests.extender.moves import moves, slot_of
from tests.kit.storage import ebs_disk, gce_disk, iscsi_disk, make_claim, rbd_image
from tests.kit.tables import cases

NO_DISK = unschedulable("node(s) had no available disk")
IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
CLAIMS = [make_claim("once", access="ReadWriteOncePod"), make_claim("often")]


@cases(
    "volume, used, answer",
    ("another GCE disk", gce_disk("a"), gce_disk("b"), SUCCESS),
    ("the same GCE disk", gce_disk("a"), gce_disk("a"), NO_DISK),
    ("one of two writes", gce_disk("a", read_only=True), gce_disk("a"), NO_DISK),
    ("both only read", gce_disk("a", read_only=True), gce_disk("a", read_only=True), SUCCESS),
    ("another EBS volume", ebs_disk("a"), ebs_disk("b"), SUCCESS),
    ("an EBS volume is not even read twice", ebs_disk("a", read_only=True), ebs_disk("a", read_only=True), NO_DISK),
    ("the same iSCSI disk", iscsi_disk("a"), iscsi_disk("a"), NO_DISK),
    ("iSCSI, both only read", iscsi_disk("a", read_only=True), iscsi_disk("a", read_only=True), SUCCESS),
    ("the same Ceph image by a common monitor", rbd_image("a", "m1", "m2"), rbd_image("a", "m2", "m3"), NO_DISK),
    ("no common monitor is another cluster", rbd_image("a", "m1"), rbd_image("a", "m2"), SUCCESS),
    ("another Ceph image", rbd_image("a", "m1"), rbd_image("b", "m1"), SUCCESS),
    ("another pool", rbd_image("a", "m1"), rbd_image("a", "m1", pool="other"), SUCCESS),
    ("Ceph, both only read", rbd_image("a", "m1", read_only=True), rbd_image("a", "m1", read_only=True), SUCCESS),
    ("names of different kinds are not compared", gce_disk("a"), ebs_disk("a"), SUCCESS),
)
def test_disks(volume: Volume, used: Volume, answer: Status) -> None:
    """A node attaches a disk for one pod, unless all only read it."""
    snapshot = make_snapshot(make_node("n"), make_node("empty"), pods=[make_pod("r").volume(used).node("n")])
    statuses = filter_nodes(VolumeRestrictions(), snapshot, make_pod().volume(volume).obj())

    assert statuses == {"n": answer, "empty": SUCCESS}


@cases(
    "pod, running, answer",
    ("no claims", make_pod(), make_pod("r").claim("once"), SKIP),
    ("it is unused", make_pod().claim("once"), make_pod("r"), SKIP),
    ("in use", make_pod().claim("once"), make_pod("r").claim("once"), IN_USE),
    ("a namesake in another namespace", make_pod().claim("once"), make_pod("r").claim("once").namespace("other"), SKIP),
    ("other access modes are not looked at", make_pod().claim("often"), make_pod("r").claim("often"), SKIP),
    ("no such claim", make_pod().claim("gone"), make_pod("r"), unresolvable('persistentvolumeclaim "gone" not found')),
)
def test_claims_for_one_pod(pod: PodBuilder, running: PodBuilder, answer: Status) -> None:
    """A ReadWriteOncePod claim in use is out of reach from all nodes."""
    snapshot = make_snapshot(make_node("n"), make_node("other"), pods=[running.node("n")], objects=CLAIMS)

    assert filter_nodes(VolumeRestrictions(), snapshot, pod.obj()) == {"n": answer, "other": answer}


def leaving(snapshot: Snapshot, *pods: str) -> Rows:
    """Every node without these pods, each on its own node."""
    slots = [slot_of(snapshot, pod) for pod in pods]
    return Rows.of(snapshot).changed(moves(*((snapshot.pods.node[slot], slot, -1) for slot in slots)))


def test_preempting_the_user_of_the_claim_makes_room_on_its_node() -> None:
    """Preemption looks at one node at a time: only there the claim is free."""
    running = make_pod("r").claim("once").node("n")
    snapshot = make_snapshot(make_node("n"), make_node("other"), pods=[running], objects=CLAIMS)
    pod, state, plugin = make_pod().claim("once").obj(), CycleState(), VolumeRestrictions()
    plugin.pre_filter(state, pod, snapshot)

    verdicts = plugin.filter(state, pod, leaving(snapshot, "r"))

    assert verdicts.ok.tolist() == [True, False]


@cases(
    "leaver, ok",
    ("a namesake counts", make_pod("q").claim("once").namespace("other").uid("default/q"), True),
    ("another claim does not", make_pod("q").claim("often"), False),
)
def test_upstream_counts_leaving_claims_by_name_alone(leaver: PodBuilder, ok: bool) -> None:
    running = [make_pod("r").claim("once").node("elsewhere"), leaver.node("n")]
    snapshot = make_snapshot(make_node("n"), make_node("elsewhere"), pods=running, objects=CLAIMS)
    pod, state, plugin = make_pod().claim("once").obj(), CycleState(), VolumeRestrictions()
    plugin.pre_filter(state, pod, snapshot)

    verdicts = plugin.filter(state, pod, leaving(snapshot, "q"))

    assert verdicts.ok[0] == ok


def test_a_pod_that_is_nominated_takes_the_claim() -> None:
    running = [make_pod("r").claim("once").node("n"), make_pod("b").claim("once").node("other")]
    snapshot = make_snapshot(make_node("n"), make_node("other"), pods=running, objects=CLAIMS)
    pod, state, plugin = make_pod().claim("once").obj(), CycleState(), VolumeRestrictions()
    plugin.pre_filter(state, pod, snapshot)
    comes = moves((0, slot_of(snapshot, "b"), +1))

    verdicts = plugin.filter(state, pod, leaving(snapshot, "r").changed(comes))

    assert verdicts.reasons_of(0) == [IN_USE.message]


def test_disks_come_first() -> None:
    """A row with both troubles is told of the disk."""
    running = make_pod("r").claim("once").volume(ebs_disk("a")).node("n")
    snapshot = make_snapshot(make_node("n"), pods=[running], objects=CLAIMS)
    pod = make_pod().claim("once").volume(ebs_disk("a")).obj()

    assert filter_nodes(VolumeRestrictions(), snapshot, pod) == {"n": NO_DISK}


def test_filter_needs_pre_filter() -> None:
    snapshot = make_snapshot(make_node("n"))

    with pytest.raises(NotFoundError, match='cannot read "PreFilterVolumeRestrictions" from cycleState'):
        VolumeRestrictions().filter(CycleState(), make_pod().obj(), Rows.of(snapshot))

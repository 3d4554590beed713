from extender.engine.framework import SKIP, SUCCESS, ActionType, CycleState, EventResource, Rows, Status, unresolvable
from extender.engine.plugins.volume_zone import VolumeZone
from extender.testing import filter_nodes, make_node, make_pod, make_snapshot
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from tests.kit.storage import AT_ONCE, ephemeral, make_claim, make_class, make_volume
from tests.kit.tables import cases

ELSEWHERE = unresolvable("node(s) had no available volume zone")


@cases(
    "of_volume, of_node, answer",
    ("the volume says nothing", {}, {ZONE_LABEL: "a"}, SKIP),
    ("in its zone", {ZONE_LABEL: "a"}, {ZONE_LABEL: "a"}, SUCCESS),
    ("in another zone", {ZONE_LABEL: "a"}, {ZONE_LABEL: "b"}, ELSEWHERE),
    ("in one of its zones", {ZONE_LABEL: "a__b"}, {ZONE_LABEL: "b"}, SUCCESS),
    ("blanks around zones do not count", {ZONE_LABEL: " a __b"}, {ZONE_LABEL: "a"}, SUCCESS),
    ("a list with a hole in it is ignored", {ZONE_LABEL: "a____b"}, {ZONE_LABEL: "c"}, SKIP),
    ("a node without any such label takes all volumes", {ZONE_LABEL: "a"}, {}, SUCCESS),
    ("with one of the four it needs the others, too", {ZONE_LABEL: "a"}, {REGION_LABEL: "r"}, ELSEWHERE),
    ("region and zone", {ZONE_LABEL: "a", REGION_LABEL: "r"}, {ZONE_LABEL: "a", REGION_LABEL: "s"}, ELSEWHERE),
    ("an old label means the one of today", {BETA_ZONE_LABEL: "a"}, {ZONE_LABEL: "a"}, SUCCESS),
    ("and is held to it", {BETA_REGION_LABEL: "r"}, {REGION_LABEL: "s"}, ELSEWHERE),
    ("the node's old label goes before", {BETA_ZONE_LABEL: "a"}, {BETA_ZONE_LABEL: "b", ZONE_LABEL: "a"}, ELSEWHERE),
    ("a label of today does not mean the old one", {ZONE_LABEL: "a"}, {BETA_ZONE_LABEL: "a"}, ELSEWHERE),
)
def test_zones(of_volume: dict[str, str], of_node: dict[str, str], answer: Status) -> None:
    """A bound volume can be used from nodes in its zones and regions."""
    objects: list[HasMetadata] = [make_claim("data", volume="pv"), make_volume("pv", claim="data", labels=of_volume)]
    snapshot = make_snapshot(make_node("n").label(of_node), objects=objects)

    assert filter_nodes(VolumeZone(), snapshot, make_pod().claim("data").obj()) == {"n": answer}


@cases(
    "claim, why",
    ("no name", "", "PersistentVolumeClaim had no name"),
    ("no claim", "gone", 'persistentvolumeclaim "gone" not found'),
    ("no volume", "lost", 'persistentvolume "pv-gone" not found'),
    ("neither volume nor class", "plain", "PersistentVolumeClaim had no pv name and storageClass name"),
    ("no such class", "odd", 'storageclass.storage.k8s.io "ghost" not found'),
    ("a class without a mode", "vague", 'VolumeBindingMode not set for StorageClass "vague"'),
    ("not bound, though it should be", "early", "PersistentVolume had no name"),
)
def test_unusable_claims(claim: str, why: str) -> None:
    """What cannot be looked up refuses the pod as a whole."""
    objects: list[HasMetadata] = [
        make_claim("lost", volume="pv-gone"),
        make_claim("plain", storage_class=None),
        make_claim("odd", storage_class="ghost"),
        make_claim("vague", storage_class="vague"),
        make_claim("early", storage_class="now"),
        make_class("vague", binding=None),
        make_class("now", binding=AT_ONCE),
    ]
    snapshot = make_snapshot(make_node("n"), objects=objects)

    assert filter_nodes(VolumeZone(), snapshot, make_pod().claim(claim).obj()) == {"n": unresolvable(why)}


def test_delayed_claims_are_ignored() -> None:
    snapshot = make_snapshot(make_node("n"), objects=[make_claim("data", storage_class="later"), make_class("later")])

    assert filter_nodes(VolumeZone(), snapshot, make_pod().claim("data").obj()) == {"n": SKIP}


def test_ephemeral_volumes_are_ignored() -> None:
    snapshot = make_snapshot(make_node("n"))

    assert filter_nodes(VolumeZone(), snapshot, make_pod().volume(ephemeral()).obj()) == {"n": SKIP}


@cases(
    "claim, why",
    ("zones", "data", "node(s) had no available volume zone"),
    ("what is in the way", "gone", 'persistentvolumeclaim "gone" not found'),
)
def test_filter_works_without_pre_filter(claim: str, why: str) -> None:
    """A profile may run one and not the other."""
    objects: list[HasMetadata] = [
        make_claim("data", volume="pv"),
        make_volume("pv", claim="data", labels={ZONE_LABEL: "a"}),
    ]
    snapshot = make_snapshot(make_node("n").label({ZONE_LABEL: "b"}), objects=objects)

    verdicts = VolumeZone().filter(CycleState(), make_pod().claim(claim).obj(), Rows.of(snapshot))

    assert verdicts.status_of(0) == unresolvable(why)


def test_a_node_that_gets_labels_may_help() -> None:
    events = [registered.event for registered in VolumeZone().events_to_register()]

    assert any(event.resource is EventResource.NODE and event.action & ActionType.UPDATE_NODE_LABEL for event in events)

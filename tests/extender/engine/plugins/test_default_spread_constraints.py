"""Pods without topology spread constraints of their own are spread by those of the system or of the configuration."""

from collections.abc import Sequence

from extender.engine.framework import CycleState, Rows, Snapshot
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.testing import NodeBuilder, PodBuilder, make_node, make_pod, make_snapshot, refusals, score_nodes
from extender.values.config.plugin_args import LIST_DEFAULTING, PodTopologySpreadArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import (
    LabelSelectorSpec,
    MapSelectorSpec,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from extender.values.objects.meta import (
    HasMetadata,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import TopologySpreadConstraint
from tests.kit.tables import cases

FOO = make_pod().label(foo="")


def node(name: str, zone: str = "") -> NodeBuilder:
    node = make_node(name).label({HOSTNAME_LABEL: name})
    return node.label({ZONE_LABEL: zone}) if zone else node


def cluster(nodes: Sequence[NodeBuilder], pods: str, objects: Sequence[HasMetadata]) -> Snapshot:
    """So many pods like FOO on each of the nodes: `4/3/2/1`."""
    counts = dict(zip((node.obj().name for node in nodes), map(int, pods.split("/")), strict=True))
    running = [FOO.name(f"{name}-{number}").node(name) for name, count in counts.items() for number in range(count)]
    return make_snapshot(*nodes, pods=running, objects=objects)


def owned(kind: str, api_version: str = "apps/v1", *, controller: bool = True) -> PodBuilder:
    """A pod that belongs to something called `owner`."""
    pod = FOO.obj()
    reference = OwnerReference(api_version=api_version, kind=kind, name="owner", controller=controller)
    return PodBuilder(replaced(pod, metadata=replaced(pod.metadata, owner_references=[reference])))


def service(selector: dict[str, str] | None, namespace: str = "default") -> Service:
    return Service(ObjectMeta(name="s", namespace=namespace), MapSelectorSpec(selector))


def replica_set(selector: LabelSelector | None) -> ReplicaSet:
    return ReplicaSet(OWNER, LabelSelectorSpec(selector))


SERVICE = service({"foo": ""})
OWNER = ObjectMeta(name="owner", namespace="default")
FOOS = LabelSelector(match_labels={"foo": ""})
NOBODY = LabelSelector(match_labels={"of": "nobody"})
UNUSABLE = LabelSelector(match_expressions=[LabelSelectorRequirement("foo", "Near")])

SPREAD_OUT = {"a": 44, "b": 66, "x": 77, "y": 100}
SKIPPED: dict[str, int] = {}


@cases(
    "pod, objects, scores",
    ("a service selects it", FOO, [SERVICE], SPREAD_OUT),
    ("a service selects others", FOO, [service({"foo": "other"})], SKIPPED),
    ("a service of another namespace", FOO, [service({"foo": ""}, "other")], SKIPPED),
    ("a service without a selector", FOO, [service(None)], SKIPPED),
    ("a service with an empty one", FOO, [service({})], SKIPPED),
    ("a loner", FOO, [], SKIPPED),
    ("a ReplicaSet owns it", owned("ReplicaSet"), [replica_set(FOOS)], SPREAD_OUT),
    ("a StatefulSet owns it", owned("StatefulSet"), [StatefulSet(OWNER, LabelSelectorSpec(FOOS))], SPREAD_OUT),
    (
        "a ReplicationController owns it",
        owned("ReplicationController", "v1"),
        [ReplicationController(OWNER, MapSelectorSpec({"foo": ""}))],
        SPREAD_OUT,
    ),
    ("an owner that does not control it", owned("ReplicaSet", controller=False), [replica_set(FOOS)], SKIPPED),
    ("an owner of another version", owned("ReplicaSet", "apps/v1beta1"), [replica_set(FOOS)], SKIPPED),
    ("an owner of another kind", owned("Job", "batch/v1"), [replica_set(FOOS)], SKIPPED),
    ("an owner that is not known", owned("ReplicaSet"), [], SKIPPED),
    ("an owner without a selector", owned("ReplicaSet"), [replica_set(None)], SKIPPED),
    ("an owner is left out", owned("ReplicaSet"), [replica_set(UNUSABLE), SERVICE], SPREAD_OUT),
    ("service and owner", owned("ReplicaSet"), [replica_set(NOBODY), SERVICE], dict.fromkeys("abxy", 100)),
)
def test_system_defaults(pod: PodBuilder, objects: list[HasMetadata], scores: dict[str, int]) -> None:
    """A pod is spread among the pods of its services and of the controller that owns it. An owner whose selector cannot
    be used is left out.
    """
    snapshot = cluster([*map(node, "abxy")], "4/3/2/1", objects)

    assert score_nodes(PodTopologySpread(), snapshot, pod.obj()) == scores


def test_system_defaults_spread_over_zones_and_host_names() -> None:
    """Zones 3/1 and a node without a zone, which is scored for its host name alone: raw 15, 13, 10, 8 and 4."""
    nodes = [node("a", "z1"), node("b", "z1"), node("x", "z2"), node("y", "z2"), node("l")]
    snapshot = cluster(nodes, "2/1/1/0/1", [SERVICE])

    scores = score_nodes(PodTopologySpread(), snapshot, FOO.obj())

    # A pod weighs ln(5 + 2) for five host names and ln(3 + 2) for three zones (none is one more): a 2 * 1.95 + 2 + 3 *
    # 1.61 + 4.
    assert scores == {"a": 26, "b": 40, "x": 60, "y": 73, "l": 100}


def test_an_empty_zone_is_a_missing_one() -> None:
    """The node whose zone is empty is scored for it, with the pods of the node that has none: raw 13, 10 and 6."""
    empty = make_node("e").label({HOSTNAME_LABEL: "e", ZONE_LABEL: ""})
    snapshot = cluster([empty, node("l"), node("a", "z1")], "0/5/0", [SERVICE])

    scores = score_nodes(PodTopologySpread(), snapshot, FOO.obj())

    # ln(3 + 2) a host name, ln(2 + 2) a zone: e 2 + 4 + 5 * 1.39, l 2 + 5 * 1.61, a 2 + 4.
    assert scores == {"e": 46, "l": 69, "a": 100}


def test_a_node_without_a_host_name_is_scored_for_its_zone_alone() -> None:
    nameless = make_node("x").label({ZONE_LABEL: "z2"})
    snapshot = cluster([node("a", "z1"), nameless], "1/1", [SERVICE])

    scores = score_nodes(PodTopologySpread(), snapshot, FOO.obj())

    # A pod weighs ln(2 + 2) for two host names and for two zones: a 1.39 + 2 + 1.39 + 4, x 1.39 + 4.
    assert scores == {"a": 55, "x": 100}


LISTED = PodTopologySpreadArgs(
    default_constraints=(
        TopologySpreadConstraint(1, ZONE_LABEL, "DoNotSchedule"),
        TopologySpreadConstraint(1, ZONE_LABEL, "ScheduleAnyway"),
    ),
    defaulting_type=LIST_DEFAULTING,
)


@cases(
    "pod, objects, refused",
    ("a pod of a service", FOO, [SERVICE], {"b"}),
    ("a loner", FOO, [], set()),
    ("a pod with a constraint of its own", FOO.spread(5, ZONE_LABEL, foo=""), [SERVICE], set()),
    ("a pod with a wish of its own", FOO.spread(1, ZONE_LABEL, "ScheduleAnyway"), [SERVICE], set()),
)
def test_listed_defaults(pod: PodBuilder, objects: list[HasMetadata], refused: set[str]) -> None:
    """The defaults of the configuration apply to pods without any constraint, those that have to be met as well."""
    snapshot = cluster([node("a", "z1"), node("b", "z2")], "2/3", objects)

    assert set(refusals(PodTopologySpread(LISTED), snapshot, pod.obj())) == refused


def test_listed_defaults_give_nodes_without_the_key_nothing() -> None:
    """Unlike those of the system."""
    snapshot = cluster([node("a", "z1"), node("x", "z2"), node("l")], "2/1/0", [SERVICE])

    assert score_nodes(PodTopologySpread(LISTED), snapshot, FOO.obj()) == {"a": 33, "x": 100, "l": 0}


def test_services_may_come_and_go() -> None:
    """What is remembered about services does not outlive them."""
    plugin, pod = PodTopologySpread(), FOO.obj()

    def skips(*objects: HasMetadata) -> bool:
        return plugin.pre_score(CycleState(), pod, Rows.of(cluster([node("a")], "0", objects))).is_skip

    answers = [skips(), skips(SERVICE), skips(service({"foo": "other"})), skips(SERVICE), skips()]

    assert answers == [True, False, True, False, True]

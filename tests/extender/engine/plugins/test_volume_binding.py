from collections.abc import Sequence
from functools import reduce
from typing import Any

import msgspec
import pytest

from extender.engine.framework import SKIP, SUCCESS, CycleState, NotFoundError, Rows, Status, error, unresolvable
from extender.engine.plugins.volume_binding.plugin import VolumeBinding
from extender.testing import (
    NodeBuilder,
    PodBuilder,
    filter_nodes,
    label_term,
    make_framework,
    make_node,
    make_pod,
    make_snapshot,
    name_term,
    score_nodes,
)
from extender.values.config.args_validation import validate_args
from extender.values.config.configuration import ConfigErrors
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from extender.values.objects.claims import NO_PROVISIONER, STORAGE_CLASS_ANNOTATION
from extender.values.objects.meta import HasMetadata, LabelSelector, LabelSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.quantity import QuantityError
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.kit.storage import (
    AT_ONCE,
    ephemeral,
    make_capacity,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
)
from tests.kit.tables import cases

NOT_REACHED = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

LOCAL = make_class("local", provisioner=NO_PROVISIONER)


def local_claim(name: str = "c", **options: Any) -> PersistentVolumeClaim:
    return make_claim(name, storage_class="local", **options)


def local_volume(name: str = "v", **options: Any) -> PersistentVolume:
    return make_volume(name, storage_class="local", **options)


def claiming(*claims: str) -> PodBuilder:
    return reduce(PodBuilder.claim, claims, make_pod())


def zoned(name: str, zone: str) -> NodeBuilder:
    return make_node(name).label({HOSTNAME_LABEL: name, ZONE_LABEL: zone})


def in_zone(zone: str) -> list[NodeSelectorTerm]:
    """Node affinity of a zonal volume."""
    return [label_term(ZONE_LABEL, "In", zone)]


def answers(
    pod: PodBuilder, *objects: HasMetadata, nodes: Sequence[NodeBuilder] = (zoned("a", "z1"), zoned("b", "z2"))
) -> dict[str, Status]:
    """Node -> the answer, for two nodes in two zones."""
    return filter_nodes(VolumeBinding(), make_snapshot(*nodes, objects=objects), pod.obj())


def refusals(pod: PodBuilder, *objects: HasMetadata) -> dict[str, list[str]]:
    """Node -> why it is refused, for good; nodes that pass are left out."""
    statuses = answers(pod, *objects)
    assert all(status == unresolvable(*status.reasons) for status in statuses.values() if not status.is_success)
    return {node: list(status.reasons) for node, status in statuses.items() if not status.is_success}


@cases(
    "pod, objects, answer",
    ("no claims", make_pod(), [], SKIP),
    ("no such claim", claiming("c"), [], unresolvable('persistentvolumeclaim "c" not found')),
    (
        "the claim of an ephemeral volume is still to be made",
        make_pod().volume(ephemeral()),
        [],
        unresolvable('waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'),
    ),
    (
        "or belongs to another owner",
        make_pod().volume(ephemeral()),
        [make_claim("p-scratch")],
        unresolvable("PVC default/p-scratch was not created for pod default/p (pod is not owner)"),
    ),
    (
        "a claim that lost its volume",
        claiming("c"),
        [make_claim("c", volume="pv", phase="Lost")],
        unresolvable('persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"'),
    ),
    (
        "a claim that is going away",
        claiming("c"),
        [make_claim("c", deleted=True)],
        unresolvable('persistentvolumeclaim "c" is being deleted'),
    ),
    (
        "a claim that should be bound by now",
        claiming("c"),
        [make_claim("c"), make_class(binding=AT_ONCE)],
        unresolvable("pod has unbound immediate PersistentVolumeClaims"),
    ),
    (
        "as should one without a class",
        claiming("c"),
        [make_claim("c", storage_class=None)],
        unresolvable("pod has unbound immediate PersistentVolumeClaims"),
    ),
    (
        "a class that does not say when",
        claiming("c"),
        [make_claim("c"), make_class(binding=None)],
        error('VolumeBindingMode not set for StorageClass "std"'),
    ),
    (
        "the first trouble is told",
        claiming("ok", "c", "d"),
        [make_claim("ok", volume="pv"), make_claim("d", deleted=True)],
        unresolvable('persistentvolumeclaim "c" not found'),
    ),
)
def test_claims_that_stop_a_pod(pod: PodBuilder, objects: list[HasMetadata], answer: Status) -> None:
    """Before any node is looked at."""
    assert answers(pod, *objects) == {"a": answer, "b": answer}


def test_a_claim_bound_by_hand_waits_for_the_volume_controller() -> None:
    claim = make_claim("c", volume="pv")
    by_hand = msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations={}))

    statuses = answers(claiming("c"), by_hand, make_volume("pv"), make_class())

    assert statuses["a"] == unresolvable("pod has unbound immediate PersistentVolumeClaims")


@cases(
    "volumes, refused",
    ("from everywhere", [make_volume("pv", claim="c")], {}),
    ("from its zone", [make_volume("pv", claim="c", affinity=in_zone("z1"))], {"b": [NOT_REACHED]}),
    ("no terms reach no node", [make_volume("pv", claim="c", affinity=[])], {"a": [NOT_REACHED], "b": [NOT_REACHED]}),
    ("fields are not looked at, as upstream", [make_volume("pv", claim="c", affinity=[name_term("In", "x")])], {}),
    ("there is no such volume", [], {"a": [NO_VOLUME], "b": [NO_VOLUME]}),
)
def test_bound_claims(volumes: list[HasMetadata], refused: dict[str, list[str]]) -> None:
    """A bound volume must be reached from the node."""
    assert refusals(claiming("c"), make_claim("c", volume="pv"), *volumes) == refused


@cases(
    "order, refused",
    ("a node that the first excludes is not asked further", ["zonal", "lost"], {"a": [NO_VOLUME], "b": [NOT_REACHED]}),
    ("nor is any after a missing volume", ["lost", "zonal"], {"a": [NO_VOLUME], "b": [NO_VOLUME]}),
)
def test_first_refusal_of_several_bound_claims_is_reported(order: list[str], refused: dict[str, list[str]]) -> None:
    objects: list[HasMetadata] = [
        make_claim("zonal", volume="pv"),
        make_claim("lost", volume="gone"),
        make_volume("pv", claim="zonal", affinity=in_zone("z1")),
    ]

    assert refusals(claiming(*order), *objects) == refused


@cases(
    "migrated, refused",
    ("as an in-tree one it is reached from here", [], {}),
    ("as a CSI one it asks for the driver's label", ["kubernetes.io/aws-ebs"], {"a": [NOT_REACHED]}),
)
def test_in_tree_volumes_on_migrated_nodes(migrated: list[str], refused: dict[str, list[str]]) -> None:
    """A node that serves EBS volumes through the CSI driver reaches them where that driver says."""
    volume = make_volume("pv", claim="c", ebs="vol-1", affinity=in_zone("z1"))

    statuses = answers(
        claiming("c"),
        make_claim("c", volume="pv"),
        volume,
        make_csi_node("a", migrated=migrated),
        nodes=[zoned("a", "z1")],
    )

    assert {node: list(status.reasons) for node, status in statuses.items() if not status.is_success} == refused


def test_an_in_tree_volume_that_cannot_be_translated_is_an_error() -> None:
    """On the nodes that would have it translated."""
    volume = make_volume("pv", claim="c", ebs="aws://z1/no-volume")
    nodes = make_csi_node("a", migrated=["kubernetes.io/aws-ebs"])

    statuses = answers(claiming("c"), make_claim("c", volume="pv"), volume, nodes)

    why = "could not translate pv: failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://z1/no-volume)"
    assert statuses == {"a": error(why), "b": SUCCESS}


@cases(
    "claim, volumes, refused",
    ("nothing there", local_claim(), [], ["a", "b"]),
    ("one for all", local_claim(), [local_volume()], []),
    ("one here", local_claim(), [local_volume(affinity=in_zone("z1"))], ["b"]),
    ("one not here", local_claim(), [local_volume(affinity=[label_term(ZONE_LABEL, "NotIn", "z1")])], ["a"]),
    ("another class", local_claim(), [make_volume("v", storage_class="std")], ["a", "b"]),
    ("too small", local_claim(size="2Gi"), [local_volume()], ["a", "b"]),
    ("just large enough", local_claim(), [local_volume(size="1024Mi")], []),
    ("any size will do", local_claim(size=""), [local_volume()], []),
    ("another access mode", local_claim(access="ReadWriteMany"), [local_volume()], ["a", "b"]),
    ("not available", local_claim(), [local_volume(phase="Released")], ["a", "b"]),
    ("another's", local_claim(), [local_volume(claim="other")], ["a", "b"]),
    ("one that is meant for it", local_claim(), [local_volume(claim="c"), local_volume("w")], []),
    (
        "which excludes all others, even where it is out of reach",
        local_claim(),
        [local_volume(claim="c", affinity=in_zone("z1")), local_volume("w")],
        ["b"],
    ),
    (
        "the claim selects by labels",
        local_claim(selector=LabelSelector(match_labels={"disk": "ssd"})),
        [local_volume(affinity=in_zone("z1"), labels={"disk": "ssd"}), local_volume("w")],
        ["b"],
    ),
)
def test_delayed_claims_get_existing_volumes(
    claim: HasMetadata, volumes: list[HasMetadata], refused: list[str]
) -> None:
    """Of a class without a provisioner."""
    assert refusals(claiming("c"), claim, LOCAL, *volumes) == {node: [NOTHING_TO_BIND] for node in refused}


def changed(volume: Any, **spec: object) -> Any:
    """The object with other fields in its spec."""
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, **spec))


@cases(
    "claim, volume",
    ("a block device, a filesystem", {"volume_mode": "Block"}, {}),
    ("the other way round", {}, {"volume_mode": "Block"}),
    ("other attributes", {"volume_attributes_class_name": "gold"}, {}),
)
def test_volumes_of_another_kind_do_not_match(claim: dict[str, str], volume: dict[str, str]) -> None:
    objects: list[HasMetadata] = [changed(local_claim(), **claim), changed(local_volume(), **volume)]

    assert refusals(claiming("c"), LOCAL, *objects) == {"a": [NOTHING_TO_BIND], "b": [NOTHING_TO_BIND]}


def test_the_old_class_annotation_goes_before_the_field() -> None:
    volume = make_volume("v", storage_class="std")
    annotated = msgspec.structs.replace(
        volume, metadata=msgspec.structs.replace(volume.metadata, annotations={STORAGE_CLASS_ANNOTATION: "local"})
    )

    assert refusals(claiming("c"), LOCAL, local_claim(), annotated) == {}


@cases(
    "volumes, refused",
    ("each its own", ["1Gi", "3Gi"], []),
    ("whatever their order", ["3Gi", "1Gi"], []),
    ("one is not enough for two", ["3Gi"], ["a", "b"]),
    ("nor are two small ones", ["1Gi", "1Gi"], ["a", "b"]),
    ("one is left", ["1Gi", "2Gi", "3Gi"], []),
)
def test_no_volume_is_bound_twice(volumes: list[str], refused: list[str]) -> None:
    """Two claims of a pod, one of 1Gi and one of 2Gi."""
    objects: list[HasMetadata] = [local_volume(f"v{number}", size=size) for number, size in enumerate(volumes)]
    claims = [local_claim("large", size="2Gi"), local_claim("small")]

    refused_nodes = refusals(claiming("large", "small"), LOCAL, *claims, *objects)

    assert refused_nodes == {node: [NOTHING_TO_BIND] for node in refused}


@cases(
    "volumes, nodes_left",
    ("three zonal ones", [("v", "z1", "1Gi"), ("w", "z1", "1Gi"), ("x", "z1", "1Gi")], ["a"]),
    ("two are not enough for three", [("v", "z1", "1Gi"), ("w", "", "1Gi"), ("x", "z2", "1Gi")], []),
    ("zonal ones and others", [("v", "z1", "1Gi"), ("w", "", "1Gi"), ("x", "z2", "1Gi"), ("y", "", "9Gi")], ["a", "b"]),
    ("of all sizes", [("v", "z1", "9Gi"), ("w", "", "1Gi"), ("x", "z1", "2Gi")], ["a"]),
)
def test_three_claims_of_one_class(volumes: list[tuple[str, str, str]], nodes_left: list[str]) -> None:
    """Each takes the smallest that the others left."""
    objects: list[HasMetadata] = [
        local_volume(name, size=size, affinity=in_zone(zone) if zone else None) for name, zone, size in volumes
    ]
    claims = [local_claim(name) for name in ("c", "d", "e")]

    refused_nodes = refusals(claiming("c", "d", "e"), LOCAL, *claims, *objects)

    assert [node for node in ("a", "b") if node not in refused_nodes] == nodes_left


@cases(
    "objects, why",
    ("of the claim", [local_claim(size="much"), LOCAL], 'persistentvolumeclaim "c": '),
    ("of a volume", [local_claim(), LOCAL, local_volume(size="much")], 'persistentvolume "v": '),
    (
        "of a capacity",
        [make_claim("c"), make_class(), make_csi_driver(), make_capacity("x", "much", LabelSelector())],
        'csistoragecapacity "x": ',
    ),
)
def test_sizes_that_cannot_be_read(objects: list[HasMetadata], why: str) -> None:
    """The message names the object."""
    with pytest.raises(QuantityError, match=f"^{why}.*quantities must match"):
        answers(claiming("c"), *objects)


def test_a_selector_that_cannot_be_used_is_an_error() -> None:
    selector = LabelSelector(match_expressions=[LabelSelectorRequirement(key="disk", operator="Like", values=["s"])])

    statuses = answers(claiming("c"), LOCAL, local_claim(selector=selector))

    why = 'error creating internal label selector for claim: default/c: "Like" is not a valid label selector operator'
    assert statuses == {"a": error(why), "b": error(why)}


@cases(
    "storage_class, refused",
    ("anywhere", make_class(), []),
    ("in its zones", make_class(topology={ZONE_LABEL: ["z1", "z3"]}), ["b"]),
    ("all labels", make_class(topology={ZONE_LABEL: ["z2"], "rack": ["r"]}), ["a", "b"]),
    ("a term that says nothing", make_class(topology={}), ["a", "b"]),
    ("without a provisioner", make_class(provisioner=""), ["a", "b"]),
)
def test_delayed_claims_get_volumes_provisioned_where_the_class_allows_it(
    storage_class: HasMetadata, refused: list[str]
) -> None:
    assert refusals(claiming("c"), make_claim("c"), storage_class) == {node: [NOTHING_TO_BIND] for node in refused}


def host(*names: str) -> LabelSelector:
    """The topology of storage that these nodes have."""
    return LabelSelector(
        match_expressions=[LabelSelectorRequirement(key=HOSTNAME_LABEL, operator="In", values=list(names))]
    )


@cases(
    "capacities, refused",
    ("nothing published", [], ["a", "b"]),
    ("room here", [make_capacity("x", "1Gi", host("a"))], ["b"]),
    ("room here and there", [make_capacity("x", "1Gi", host("a")), make_capacity("y", "2Gi", host("b"))], []),
    ("too little", [make_capacity("x", "1023Mi", host("a", "b"))], ["a", "b"]),
    ("room, but not for one of that size", [make_capacity("x", "9Gi", host("a"), largest="1Mi")], ["a", "b"]),
    ("the largest size is what counts", [make_capacity("x", "1Mi", host("a"), largest="1Gi")], ["b"]),
    ("of no node", [make_capacity("x", "1Gi", None)], ["a", "b"]),
    ("of all nodes", [make_capacity("x", "1Gi", LabelSelector())], []),
    ("of another class", [make_capacity("x", "1Gi", host("a", "b"), storage_class="other")], ["a", "b"]),
    ("of a selector that is none", [make_capacity("x", "1Gi", LabelSelector(match_labels={"": "x"}))], ["a", "b"]),
)
def test_storage_capacity(capacities: list[HasMetadata], refused: list[str]) -> None:
    """A driver that publishes how much room it has must have enough."""
    refused_nodes = refusals(claiming("c"), make_claim("c"), make_class(), make_csi_driver(), *capacities)

    assert refused_nodes == {node: [NO_ROOM] for node in refused}


@cases(
    "claim, driver",
    ("the driver publishes none", make_claim("c"), make_csi_driver(publishes_capacity=False)),
    ("it is no CSI driver", make_claim("c"), make_csi_driver("other")),
    ("the claim asks for none", make_claim("c", size=""), make_csi_driver()),
)
def test_storage_capacity_is_ignored_when_not_published_or_not_requested(
    claim: HasMetadata, driver: HasMetadata
) -> None:
    assert refusals(claiming("c"), claim, make_class(), driver) == {}


@cases("selected, refused", ("here", "a", ["b"]), ("gone", "x", ["a", "b"]))
def test_a_volume_being_provisioned_restricts_the_pod_to_its_node(selected: str, refused: list[str]) -> None:
    """It is not matched with volumes that exist any more."""
    objects: list[HasMetadata] = [make_claim("c", selected_node=selected), make_class(), make_volume("v")]

    assert refusals(claiming("c"), *objects) == {node: [NOTHING_TO_BIND] for node in refused}


def test_all_reasons_of_a_node_are_reported() -> None:
    """Bound claims and those that wait are looked at, whatever the others say."""
    objects: list[HasMetadata] = [
        make_claim("bound", volume="pv"),
        make_volume("pv", claim="bound", affinity=in_zone("z2")),
        local_claim("waits"),
    ]

    refused_nodes = refusals(claiming("bound", "waits"), LOCAL, *objects)

    assert refused_nodes == {"a": [NOT_REACHED, NOTHING_TO_BIND], "b": [NOTHING_TO_BIND]}


def test_volumes_are_not_scored() -> None:
    """That needs a feature gate that is off."""
    plugin, snapshot = VolumeBinding(), make_snapshot(zoned("a", "z1"))

    assert score_nodes(plugin, snapshot, make_pod().obj()) == {}
    assert plugin.score(CycleState(), make_pod().obj(), Rows.of(snapshot)).tolist() == [0]


SCORING = {"StorageCapacityScoring": True}
FULLEST_FIRST = VolumeBindingArgs(shape=(UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)))
LOCAL_CLAIM = [
    LOCAL,
    local_claim(),
    local_volume("two", size="2Gi", affinity=in_zone("z1")),
    local_volume("four", size="4Gi", affinity=in_zone("z2")),
]
UNPUBLISHED = [make_claim("c"), make_class(), make_csi_driver(publishes_capacity=False)]
PROVISIONED = [make_claim("c"), make_class(), make_csi_driver()]
CAPACITIES = [make_capacity("x", "2Gi", host("a")), make_capacity("y", "10Gi", host("b"))]
OTHER_CLASS = [make_class("other", provisioner=NO_PROVISIONER), make_volume("all", storage_class="other", size="1Gi")]


@cases(
    "claims, objects, args, expected",
    ("no claims", [], [], None, [0, 0]),
    ("volumes that exist", ["c"], LOCAL_CLAIM, None, [50, 75]),
    ("a shape that prefers little room", ["c"], LOCAL_CLAIM, FULLEST_FIRST, [50, 25]),
    ("capacity for new ones", ["c"], [*PROVISIONED, *CAPACITIES], None, [50, 90]),
    ("claims of a class share one capacity", ["c", "d"], [*PROVISIONED, *CAPACITIES, make_claim("d")], None, [0, 80]),
    (
        "less room than is asked for, though volumes may be as large",
        ["c"],
        [*PROVISIONED, make_capacity("x", "1Mi", LabelSelector(), largest="1Gi")],
        None,
        [0, 0],
    ),
    (
        "beside volumes that exist, new ones do not count",
        ["c", "d"],
        [*LOCAL_CLAIM, make_claim("d"), *PROVISIONED[1:], make_capacity("x", "9Gi", LabelSelector())],
        None,
        [50, 75],
    ),
    (
        "classes are averaged, and rounded",
        ["c", "d"],
        [*LOCAL_CLAIM, make_claim("d", storage_class="other"), *OTHER_CLASS],
        None,
        [25, 38],
    ),
    ("nothing is published", ["c"], UNPUBLISHED, None, [0, 0]),
)
def test_nodes_are_scored_by_their_storage_while_the_gate_is_on(
    claims: list[str], objects: list[HasMetadata], args: VolumeBindingArgs | None, expected: list[int]
) -> None:
    """TestVolumeBinding, with StorageCapacityScoring: by default the more storage is left, the better."""
    pod, rows = claiming(*claims).obj(), Rows.of(make_snapshot(zoned("a", "z1"), zoned("b", "z2"), objects=objects))
    [plugin] = make_framework(lambda _, handle: VolumeBinding(args, handle), features=SCORING).plugins.pre_filter
    assert isinstance(plugin, VolumeBinding)
    state = CycleState()

    if plugin.pre_filter(state, pod, rows.snapshot).status.is_success:
        assert plugin.filter(state, pod, rows).ok.all()

    assert plugin.pre_score(state, pod, rows) == SUCCESS
    assert plugin.score(state, pod, rows).tolist() == expected


def test_a_shape_is_valid_only_while_storage_is_scored() -> None:
    """ValidateVolumeBindingArgs: a shape is checked like any other."""
    assert validate_args("", FULLEST_FIRST, FeatureGates.of(SCORING)) == []
    descending = VolumeBindingArgs(shape=(UtilizationShapePoint(100, 10), UtilizationShapePoint(0, 0)))
    [unsorted] = validate_args("", descending, FeatureGates.of(SCORING))
    assert "values must be sorted in increasing order" in str(unsorted)
    [unexpected] = validate_args("", FULLEST_FIRST)
    assert "turn on the feature gate StorageCapacityScoring" in str(unexpected)


def test_filter_needs_pre_filter() -> None:
    with pytest.raises(NotFoundError, match="not found"):
        VolumeBinding().filter(CycleState(), make_pod().obj(), Rows.of(make_snapshot(make_node("n"))))


def test_arguments_are_checked() -> None:
    with pytest.raises(ConfigErrors, match="bindTimeoutSeconds"):
        VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=-1))

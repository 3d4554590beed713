"""What is said of the volumes of a pod that no node takes: where they are, whom they are promised to, and how many."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from extender.answers.explain.explanation import explain
from extender.answers.types import Explanation
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS
from extender.engine.runtime.registry import Registry
from extender.testing import NodeBuilder, PodBuilder, label_term, make_node, make_pod, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.objects.claims import NO_PROVISIONER
from extender.values.objects.meta import HasMetadata, LabelSelector
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import Pod, Volume
from tests.kit.storage import (
    LATER,
    ebs_disk,
    gce_disk,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
    rbd_image,
)
from tests.kit.tables import cases

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]
NODES = [make_node(name).capacity(cpu=4).label({ZONE_LABEL: name.upper(), HOSTNAME_LABEL: name}) for name in ("a", "b")]


def bound(claim: str, volume: str, key: str, *values: str) -> list[HasMetadata]:
    return [make_claim(claim, volume=volume), make_volume(volume, claim=claim, affinity=[label_term(key, "In", *values)])]  # fmt: skip


def explained(
    pod: Pod, *objects: HasMetadata, nodes: Sequence[NodeBuilder] = NODES, pods: Sequence[PodBuilder] = ()
) -> Explanation:
    snapshot = make_snapshot(*nodes, pods=pods, objects=[make_class(), *objects])
    return asyncio.run(explain(PROFILE, snapshot, pod, NO_NOMINATIONS))


ONE = make_pod("p").claim("c1").obj()


@cases(
    "objects, text",
    (
        "in a zone without nodes",
        bound("c1", "v1", ZONE_LABEL, "C"),
        f"the volume v1 (claim c1) can be used where {ZONE_LABEL} In (C): no node matches",
    ),
    (
        "on a node that is gone",
        bound("c1", "v1", HOSTNAME_LABEL, "lost"),
        "the volume v1 (claim c1) is on lost, which does not exist",
    ),
    (
        "on either of two that are gone",
        bound("c1", "v1", HOSTNAME_LABEL, "x", "y"),
        "the volume v1 (claim c1) is on x or y, which does not exist",
    ),
    (
        "promised to a node that is gone",
        [make_claim("c1", selected_node="lost")],
        "the claim c1 is reserved for the node lost, which does not exist; the pod fits on no other",
    ),
    (
        "made by hand",
        [
            make_claim("c1", storage_class="local"),
            make_class("local", provisioner=NO_PROVISIONER),
            make_volume("v", claim="other", storage_class="local"),
        ],
        "0 of 1 volume of the class local free for the claim c1",
    ),
)
def test_place_of_a_volume_is_said(objects: list[HasMetadata], text: str) -> None:
    facts = explained(ONE, *objects).facts

    assert [(fact.plugin, fact.text) for fact in facts] == [("VolumeBinding", text)]


def test_volumes_in_two_zones_are_said_to_have_no_node_in_common() -> None:
    pod = make_pod("p").claim("c1").claim("c2").obj()

    facts = explained(pod, *bound("c1", "v1", ZONE_LABEL, "A"), *bound("c2", "v2", ZONE_LABEL, "B")).facts

    assert [fact.text for fact in facts] == [
        f"the volume v1 (claim c1) can be used only on a, where {ZONE_LABEL} In (A)",
        f"the volume v2 (claim c2) can be used only on b, where {ZONE_LABEL} In (B)",
        "no node can use all of the volumes v1 and v2",
    ]


def test_zone_of_a_volume_by_its_labels_is_said() -> None:
    volume = make_volume("v1", claim="c1", labels={ZONE_LABEL: "C"})

    facts = explained(ONE, make_claim("c1", volume="v1"), volume).facts

    assert [fact.text for fact in facts] == [f"the volume v1 (claim c1) is where {ZONE_LABEL} in (C)"]


def test_claim_of_a_lost_node_is_not_said_to_wait_for_one() -> None:
    assert explained(ONE, make_claim("c1", selected_node="lost")).notes == (
        "the claim c1 of the class std is Pending: its volume will be created by csi.example.com for the node lost",
    )


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([make_claim("c1", selected_node="lost")], "claim c1"),
        ([make_claim("c1", selected_node="lost"), make_claim("c2", selected_node="gone")], "claims c1 and c2"),
        ([make_claim("c1", selected_node="lost"), make_claim("c2")], "claim c1"),
    ],
)
def test_annotation_that_names_a_lost_node_is_to_be_deleted(claims: list[HasMetadata], text: str) -> None:
    pod = make_pod("p")
    for claim in claims:
        pod = pod.claim(claim.metadata.name)

    first = explained(pod.obj(), *claims).fixes[0]

    assert first.text == f"delete the annotation volume.kubernetes.io/selected-node of the {text}"
    assert (first.opens, first.patch, first.objects) == (2, {}, ())


def test_annotation_that_names_a_node_stays() -> None:
    fixes = explained(
        ONE, make_claim("c1", selected_node="a"), nodes=[NODES[0].unschedulable(), NODES[1]]
    ).fixes  # fmt: skip

    assert not [fix for fix in fixes if "annotation" in fix.text]


DRIVER = "csi.example.com"


@pytest.mark.parametrize(
    ("limit", "attached", "text"),
    [
        (1, 1, "1 of 1 volume of csi.example.com attached; the pod brings 1 more"),
        (0, 0, "0 of 0 volumes of csi.example.com attached; the pod brings 1 more"),
        (2, 3, "3 of 2 volumes of csi.example.com attached; the pod brings 1 more"),
    ],
)
def test_attached_volumes_are_counted_against_the_limit(limit: int, attached: int, text: str) -> None:
    volumes = [make_volume(f"v{number}", csi=DRIVER) for number in range(attached)]
    objects = [
        make_csi_node("a", {DRIVER: limit}),
        *volumes,
        *(make_attachment(volume.metadata.name, "a") for volume in volumes),
    ]

    explanation = explained(
        ONE, make_claim("c1", volume="own"), make_volume("own", claim="c1", csi=DRIVER), *objects, nodes=NODES[:1]
    )

    assert [(fact.plugin, fact.text, fact.nodes) for fact in explanation.facts] == [("NodeVolumeLimits", text, ("a",))]


def test_user_of_a_claim_that_only_one_pod_may_use_is_named() -> None:
    claim = make_claim("c1", volume="v1", access="ReadWriteOncePod")
    user, stranger = (make_pod("holder").namespace(namespace).claim("c1").node("a") for namespace in ("default", "x"))

    explanation = explained(ONE, claim, make_volume("v1", claim="c1"), pods=[user, stranger])

    assert "the claim c1 (ReadWriteOncePod) is used by default/holder" in [fact.text for fact in explanation.facts]
    assert not any("x/holder" in fact.text for fact in explanation.facts)


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        (ebs_disk("vol-1"), "the disk ebs vol-1 is attached for default/holder"),
        (gce_disk("d", read_only=False), "the disk gce d is attached for default/holder"),
        (rbd_image("i", "m1"), "the disk rbd rbd i m1 is attached for default/holder"),
    ],
)
def test_pod_that_has_the_disk_that_a_pod_wants_is_named(volume: Volume, text: str) -> None:
    holder = make_pod("holder").volume(volume).node("a")

    explanation = explained(make_pod("p").volume(volume).obj(), nodes=NODES[:1], pods=[holder])

    assert [(fact.text, fact.nodes) for fact in explanation.facts] == [(text, ("a",))]


@pytest.mark.parametrize(
    ("capacities", "text"),
    [
        ([], "0 of 2 nodes with room for the 3Gi of the claim c1 in the class later; no capacity is published"),
        (
            ["1Gi"],
            "0 of 2 nodes with room for the 3Gi of the claim c1 in the class later; the most that is published is 1Gi",
        ),
        (
            ["1Gi", "2Gi"],
            "0 of 2 nodes with room for the 3Gi of the claim c1 in the class later; the most that is published is 2Gi",
        ),
    ],
)
def test_room_for_a_volume_to_be_made_is_told(capacities: list[str], text: str) -> None:
    published = [
        make_capacity(f"room{number}", size, LabelSelector(), storage_class="later")
        for number, size in enumerate(capacities)
    ]
    claim, driver = make_claim("c1", storage_class="later", size="3Gi"), make_csi_driver(publishes_capacity=True)

    explanation = explained(ONE, claim, make_class("later", binding=LATER), driver, *published)

    assert [fact.text for fact in explanation.facts] == [text]

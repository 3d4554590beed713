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
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import Pod
from tests.kit.storage import make_attachment, make_claim, make_class, make_csi_node, make_volume

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


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param(
            bound("c1", "v1", ZONE_LABEL, "C"),
            f"the volume v1 (claim c1) can be used where {ZONE_LABEL} In (C): no node is there, and it takes one",
            id="in a zone without nodes",
        ),
        pytest.param(
            bound("c1", "v1", HOSTNAME_LABEL, "lost"),
            "the volume v1 (claim c1) lives on lost, which does not exist",
            id="on a node that is gone",
        ),
        pytest.param(
            bound("c1", "v1", HOSTNAME_LABEL, "x", "y"),
            "the volume v1 (claim c1) lives on x or y, which does not exist",
            id="on either of two that are gone",
        ),
        pytest.param(
            [make_claim("c1", selected_node="lost")],
            "the claim c1 is promised to the node lost, which does not exist; no other takes it",
            id="promised to a node that is gone",
        ),
        pytest.param(
            [
                make_claim("c1", storage_class="local"),
                make_class("local", provisioner=NO_PROVISIONER),
                make_volume("v", claim="other", storage_class="local"),
            ],
            "0 of 1 volume of the class local free for the claim c1",
            id="made by hand",
        ),
    ],
)
def test_place_of_a_volume_is_said(objects: list[HasMetadata], text: str) -> None:
    told = explained(ONE, *objects).facts

    assert [(fact.plugin, fact.text) for fact in told] == [("VolumeBinding", text)]


def test_volumes_in_two_zones_are_said_to_have_no_node_in_common() -> None:
    pod = make_pod("p").claim("c1").claim("c2").obj()

    told = explained(pod, *bound("c1", "v1", ZONE_LABEL, "A"), *bound("c2", "v2", ZONE_LABEL, "B")).facts

    assert [fact.text for fact in told] == [
        f"the volume v1 (claim c1) can be used on a alone, where {ZONE_LABEL} In (A)",
        f"the volume v2 (claim c2) can be used on b alone, where {ZONE_LABEL} In (B)",
        "no node can use all of the volumes v1 and v2",
    ]


def test_zone_of_a_volume_by_its_labels_is_said() -> None:
    volume = make_volume("v1", claim="c1", labels={ZONE_LABEL: "C"})

    told = explained(ONE, make_claim("c1", volume="v1"), volume).facts

    assert [fact.text for fact in told] == [f"the volume v1 (claim c1) is where {ZONE_LABEL} in (C)"]


def test_claim_of_a_lost_node_is_not_said_to_wait_for_one() -> None:
    assert explained(ONE, make_claim("c1", selected_node="lost")).notes == (
        "the claim c1 of the class std is Pending: its volume is to be made, by csi.example.com, for the node lost",
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

    assert (first.text, first.opens, first.patch, first.objects) == (
        f"delete the annotation volume.kubernetes.io/selected-node of the {text}",
        2,
        {},
        (),
    )


def test_annotation_that_names_a_node_stays() -> None:
    found = explained(
        ONE, make_claim("c1", selected_node="a"), nodes=[NODES[0].unschedulable(), NODES[1]]
    ).fixes  # fmt: skip

    assert not [fix for fix in found if "annotation" in fix.text]


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
    others = [make_volume(f"v{number}", csi=DRIVER) for number in range(attached)]
    objects = [
        make_csi_node("a", {DRIVER: limit}),
        *others,
        *(make_attachment(each.metadata.name, "a") for each in others),
    ]

    told = explained(
        ONE, make_claim("c1", volume="own"), make_volume("own", claim="c1", csi=DRIVER), *objects, nodes=NODES[:1]
    )

    assert [(fact.plugin, fact.text, fact.nodes) for fact in told.facts] == [("NodeVolumeLimits", text, ("a",))]

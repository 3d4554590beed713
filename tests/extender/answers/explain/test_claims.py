"""What is said of the claims of a pod that fits nowhere, or that waits."""

import asyncio
import random

import pytest

from extender.answers.explain.explanation import explain
from extender.answers.explain.queue_places import with_claims, without_a_queue
from extender.answers.pending import pending
from extender.answers.phrases import for_people
from extender.answers.redaction import redacted
from extender.answers.types import Explanation
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS
from extender.engine.runtime.registry import Registry
from extender.testing import make_node, make_pod, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.objects.claims import NO_PROVISIONER
from extender.values.objects.decoding import convert
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit import devices
from tests.kit.devices import everything, exactly, first_of, make_device_class
from tests.kit.storage import ephemeral, make_claim, make_class

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]
LATER = "WaitForFirstConsumer"


def explained(pod: Pod, *objects: HasMetadata) -> Explanation:
    snapshot = make_snapshot(make_node("a").capacity(cpu=4), objects=objects)
    return asyncio.run(explain(PROFILE, snapshot, pod, NO_NOMINATIONS))


@pytest.mark.parametrize(
    ("objects", "note"),
    [
        ([], "does not exist"),
        (
            [make_claim("data"), make_class("std", provisioner="csi.example", binding="Immediate")],
            "of the class std is Pending: its volume is created by csi.example before the pod is scheduled (Immediate)",
        ),
        ([make_claim("data", storage_class="gone")], "of the class gone is Pending: its class does not exist"),
        ([make_claim("data", storage_class="")], "is Pending: without a class its volume is created by hand"),
        (
            [make_claim("data"), make_class("std", provisioner=NO_PROVISIONER, binding=LATER)],
            f"of the class std is Pending: its volume is created by hand once a node is chosen ({LATER})",
        ),
        (
            [make_claim("data", volume="v", phase="Lost"), make_class("std")],
            "of the class std is Lost: its volume v does not exist",
        ),
    ],
)
def test_claim_that_keeps_a_pod_waiting_is_said_to_wait_for_its_class(objects: list[HasMetadata], note: str) -> None:
    explanation = explained(make_pod("p").claim("data").obj(), *objects)

    assert explanation.notes == (f"the claim data {note}",)


def test_volume_that_a_generic_ephemeral_one_waits_for_is_named() -> None:
    explanation = explained(make_pod("p").volume(ephemeral("scratch")).obj())

    assert explanation.notes == ("the claim p-scratch does not exist yet: it will be created for the volume scratch",)


def with_resource_claim(name: str | None = None, template: str | None = None, claim: str | None = None) -> Pod:
    source = {"resourceClaimName": name} if name else {"resourceClaimTemplateName": template}
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]} if claim else {}
    spec = {"resourceClaims": [{"name": "gpu", **source}]}
    return convert(Pod, {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": spec, "status": status})


ANY = make_device_class("any")


@pytest.mark.parametrize(
    ("pod", "objects", "note"),
    [
        (with_resource_claim("c"), [], "c does not exist"),
        (with_resource_claim(template="t"), [], "gpu has not been created yet from the template t"),
        (with_resource_claim(template="t", claim="p-gpu-x"), [], "p-gpu-x does not exist"),
        (with_resource_claim("c"), [devices.make_claim("c", exactly(2)), ANY], "c is pending: 2 of the class any"),
        (
            with_resource_claim("c"),
            [devices.make_claim("c", everything("one"), first_of(exactly(2, "x"), exactly(1, "y"), name="two")), ANY],
            "c is pending: all of the class any, 2 of the class any or 1 of the class any",
        ),
        (
            with_resource_claim("c"),
            [devices.make_claim("c", exactly(1, device_class="gone"))],
            "c is pending: 1 of the class gone, which does not exist",
        ),
    ],
)
def test_resource_claim_is_said_to_ask_for_devices_of_a_class(pod: Pod, objects: list[HasMetadata], note: str) -> None:
    assert explained(pod, *objects).notes == (f"the resource claim {note}",)


def test_claims_of_a_pod_that_lacks_something_else_are_not_mentioned() -> None:
    pod = make_pod("p").req(cpu=9).claim("data").obj()

    explanation = explained(pod, make_claim("data"), make_class("std", provisioner="csi.example", binding=LATER))

    assert (for_people(explanation.message), explanation.notes) == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful "
        "for scheduling.",
        (),
    )


UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"


def waiting(name: str, message: str) -> Pod:
    refused = {"type": "PodScheduled", "status": "False", "message": message}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
    manifest = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"volumes": volumes},
        "status": {"conditions": [refused]},
    }
    return convert(Pod, manifest)


def test_pending_pods_are_grouped_with_what_their_claims_wait_for() -> None:
    cluster = Cluster()
    for obj in (
        make_class("std", provisioner="csi.example", binding="Immediate"),
        make_claim("data-a"),
        make_claim("data-b"),
    ):
        cluster.changed(None, obj)
    for name, message in (("a", UNBOUND), ("b", UNBOUND), ("c", "0/1 nodes are available: 1 Insufficient cpu.")):
        cluster.changed(None, waiting(name, message))

    queue = with_claims(without_a_queue(cluster.pending.values()), cluster)
    unbound, cpu = pending(queue).reasons

    assert (unbound.reason, unbound.pods) == ("pod has unbound immediate PersistentVolumeClaims", 2)
    assert unbound.claims == tuple(
        f"the claim data-{name} of the class std is Pending: its volume is created by csi.example before the pod is "
        "scheduled (Immediate)"
        for name in "ab"
    )
    assert (cpu.reason, cpu.claims) == ("Insufficient cpu", ())
    assert pending(redacted(queue, ())).reasons[0].claims == ()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate", "0/1 nodes are available: 1 Insufficient cpu."),
        ("0/1 nodes are available: 1 x. still not schedulable, preemption: 0/1 y.", "0/1 nodes are available: 1 x. preemption: 0/1 y."),
        ("0/1 nodes are available: 1 x. preemption: 0/1 y., no new claims to deallocate", "0/1 nodes are available: 1 x. preemption: 0/1 y."),
        (UNBOUND, UNBOUND.removesuffix(" not found")),
        ('0/1 nodes are available: claim "x" not found.', '0/1 nodes are available: claim "x" not found.'),
        ("0/1 nodes are available: 1 no new claims to deallocate here.", "0/1 nodes are available: 1 no new claims to deallocate here."),
        ("not found", "not found"),
        ("", ""),
    ],
)  # fmt: skip
def test_internal_words_of_a_message_are_left_out(message: str, words: str) -> None:
    assert for_people(message) == words

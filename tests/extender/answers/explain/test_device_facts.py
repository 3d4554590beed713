"""What is said of the devices that nodes have, to a pod whose claims get none, and which changes of claims help."""

import asyncio
import random
from typing import Any

import pytest

from extender.answers.explain.explanation import explain
from extender.answers.redaction import HIDDEN_POD, redacted
from extender.answers.types import Explanation
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS
from extender.engine.runtime.registry import Registry
from extender.testing import make_node, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import convert
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.devices import (
    allocation_of,
    exactly,
    label_selector,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
    selecting,
)
from tests.kit.tables import cases

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]
ANY, A100 = make_device_class("any"), "device.attributes['gpu.example.com'].model == 'a100'"
H100 = A100.replace("a100", "h100")
BROKEN = {"key": "broken", "effect": "NoSchedule"}


def pod(**requests: int) -> Pod:
    claims = [{"name": "x", "resourceClaimName": "c"}] if not requests else []
    amounts = {"example.com/gpu": str(requests["gpu"])} if requests else {}
    containers = [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]
    spec = {"containers": containers, "resourceClaims": claims}
    return convert(Pod, {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": spec})


def explained(*objects: HasMetadata, asking: Pod | None = None, nodes: str = "n") -> Explanation:
    snapshot = make_snapshot(*(make_node(name).capacity(cpu=4) for name in nodes), objects=objects)
    return asyncio.run(explain(PROFILE, snapshot, asking or pod(), NO_NOMINATIONS))


def held_by(user: str, namespace: str = "default") -> HasMetadata:
    users = [{"resource": "pods", "name": user, "uid": user}]
    where = {"namespace": namespace, "name": "held", "uid": "held"}
    return make_claim("held", exactly(), metadata=where, allocation=allocation_of("a"), reservedFor=users)


@cases(
    "objects, text",
    (
        "too few",
        [make_slice("a", "b"), make_claim("c", exactly(3))],
        "2 devices of the class any, 2 free; the claim c asks for 3",
    ),
    (
        "held",
        [make_slice("a"), make_claim("c", exactly()), held_by("old")],
        "1 device of the class any, 0 free, 1 held by the claim held of default/old; the claim c asks for 1",
    ),
    (
        "held by a claim of another namespace",
        [make_slice("a"), make_claim("c", exactly()), held_by("old", "other")],
        "1 device of the class any, 0 free, 1 held by a claim of other/old; the claim c asks for 1",
    ),
    (
        "not selected",
        [make_slice(make_device("a", {"model": "a100"}), "b"), make_claim("c", exactly(**selecting("false")))],
        "2 devices of the class any, but the selectors of the claim c match none (false)",
    ),
    (
        "one selected",
        [
            make_slice(make_device("a", {"model": "a100"}), make_device("b", {"model": "h100"})),
            make_claim("c", exactly(2, **selecting(H100))),
        ],
        "2 devices of the class any of which 1 match the selectors of the claim c, 1 free; the claim c asks for 2",
    ),
    (
        "tainted",
        [make_slice(make_device("a", taints=[BROKEN])), make_claim("c", exactly())],
        "1 device of the class any, 0 free, 1 tainted (broken:NoSchedule); the claim c asks for 1",
    ),
    (
        "incomplete",
        [make_slice("a", of=2), make_claim("c", exactly())],
        "the pool gpu.example.com/pool is incomplete: its driver has not published all its slices; the claim c "
        "asks for 1",
    ),
    (
        "no slice",
        [make_claim("c", exactly())],
        "no ResourceSlice offers it a device: is the driver for the class running? the claim c asks for 1 of the "
        "class any",
    ),
    (
        "none of the class",
        [make_slice("a"), make_claim("c", exactly(device_class="none")), make_device_class("none", "false")],
        "1 device, none of the class none; the claim c asks for 1",
    ),
    (
        "too small",
        [
            make_slice(make_device("a", capacity={"memory": {"value": "40Gi"}})),
            make_claim("c", exactly(capacity={"requests": {"memory": "80Gi"}})),
        ],
        "1 device of the class any, 0 free, 1 with too little capacity; the claim c asks for 1",
    ),
)
def test_devices_of_a_node_are_counted_by_what_keeps_them_from_the_claim(objects: list[HasMetadata], text: str) -> None:
    facts = explained(ANY, *objects).facts

    assert [(fact.plugin, fact.text, fact.nodes) for fact in facts] == [("DynamicResources", text, ("n",))]


def test_nodes_of_which_the_same_is_true_are_told_together() -> None:
    facts = explained(ANY, make_claim("c", exactly(2)), make_slice("a", allNodes=True), nodes="xyz").facts

    assert [fact.nodes for fact in facts] == [("x", "y", "z")]


def test_holder_of_a_device_is_hidden_from_who_may_not_see_its_namespace() -> None:
    explanation = explained(ANY, make_slice("a"), make_claim("c", exactly()), held_by("old", "other"))

    assert redacted(explanation, {"default"}).facts[0].text == (
        f"1 device of the class any, 0 free, 1 held by a claim of {HIDDEN_POD}; the claim c asks for 1"
    )


def test_devices_for_an_extended_resource_are_counted_too() -> None:
    explanation = explained(make_device_class("gpu", backs="example.com/gpu"), make_slice("a", "b"), asking=pod(gpu=3))

    assert "2 devices of the class gpu, 2 free; the pod, by example.com/gpu, asks for 3" in [
        fact.text for fact in explanation.facts
    ]
    assert "ask for 2 of example.com/gpu instead of 3" in [fix.text for fix in explanation.fixes]


@cases(
    "objects, fixes",
    (
        "fewer",
        [make_slice("a", "b"), make_claim("c", exactly(3))],
        ["ask for 2 of the class any instead of 3 in the claim c"],
    ),
    (
        "as many as are free",
        [make_slice("a", "b"), make_claim("c", exactly(3)), held_by("old")],
        ["ask for 1 of the class any instead of 3 in the claim c"],
    ),
    ("not none", [make_slice("a"), make_claim("c", exactly(2)), held_by("old")], []),
    (
        "a taint",
        [make_slice(make_device("a", taints=[BROKEN])), make_claim("c", exactly())],
        ["tolerate the device taint broken:NoSchedule in the claim c"],
    ),
    (
        "taints",
        [
            make_slice(make_device("a", taints=[BROKEN, {**BROKEN, "key": "old", "value": "yes"}])),
            make_claim("c", exactly()),
        ],
        ["tolerate the device taints broken:NoSchedule and old=yes:NoSchedule in the claim c"],
    ),
    (
        "no toleration where devices are missing all the same",
        [make_slice(make_device("a", taints=[BROKEN])), make_claim("c", exactly(2))],
        [],
    ),
)
def test_claim_is_changed_where_that_gets_it_devices(objects: list[HasMetadata], fixes: list[str]) -> None:
    all_fixes = explained(ANY, *objects).fixes

    assert [fix.text for fix in all_fixes if fix.text != "drop the resource claim x"] == fixes


@pytest.mark.parametrize("change", [{}, {"allocationMode": "All"}])
def test_pod_that_fits_is_told_no_facts(change: dict[str, Any]) -> None:
    explanation = explained(ANY, make_slice("a"), make_claim("c", exactly(**change)))

    assert (explanation.feasible_nodes, explanation.facts) == (1, ())


@pytest.mark.parametrize("claim", ["c", "another"])
def test_place_of_an_allocated_claim_of_the_pod_is_said(claim: str) -> None:
    elsewhere = allocation_of("a", node_selector=label_selector("zone", "b"))
    objects = [make_claim("c", exactly()), make_claim(claim, exactly(), allocation=elsewhere)]

    facts = [fact.text for fact in explained(ANY, *objects).facts]

    assert (f"the claim {claim} is allocated where zone In (b)" in facts) == (claim == "c")

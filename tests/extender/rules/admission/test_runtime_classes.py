"""A pod gets from its runtime class what it needs besides its containers, and where it may run."""

from typing import Any

import pytest

from extender.rules.api_resources import PODS, RUNTIME_CLASSES
from extender.rules.seeding import seed
from extender.rules.statuses import ApiStatus
from tests.kit.cluster import make_registry
from tests.kit.objects import pod

KATA: Any = {
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
}


def admitted(class_of_it: Any = KATA, **spec: Any) -> Any:
    registry = make_registry("default")
    if class_of_it:
        registry.create(RUNTIME_CLASSES, "", class_of_it)
    return registry.create(PODS, "default", pod("p", runtimeClassName="kata", **spec))["spec"]


def test_a_pod_gets_the_overhead_and_the_nodes_of_its_class() -> None:
    spec = admitted(nodeSelector={"disk": "ssd"})

    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"disk": "ssd", "vm": "yes"}
    assert {"key": "vm", "operator": "Exists"} in spec["tolerations"]


@pytest.mark.parametrize(
    ("class_of_it", "spec", "why"),
    [
        (None, {}, 'pod rejected: RuntimeClass "kata" not found'),
        (
            KATA,
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"metadata": {"name": "kata"}, "handler": "kata"},
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            KATA,
            {"nodeSelector": {"vm": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no",
        ),
    ],
    ids=["no such class", "another overhead", "an overhead of its own", "other nodes"],
)
def test_a_pod_that_contradicts_its_class_is_refused(class_of_it: Any, spec: Any, why: str) -> None:
    with pytest.raises(ApiStatus) as refusal:
        admitted(class_of_it, **spec)

    assert str(refusal.value) == f'pods "p" is forbidden: {why}'


def test_a_pod_of_a_dump_without_its_class_stays_as_it_is() -> None:
    registry = make_registry("default")

    seed(registry, [pod("p", runtimeClassName="kata", overhead={"cpu": "1"})])

    assert registry.get(PODS, "default", "p")["spec"]["overhead"] == {"cpu": "1"}


def test_a_pod_of_a_file_gets_the_overhead_of_a_class_in_it() -> None:
    registry = make_registry("default")

    seed(
        registry, [pod("p", runtimeClassName="kata"), {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", **KATA}]
    )

    assert registry.get(PODS, "default", "p")["spec"]["overhead"] == {"cpu": "250m"}

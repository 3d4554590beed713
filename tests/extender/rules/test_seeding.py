"""A dump is put in place as it was; what is wrong with one object does not keep the others out."""

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.settings.settings import EXAMPLE_CLUSTER
from extender.rules.api_resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Object
from extender.rules.seeding import RefusedObject, seed
from extender.rules.state_file import load_state, save_state
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.cluster import make_registry
from tests.kit.objects import priority_class
from tests.kit.service import TWELVE_NODES
from tests.kit.tables import cases

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}


@pytest.fixture
def registry() -> ObjectRegistry:
    return make_registry(now=lambda: NOON)


def pod(name: str = "web", **more: Any) -> Object:
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        **more.pop("spec", {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, **more}


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        (TWELVE_NODES, {"Namespace": 4, "PriorityClass": 7, "Node": 12, "Pod": 69, "PodDisruptionBudget": 3}),
        (
            EXAMPLE_CLUSTER,
            {
                "Namespace": 4,
                "PriorityClass": 5,
                "Node": 12,
                "Deployment": 2,
                "ReplicaSet": 2,
                "StatefulSet": 1,
                "Job": 1,
                "DaemonSet": 1,
                "CSINode": 12,
                "Pod": 42,
                "PodDisruptionBudget": 3,
            },
        ),
    ],
    ids=["of a server", "by hand"],
)
def test_a_whole_cluster(registry: ObjectRegistry, path: Any, stored: dict[str, int]) -> None:
    report = seed(registry, load_state(path))

    assert (report.stored, report.left_out, report.refused, report.added) == (stored, {}, (), ())


def test_a_pod_stays_what_it_was(registry: ObjectRegistry) -> None:
    metadata = {
        "uid": "1234",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "77",
        "ownerReferences": [OWNER],
    }
    manifest = pod(
        metadata=metadata, spec={"nodeName": "a", "priority": 7}, status={"phase": "Running", "podIP": "10.0.0.1"}
    )

    seed(registry, [copy.deepcopy(manifest)])

    stored = registry.get(PODS, "default", "web")
    assert stored["metadata"]["resourceVersion"] != "77"
    stored["metadata"]["resourceVersion"] = "77"
    assert stored == manifest


def test_handwritten_object_is_completed_with_defaults(registry: ObjectRegistry) -> None:
    report = seed(registry, [pod(spec={"priority": 7, "nodeName": "a"}, status={"phase": "Running"})])

    stored = registry.get(PODS, "default", "web")
    assert report.refused == ()
    assert stored["metadata"]["uid"]
    assert stored["metadata"]["creationTimestamp"] == "2026-03-01T12:00:00Z"
    assert (stored["spec"]["priority"], stored["spec"]["nodeName"]) == (7, "a")
    assert (stored["spec"]["schedulerName"], stored["spec"]["restartPolicy"]) == ("default-scheduler", "Always")
    assert (stored["status"]["phase"], stored["status"]["qosClass"]) == ("Running", "Burstable")
    assert [toleration["key"] for toleration in stored["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_object_without_namespace_goes_into_default(registry: ObjectRegistry) -> None:
    manifest = pod()
    del manifest["metadata"]["namespace"]

    report = seed(registry, [manifest])

    assert report.refused == ()
    assert registry.get(PODS, "default", "web")["metadata"]["namespace"] == "default"


def test_the_class_of_a_pod_gives_it_its_priority(registry: ObjectRegistry) -> None:
    high = priority_class("high", 9)

    seed(registry, [pod(spec={"priorityClassName": "high"}), high])

    assert registry.get(PODS, "default", "web")["spec"]["priority"] == 9


def test_namespaces_and_classes_that_a_dump_lacks_are_made(registry: ObjectRegistry) -> None:
    spec = {"priorityClassName": "high", "priority": 9, "preemptionPolicy": "Never"}

    report = seed(
        registry,
        [pod(metadata={"namespace": "shop"}, spec=spec), pod("other", metadata={"namespace": "shop"}, spec=spec)],
    )

    assert report.added == ("Namespace shop", "PriorityClass high")
    assert registry.get(NAMESPACES, "", "shop")["status"]["phase"] == "Active"
    priority_class = registry.get(PRIORITY_CLASSES, "", "high")
    assert (priority_class["value"], priority_class["preemptionPolicy"]) == (9, "Never")


def test_invalid_objects_are_reported_and_left_out(registry: ObjectRegistry) -> None:
    items = [
        pod("Bad_Name"),
        pod("typed", spec={"nodeName": 7}),
        pod("dumped", spec={"nodeName": 7}, metadata={"resourceVersion": "1"}),
        pod("classless", spec={"priorityClassName": "ghost"}),
        pod("twice"),
        pod("twice"),
        {"apiVersion": "v1", "kind": "Node", "metadata": {}},
        {"apiVersion": "v1", "kind": "Node", "metadata": "none"},
        {"apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": "s"}},
        {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}},
    ]

    report = seed(registry, items)

    assert report.stored == {"Pod": 1}
    assert report.left_out == {"ComponentStatus": 1, "PodDisruptionBudget": 1}
    reasons = {refusal.name: refusal.why for refusal in report.refused}
    assert len(report.refused) == 7
    assert RefusedObject("Pod", "default/twice", 'pods "twice" already exists') in report.refused
    assert 'metadata.name: Invalid value: "Bad_Name"' in reasons["default/Bad_Name"]
    assert "nodeName" in reasons["default/typed"]
    assert "nodeName" in reasons["default/dumped"]
    assert reasons["default/classless"].endswith("no PriorityClass with name ghost was found")
    assert "name is required" in reasons["None"]


@cases(
    "metadata, word, field",
    ("n of a manifest, which is a bool of YAML", {"name": False}, "bool", "name"),
    ("number", {"name": 7}, "number", "name"),
    ("list", {"name": ["a"]}, "array", "name"),
    ("namespace", {"name": "a", "namespace": True}, "bool", "namespace"),
)
def test_name_that_is_no_string_is_refused_as_one(
    registry: ObjectRegistry, metadata: dict[str, Any], word: str, field: str
) -> None:
    (refused,) = seed(registry, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}]).refused

    assert (
        refused.why == f"json: cannot unmarshal {word} into Go struct field ObjectMeta.metadata.{field} of type string"
    )


def test_a_list_without_an_api_version_is_understood(registry: ObjectRegistry) -> None:
    report = seed(registry, [{"kind": "Node", "metadata": {"name": "a"}}])

    assert (report.stored, report.refused) == ({"Node": 1}, ())
    assert registry.get(NODES, "", "a")["apiVersion"] == "v1"


def test_a_state_file_of_ours_gives_back_the_cluster_that_was_saved(registry: ObjectRegistry, tmp_path: Path) -> None:
    seed(registry, load_state(TWELVE_NODES))
    kinds = (NAMESPACES, PRIORITY_CLASSES, PODS)
    before = [obj for kind in kinds for obj in registry.list(kind)]
    save_state(tmp_path / "state.yaml", before)
    restored = make_registry(now=lambda: NOON, seed=2)

    report = seed(restored, load_state(tmp_path / "state.yaml"))

    assert report.refused == ()
    after = [obj for kind in kinds for obj in restored.list(kind)]
    for obj in (*before, *after):
        del obj["metadata"]["resourceVersion"]
    assert after == before

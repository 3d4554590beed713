"""What a request may not say, and which changes count."""

import copy

import pytest

from extender.rules import api_resources
from extender.rules.admission import strategies
from tests.kit.tables import cases
from tests.reprieve.cluster.made_objects import made


def pod(**spec):
    return made(
        api_resources.PODS,
        {
            "metadata": {"name": "p", "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
        },
    )


def changed(resource, old, subresource="", **change):
    new = copy.deepcopy(old)
    for path, value in change.items():
        *way, last = path.split("__")
        target = new
        for name in way:
            target = target[name]
        target[last] = value
    strategies.prepare_for_update(resource, new, old, subresource)
    return new


def test_new_pod_is_pending_whatever_status_was_sent():
    obj = made(
        api_resources.PODS, {"metadata": {"generation": 7}, "spec": {"containers": []}, "status": {"phase": "Running"}}
    )

    assert obj["metadata"]["generation"] == 1
    assert obj["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_gated_pod_has_the_condition_scheduling_gated():
    condition = pod(schedulingGates=[{"name": "g"}])["status"]["conditions"][0]

    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_nodes_come_with_their_status():
    assert made(api_resources.NODES, {"status": {"phase": "Running"}})["status"]["phase"] == "Running"


def test_status_of_other_kinds_is_reset_on_creation():
    assert made(api_resources.DEPLOYMENTS, {"status": {"replicas": 3}})["status"] == {}
    assert made(api_resources.POD_DISRUPTION_BUDGETS, {"status": {"expectedPods": 3}})["status"]["expectedPods"] == 0
    assert made(api_resources.PERSISTENT_VOLUME_CLAIMS, {"status": {"phase": "Bound"}})["status"] == {
        "phase": "Pending"
    }


def test_a_namespace_is_active_and_guarded():
    namespace = made(api_resources.NAMESPACES, {"metadata": {"name": "n"}})

    assert namespace["status"] == {"phase": "Active"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


def test_label_keys_become_part_of_the_selector():
    term = {
        "labelSelector": {"matchLabels": {"a": "b"}},
        "matchLabelKeys": ["app", "absent"],
        "mismatchLabelKeys": ["app"],
        "topologyKey": "z",
    }
    constraint = {
        "labelSelector": {},
        "matchLabelKeys": ["app"],
        "maxSkew": 1,
        "topologyKey": "z",
        "whenUnsatisfiable": "DoNotSchedule",
    }

    spec = pod(
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        topologySpreadConstraints=[constraint],
    )["spec"]

    merged = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]
    assert merged["matchExpressions"] == [
        {"key": "app", "operator": "In", "values": ["x"]},
        {"key": "app", "operator": "NotIn", "values": ["x"]},
    ]
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]
    }


def test_updates_of_the_object_leave_its_status():
    new = changed(api_resources.PODS, pod(), status__phase="Running")

    assert new["status"]["phase"] == "Pending"


def test_updates_of_the_status_leave_the_object():
    new = changed(
        api_resources.PODS, pod(), "status", status__phase="Running", spec__nodeName="n", metadata__labels={"b": "c"}
    )

    assert new["status"]["phase"] == "Running"
    assert "nodeName" not in new["spec"]
    assert new["metadata"]["labels"] == {"b": "c"}
    assert new["metadata"]["generation"] == 1


def test_a_status_of_a_deployment_leaves_its_labels():
    new = changed(
        api_resources.DEPLOYMENTS,
        made(api_resources.DEPLOYMENTS, {}),
        "status",
        metadata__labels={"b": "c"},
        status__replicas=1,
    )

    assert "labels" not in new["metadata"]
    assert new["status"] == {"replicas": 1}


def test_quality_of_service_and_observed_generations_are_not_forgotten():
    old = pod()
    old["status"] |= {
        "observedGeneration": 3,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}],
    }

    new = changed(
        api_resources.PODS,
        old,
        "status",
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    )

    assert new["status"]["qosClass"] == "BestEffort"
    assert new["status"]["observedGeneration"] == 3
    assert new["status"]["conditions"][0]["observedGeneration"] == 2


@cases(
    "resource, change, generation",
    ("a new spec counts", api_resources.DEPLOYMENTS, {"spec__replicas": 3}, 2),
    ("labels do not", api_resources.DEPLOYMENTS, {"metadata__labels": {"a": "b"}}, 1),
    ("annotations of deployments do", api_resources.DEPLOYMENTS, {"metadata__annotations": {"a": "b"}}, 2),
    ("those of others do not", api_resources.REPLICA_SETS, {"metadata__annotations": {"a": "b"}}, 1),
    ("pods count, too", api_resources.PODS, {"spec__activeDeadlineSeconds": 3}, 2),
    ("a given generation does not count", api_resources.PODS, {"metadata__generation": 9}, 1),
)
def test_generations_count_changes_of_the_spec(resource, change, generation):
    old = pod() if resource is api_resources.PODS else made(resource, {})

    assert changed(resource, old, **change)["metadata"]["generation"] == generation


def test_kinds_without_generations_get_none():
    assert "generation" not in made(api_resources.NODES, {})["metadata"]
    assert (
        "generation"
        not in changed(api_resources.LEASES, made(api_resources.LEASES, {}), spec__holderIdentity="x")["metadata"]
    )


def test_statuses_of_devices_go_with_their_allocation():
    device = {"driver": "d", "pool": "p", "device": "x"}
    old = made(api_resources.RESOURCE_CLAIMS, {})
    old["status"] = {"allocation": {"devices": {"results": [{"request": "r", **device}]}}, "devices": [device]}

    new = changed(api_resources.RESOURCE_CLAIMS, old, "status", status={"devices": [device]})

    assert "devices" not in new["status"]


@pytest.mark.parametrize(
    ("resources_of", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}], "BestEffort"),
        ([{"limits": {"cpu": "0"}}], "BestEffort"),
    ],
)
def test_quality_of_service(resources_of, quality):
    containers = [{"name": f"c{place}", "resources": resources} for place, resources in enumerate(resources_of)]

    assert pod(containers=containers)["status"]["qosClass"] == quality

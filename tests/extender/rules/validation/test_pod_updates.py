"""What may change about a pod; the refusals are in `refusals.yaml`."""

import copy
from typing import Any

from extender.rules import api_resources, validation
from tests.kit.tables import cases
from tests.reprieve.cluster.made_objects import made

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}


def pod(**spec):
    manifest: Any = {
        "metadata": {"name": "p", "namespace": "default", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }
    return made(api_resources.PODS, manifest)


def errors_of_change(old, new, subresource=""):
    return list(map(str, validation.validate_update(api_resources.PODS, new, old, subresource)))


def in_zone(*expressions):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}}


@cases(
    "before, after",
    ("an image", {}, {"containers": [{"name": "c", "image": "i:2"}]}),
    ("a deadline", {}, {"activeDeadlineSeconds": 5}),
    ("an earlier deadline", {"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}),
    ("one more toleration", {}, {"tolerations": [{"key": "a", "operator": "Exists"}]}),
    ("a gate goes", {"schedulingGates": [{"name": "g"}]}, {}),
    (
        "a gated pod is narrowed",
        {"schedulingGates": [{"name": "g"}]},
        {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}},
    ),
    (
        "to a zone, too",
        {"schedulingGates": [{"name": "g"}]},
        {"schedulingGates": [{"name": "g"}], "affinity": in_zone(ZONE_A)},
    ),
    (
        "and further",
        {"schedulingGates": [{"name": "g"}], "affinity": in_zone(ZONE_A)},
        {"schedulingGates": [{"name": "g"}], "affinity": in_zone(ZONE_A, {"key": "x", "operator": "Exists"})},
    ),
    ("a negative grace becomes one", {"terminationGracePeriodSeconds": -1}, {"terminationGracePeriodSeconds": 1}),
)
def test_mutable_field_may_change(before, after):
    assert errors_of_change(pod(**before), pod(**after)) == []


def test_the_claim_for_extended_resources_maps_requests_of_containers():
    old = pod(containers=[{"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}])
    new = copy.deepcopy(old)
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    new["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "claim", "requestMappings": [mapping]}

    assert errors_of_change(old, new, "status") == []

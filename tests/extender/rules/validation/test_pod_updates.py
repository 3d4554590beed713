"""What may change about a pod, and what is said about the rest."""

import copy
from typing import Any

import pytest

from extender.rules import api_resources, validation
from tests.kit.tables import cases
from tests.reprieve.cluster.made_objects import made

IMMUTABLE = (
    "spec: Forbidden: pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)\n"
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
ZONE_B = {"key": "zone", "operator": "In", "values": ["b"]}


def pod(**spec):
    given: Any = {
        "metadata": {"name": "p", "namespace": "default", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }
    return made(api_resources.PODS, given)


def said(old, new, subresource=""):
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
    assert said(pod(**before), pod(**after)) == []


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ({}, {"nodeName": "n"}, IMMUTABLE),
        ({}, {"nodeSelector": {"a": "b"}}, IMMUTABLE),
        ({}, {"containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}]}, IMMUTABLE),
        (
            {},
            {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            {},
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value",
        ),
        (
            {"activeDeadlineSeconds": 5},
            {},
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
        ),
        (
            {},
            {"schedulingGates": [{"name": "g"}]},
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
        ),
        (
            {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}},
            {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "c"}},
            'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no '
            "mutations or deletions)",
        ),
        (
            {"schedulingGates": [{"name": "g"}], "affinity": in_zone(ZONE_A)},
            {"schedulingGates": [{"name": "g"}], "affinity": in_zone(ZONE_B)},
            f'{TERMS}[0]: Invalid value: {{"matchExpressions":[{{"key":"zone","operator":"In","values":["b"]}}]}}: '
            "only additions are allowed (no mutations or deletions)",
        ),
        (
            {"schedulingGates": [{"name": "g"}], "affinity": in_zone(ZONE_A)},
            {"schedulingGates": [{"name": "g"}]},
            f"{TERMS}: Invalid value: []: no additions/deletions to non-empty NodeSelectorTerms list are allowed",
        ),
    ],
)
def test_immutable_field_is_refused_when_changed(before, after, error):
    assert said(pod(**before), pod(**after)) == [error]


def test_updates_without_a_version_are_refused():
    old, new = pod(), pod()
    del new["metadata"]["resourceVersion"]

    assert said(old, new) == ['metadata.resourceVersion: Invalid value: "": must be specified for an update']


def test_identity_stays():
    old, new = pod(), pod()
    old["metadata"]["uid"] = "a"
    new["metadata"]["uid"] = "b"

    assert said(old, new) == ['metadata.uid: Invalid value: "b": field is immutable']


def test_no_finalizer_joins_an_object_that_is_going():
    old, new = pod(), pod()
    for each in (old, new):
        each["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"
    new["metadata"]["finalizers"] = ["a/b"]

    assert said(old, new)[0] == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
        "finalizers "
        '[]string{"a/b"}'
    )


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ({"qosClass": "Guaranteed"}, 'status.qosClass: Invalid value: "Guaranteed": field is immutable'),
        (
            {"resourceClaimStatuses": [{"name": "x"}]},
            'status.resourceClaimStatuses[0].name: Invalid value: "x": must match the name of an entry in '
            "`spec.resourceClaims`",
        ),
    ],
)
def test_statuses(status, error):
    old = pod()
    new = copy.deepcopy(old)
    new["status"] |= status

    assert said(old, new, "status") == [error]


GPU = "example.com/gpu"
SPECIAL = "status.extendedResourceClaimStatus"


def mapping(container="c", resource=GPU, request="container-0-request-0"):
    return {"containerName": container, "resourceName": resource, "requestName": request}


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        ({"resourceClaimName": "claim", "requestMappings": [mapping()]}, []),
        ({"resourceClaimName": "claim"}, [f"{SPECIAL}.requestMappings: Required value: at least one request mapping is "
            "required"]),
        ({"requestMappings": [mapping()]}, [f"{SPECIAL}.resourceClaimName: Required value"]),
        (
            {"resourceClaimName": "claim", "requestMappings": [mapping("other")]},
            [
                f'{SPECIAL}.requestMappings[0].containerName: Invalid value: "other": '
                "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            ],
        ),
        (
            {"resourceClaimName": "claim", "requestMappings": [mapping(resource="example.com/nic")]},
            [
                f'{SPECIAL}.requestMappings[0].resourceName: Invalid value: "example.com/nic": '
                "must match the extended resource name of an entry in "
                "spec.initContainers.resources.requests or spec.containers.resources.requests"
            ],
        ),
        (
            {"resourceClaimName": "claim", "requestMappings": [mapping(), mapping()]},
            [
                f'{SPECIAL}.requestMappings[1].containerName: Duplicate value: "c"',
                f'{SPECIAL}.requestMappings[1].resourceName: Duplicate value: "example.com/gpu"',
                f'{SPECIAL}.requestMappings[1].requestName: Duplicate value: "container-0-request-0"',
            ],
        ),
    ],
    ids=["valid", "no mapping", "no claim", "no such container", "the container requests none", "twice the same"],
)  # fmt: skip
def test_the_claim_for_extended_resources(status, errors):
    old = pod()
    old["spec"]["containers"][0]["resources"] = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    new = copy.deepcopy(old)
    new["status"]["extendedResourceClaimStatus"] = status

    assert said(old, new, "status") == errors


def test_terminated_container_cannot_run_again():
    old = pod(restartPolicy="Never")
    new = copy.deepcopy(old)
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]
    new["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]

    assert said(old, new, "status") == [
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    ]


def test_a_nomination_names_a_node():
    old = pod()
    new = copy.deepcopy(old)
    new["status"]["nominatedNodeName"] = "N"

    assert said(old, new, "status")[0].startswith(
        'status.nominatedNodeName: Invalid value: "N": a lowercase RFC 1123 subdomain'
    )

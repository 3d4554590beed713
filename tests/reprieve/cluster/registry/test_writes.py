"""POST, PUT and the options of writes."""

from typing import Any

import pytest

from extender.rules.api_resources import NAMESPACES, PRIORITY_CLASSES, STORAGE_CLASSES
from extender.values.config.feature_gates import FeatureGates
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.responses.response import Response
from tests.kit.cluster import make_registry
from tests.reprieve.cluster.api_calls import NOW, PODS_PATH, add_pod, ask, make_api, merge, pod, send

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def test_a_created_object_is_answered_as_it_is_stored(api: KubeApi) -> None:
    code, created = ask(api, "POST", PODS_PATH, pod("a"), agent="kubectl/v1.36.2 (linux/amd64)")
    _, read = ask(api, "GET", f"{PODS_PATH}/a")

    assert (code, created) == (201, read)
    assert created["metadata"]["creationTimestamp"] == NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert created["metadata"]["managedFields"][0]["manager"] == "kubectl"


def test_server_owned_fields_of_a_created_object_are_replaced(api: KubeApi) -> None:
    body = pod("a")
    body["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": "1999-01-01T00:00:00Z",
        "deletionTimestamp": "1999-01-01T00:00:00Z",
        "generation": 9,
    }
    body["status"] = {"phase": "Running"}

    code, created = ask(api, "POST", PODS_PATH, body)

    assert code == 201
    assert created["metadata"]["uid"] != "mine"
    assert "deletionTimestamp" not in created["metadata"]
    assert (created["metadata"]["generation"], created["status"]["phase"]) == (1, "Pending")


def test_names_are_generated_without_clashing(api: KubeApi) -> None:
    body = pod("x")
    body["metadata"] = {"generateName": "web-" + "x" * 80}

    generated_names = {ask(api, "POST", PODS_PATH, body)[1]["metadata"]["name"] for _ in range(50)}

    assert len(generated_names) == 50
    assert {len(name) for name in generated_names} == {63}


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            {"metadata": {"name": "a", "namespace": "other"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"metadata": {"name": "a", "resourceVersion": "7"}},
            500,
            "resourceVersion should not be set on objects to be created",
        ),
        (
            {"kind": "Node"},
            400,
            'Node in version "v1" cannot be handled as a Pod: converting (v1.Node) to (core.Pod): unknown conversion',
        ),
        (
            {"kind": "Foo"},
            400,
            'Foo in version "v1" cannot be handled as a Pod: '
            'no kind "Foo" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
        ({"spec": {"containers": "none"}}, 400, None),
        ({"metadata": {}}, 422, 'Pod "" is invalid: metadata.name: Required value: name or generateName is required'),
    ],
)
def test_invalid_object_is_not_created(change: dict[str, Any], code: int, message: str | None) -> None:
    refused, status = ask(make_api(), "POST", PODS_PATH, pod("a") | change)

    assert refused == code
    if message is not None:
        assert status["message"] == message
    else:
        assert status["message"].startswith(
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go'
        )


def test_a_namespace_must_be_there_and_stay() -> None:
    api = make_api(namespaces=("default", "going"))
    ask(api, "DELETE", "/api/v1/namespaces/going")

    not_found, missed = ask(api, "POST", "/api/v1/namespaces/nope/pods", pod("a"))
    going, refused = ask(api, "POST", "/api/v1/namespaces/going/pods", pod("a"))
    _, namespace = ask(api, "GET", "/api/v1/namespaces/going")

    assert (not_found, missed["message"]) == (404, 'namespaces "nope" not found')
    assert going == 403
    assert refused["message"] == (
        'pods "a" is forbidden: unable to create new content in namespace going because it is being terminated'
    )
    assert refused["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace going is being terminated",
            "field": "metadata.namespace",
        }
    ]
    assert namespace["status"]["phase"] == "Terminating"


def test_a_dry_run_answers_as_if_and_writes_nothing(api: KubeApi) -> None:
    add_pod(api, "b", nodeName="n")
    version = api.registry.store.resource_version

    created, _ = ask(api, "POST", f"{PODS_PATH}?dryRun=All", pod("a"))
    _, patched = merge(api, f"{PODS_PATH}/b?dryRun=All", {"metadata": {"labels": {"x": "y"}}})
    deleted, _ = ask(api, "DELETE", f"{PODS_PATH}/b?dryRun=All&gracePeriodSeconds=0")
    bound, _ = ask(api, "POST", f"{PODS_PATH}/b/eviction?dryRun=All", {"metadata": {"name": "b"}})
    wrong, status = ask(api, "POST", f"{PODS_PATH}?dryRun=Some", pod("a"))

    assert (created, deleted, bound) == (201, 200, 201)
    assert patched["metadata"]["labels"] == {"x": "y"}
    assert api.registry.store.resource_version == version
    assert ask(api, "GET", f"{PODS_PATH}/a")[0] == 404
    assert (wrong, status["message"]) == (
        422,
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    )


@pytest.mark.parametrize(
    ("validation", "code", "warning"),
    [("Strict", 400, None), ("Warn", 201, '299 - "unknown field \\"spec.colour\\""'), ("Ignore", 201, None)],
)
def test_unknown_fields(validation: str, code: int, warning: str | None) -> None:
    body = pod("a", colour="red")

    answer = send(make_api(), "POST", f"{PODS_PATH}?fieldValidation={validation}", body)

    assert (answer.status, answer.headers.get("Warning")) == (code, warning)
    if code == 400:
        assert isinstance(answer, Response)
        assert b'strict decoding error: unknown field \\"spec.colour\\"' in answer.body


def test_members_named_twice_are_warned_of() -> None:
    body = b'{"metadata":{"name":"a","name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}'

    answer = send(make_api(), "POST", PODS_PATH, body)

    assert answer.headers["Warning"] == '299 - "duplicate field \\"metadata.name\\""'


def test_an_update_from_an_old_version_is_a_conflict_and_one_from_none_is_not(api: KubeApi) -> None:
    old = add_pod(api, "a")
    merge(api, f"{PODS_PATH}/a", {"metadata": {"labels": {"x": "y"}}})

    code, status = ask(api, "PUT", f"{PODS_PATH}/a", old)
    del old["metadata"]["resourceVersion"]
    blind, updated = ask(api, "PUT", f"{PODS_PATH}/a", old)

    assert (code, status["message"]) == (
        409,
        'Operation cannot be fulfilled on pods "a": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )
    assert blind == 200
    assert "labels" not in updated["metadata"]


def test_some_kinds_are_not_updated_blindly(api: KubeApi) -> None:
    ask(api, "POST", LEASES, {"metadata": {"name": "l"}})

    code, status = ask(api, "PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})

    assert (code, status["message"]) == (
        422,
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for '
        "an update",
    )


def test_a_put_creates_where_the_kind_allows_it(api: KubeApi) -> None:
    lease, _ = ask(api, "PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    not_found, status = ask(api, "PUT", f"{PODS_PATH}/a", pod("a"))

    assert lease == 201
    assert (not_found, status["message"]) == (404, 'pods "a" not found')


@pytest.mark.parametrize(
    ("metadata", "code", "message"),
    [
        ({"name": "b"}, 400, "the name of the object (b) does not match the name on the URL (a)"),
        ({}, 400, "the name of the object (a based on URL) was undeterminable: name must be provided"),
    ],
)
def test_an_update_names_its_object(api: KubeApi, metadata: dict[str, Any], code: int, message: str) -> None:
    add_pod(api, "a")

    refused, status = ask(api, "PUT", f"{PODS_PATH}/a", pod("a") | {"metadata": metadata})

    assert (refused, status["message"]) == (code, message)


def test_an_update_of_a_namesake_is_a_conflict(api: KubeApi) -> None:
    uid = add_pod(api, "a")["metadata"]["uid"]

    code, status = ask(api, "PUT", f"{PODS_PATH}/a", pod("a") | {"metadata": {"name": "a", "uid": "another"}})

    assert code == 409
    assert status["message"] == (
        'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, Key: '
        "/registry/pods/default/a, "
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: another, UID in object "
        f"meta: {uid}"
    )


def test_immutable_fields_stay(api: KubeApi) -> None:
    old = add_pod(api, "a")
    old["spec"]["schedulerName"] = "another"

    code, status = ask(api, "PUT", f"{PODS_PATH}/a", old)

    assert (code, status["details"]["causes"][0]["reason"]) == (422, "FieldValueForbidden")
    assert status["message"].startswith(
        'Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than'
    )


def test_managed_fields_that_are_none_are_not_believed(api: KubeApi) -> None:
    old = add_pod(api, "a", labels={"x": "y"})
    odd = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": 1}},
    }
    body = old | {"metadata": old["metadata"] | {"managedFields": [odd]}}

    code, updated = ask(api, "PUT", f"{PODS_PATH}/a", body)

    assert (code, updated["metadata"]["managedFields"]) == (200, old["metadata"]["managedFields"])


def test_an_update_that_changes_nothing_writes_nothing(api: KubeApi) -> None:
    old = add_pod(api, "a")

    code, same = ask(api, "PUT", f"{PODS_PATH}/a", old)

    assert (code, same) == (200, old)


def test_status_is_written_through_its_own_door_only(api: KubeApi) -> None:
    old = add_pod(api, "a")
    both = old | {"metadata": old["metadata"] | {"labels": {"x": "y"}}, "status": {"phase": "Running"}}

    _, by_status = ask(api, "PUT", f"{PODS_PATH}/a/status", both | {"spec": old["spec"] | {"priority": 7}})
    both["metadata"]["resourceVersion"] = by_status["metadata"]["resourceVersion"]
    _, by_main = ask(api, "PUT", f"{PODS_PATH}/a", both | {"status": {"phase": "Failed"}})
    _, read = ask(api, "GET", f"{PODS_PATH}/a/status")

    assert (by_status["status"]["phase"], by_status["spec"]["priority"]) == ("Running", 0)
    assert by_main["status"]["phase"] == "Running"
    assert read == by_main


def test_owners_named_twice_are_named_once() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    body = pod("a")
    body["metadata"]["ownerReferences"] = [owner, owner]

    answer = send(make_api(), "POST", PODS_PATH, body)

    assert answer.status == 201
    assert ".metadata.ownerReferences contains duplicate entries" in answer.headers["Warning"]


def test_the_priority_of_a_pod_comes_from_its_class(api: KubeApi) -> None:
    for name, value, is_default in (("low", 5, True), ("high", 90, False)):
        api.registry.create(
            PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value, "globalDefault": is_default}
        )

    _, plain = ask(api, "POST", PODS_PATH, pod("plain"))
    _, high = ask(api, "POST", PODS_PATH, pod("high", priorityClassName="high"))
    code, status = ask(api, "POST", PODS_PATH, pod("odd", priorityClassName="high", priority=1))
    second, refused = ask(
        api,
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "x"}, "value": 1, "globalDefault": True},
    )

    assert (plain["spec"]["priorityClassName"], plain["spec"]["priority"]) == ("low", 5)
    assert (high["spec"]["priority"], high["spec"]["preemptionPolicy"]) == (90, "PreemptLowerPriority")
    assert code == 403
    assert status["message"] == (
        'pods "odd" is forbidden: the integer value of priority (1) must not be provided in pod spec; '
        "priority admission controller computed 90 from the given PriorityClass name"
    )
    assert (second, refused["message"]) == (
        403,
        'priorityclasses.scheduling.k8s.io "x" is forbidden: PriorityClass low is already marked as default. Only one '
        "default can exist",
    )


def test_claims_get_the_default_storage_class(api: KubeApi) -> None:
    for name, mark in (("slow", "false"), ("fast", "true")):
        metadata = {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": mark}}
        api.registry.create(STORAGE_CLASSES, "", {"metadata": metadata, "provisioner": "p"})
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "c"}, "spec": spec}

    _, created = ask(api, "POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim)
    claim["metadata"] = {"name": "d"}
    spec["storageClassName"] = ""
    _, none = ask(api, "POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim)

    assert created["spec"]["storageClassName"] == "fast"
    assert none["spec"]["storageClassName"] == ""


def test_reviews_are_answered_and_forgotten(api: KubeApi) -> None:
    access, allowed = ask(
        api,
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    )
    token, token_review = ask(api, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "t"}})

    assert (access, allowed["status"]) == (201, {"allowed": True})
    assert (token, token_review["status"]["authenticated"]) == (201, True)
    assert token_review["kind"] == "TokenReview"


def test_the_two_faces_of_events_show_the_same_objects(api: KubeApi) -> None:
    core = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
        "message": "m",
        "reason": "R",
    }

    ask(api, "POST", "/api/v1/namespaces/default/events", core)
    _, new = ask(api, "GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")
    _, listed = ask(api, "GET", "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Da")

    assert (new["apiVersion"], new["note"], new["regarding"]["name"]) == ("events.k8s.io/v1", "m", "a")
    assert [item["note"] for item in listed["items"]] == ["m"]


def test_replicas_are_read_and_set_by_scale(api: KubeApi) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    ask(api, "POST", path, deployment)

    _, scale = ask(api, "GET", f"{path}/d/scale")
    code, patched = merge(api, f"{path}/d/scale", {"spec": {"replicas": 5}})
    _, conflict = ask(api, "PUT", f"{path}/d/scale", scale | {"spec": {"replicas": 7}})
    fresh = scale | {"metadata": patched["metadata"], "spec": {"replicas": 0}}
    _, zero = ask(api, "PUT", f"{path}/d/scale", fresh)
    wrong, status = merge(api, f"{path}/d/scale", {"spec": {"replicas": -1}})
    _, read = ask(api, "GET", f"{path}/d")

    assert (scale["kind"], scale["apiVersion"], scale["spec"], scale["status"]) == (
        "Scale",
        "autoscaling/v1",
        {"replicas": 2},
        {"replicas": 0, "selector": "app=x"},
    )
    assert (code, patched["spec"]) == (200, {"replicas": 5})
    assert conflict["reason"] == "Conflict"
    assert zero["spec"] == {}
    assert (wrong, status["details"]["causes"][0]["field"]) == (422, "spec.replicas")
    assert (read["spec"]["replicas"], read["metadata"]["generation"]) == (0, 3)


def test_a_namespace_gets_the_finalizer_that_keeps_it_until_it_is_empty(api: KubeApi) -> None:
    namespace = api.registry.create(NAMESPACES, "", {"metadata": {"name": "n"}})

    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}


CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
GPUS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
OFF = FeatureGates.of({"DRAExtendedResource": False})
CLAIM_STATUS = {
    "resourceClaimName": "a-extended",
    "requestMappings": [{"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}],
}


def test_fields_of_a_feature_that_is_off_are_dropped() -> None:
    api = make_api(features=OFF)
    add_pod(api, "a")
    body = {**GPUS, "spec": {"extendedResourceName": "example.com/gpu"}}

    _, created = ask(api, "POST", CLASSES, body)
    _, updated = ask(api, "PUT", f"{CLASSES}/gpu", {**created, "spec": body["spec"]})
    _, read = ask(api, "GET", f"{PODS_PATH}/a")
    _, updated_pod = ask(
        api,
        "PUT",
        f"{PODS_PATH}/a/status",
        {**read, "status": {**read["status"], "extendedResourceClaimStatus": CLAIM_STATUS}},
    )

    assert [obj.get("spec", {}).get("extendedResourceName") for obj in (created, updated)] == [None, None]
    assert updated["metadata"].get("generation") == created["metadata"].get("generation")
    assert "extendedResourceClaimStatus" not in updated_pod["status"]


def test_fields_of_a_feature_that_was_switched_off_stay_where_they_are() -> None:
    on = make_api()
    _, created = ask(on, "POST", CLASSES, {**GPUS, "spec": {"extendedResourceName": "example.com/gpu"}})
    off = KubeApi(make_registry(store=on.registry.store, features=OFF))

    code, updated = ask(
        off, "PUT", f"{CLASSES}/gpu", {**created, "spec": {"extendedResourceName": "example.com/other"}}
    )

    assert (code, updated["spec"]["extendedResourceName"]) == (200, "example.com/other")


def test_first_thousand_of_many_errors_are_reported() -> None:
    code, refusal = ask(make_api(), "POST", PODS_PATH, pod("a", tolerations=[{"operator": "Equal"}] * 2000))

    assert (code, len(refusal["details"]["causes"])) == (422, 1000)

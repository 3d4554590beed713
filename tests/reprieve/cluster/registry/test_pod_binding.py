"""The binding subresource: compare and set, exactly as upstream."""

from typing import Any

import pytest

from reprieve.cluster.kube_api import KubeApi
from tests.reprieve.cluster.api_calls import PODS_PATH, add_node, add_pod, ask, merge

BINDING = f"{PODS_PATH}/a/binding"


def binding(node: str = "n", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}


def read(api: KubeApi) -> Any:
    return ask(api, "GET", f"{PODS_PATH}/a")[1]


@pytest.mark.parametrize("path", [BINDING, "/api/v1/namespaces/default/bindings"])
def test_bound_pod_has_its_node_and_the_condition_pod_scheduled(api: KubeApi, path: str) -> None:
    add_pod(api, "a")

    code, status = ask(api, "POST", path, binding(annotations={"x": "y"}))

    assert code == 201
    assert status == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    pod = read(api)
    assert pod["spec"]["nodeName"] == "n"
    assert pod["metadata"]["annotations"] == {"x": "y"}
    assert pod["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T12:00:00Z"}
    ]


def test_the_nomination_is_forgotten(api: KubeApi) -> None:
    add_pod(api, "a")
    merge(api, f"{PODS_PATH}/a/status", {"status": {"nominatedNodeName": "m"}})

    ask(api, "POST", BINDING, binding())

    assert "nominatedNodeName" not in read(api)["status"]


def test_a_pod_gets_the_topology_of_its_node_unless_it_has_its_own(api: KubeApi) -> None:
    add_node(api, "n", topology__x="1", **{"topology.kubernetes.io__zone": "z", "topology.kubernetes.io__region": "r"})
    add_pod(api, "a", labels={"topology.kubernetes.io/zone": "mine"})

    ask(api, "POST", BINDING, binding())

    labels = read(api)["metadata"]["labels"]
    assert labels == {"topology.kubernetes.io/zone": "mine", "topology.kubernetes.io/region": "r"}


def conflict(why: str) -> str:
    return f'Operation cannot be fulfilled on pods/binding "a": {why}'


def test_a_bound_pod_stays_where_it_is(api: KubeApi) -> None:
    add_pod(api, "a", nodeName="m")
    version = api.registry.store.resource_version

    code, status = ask(api, "POST", BINDING, binding())

    assert (code, status["message"]) == (409, conflict('pod a is already assigned to node "m"'))
    assert status["details"] == {"name": "a", "kind": "pods/binding"}
    assert api.registry.store.resource_version == version


def test_a_pod_that_is_being_deleted_is_not_bound(api: KubeApi) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    body = {"metadata": {"name": "a", "finalizers": ["example.com/a"]}, "spec": spec}
    ask(api, "POST", PODS_PATH, body)
    ask(api, "DELETE", f"{PODS_PATH}/a")

    code, status = ask(api, "POST", BINDING, binding())

    assert (code, status["message"]) == (409, conflict("pod a is being deleted, cannot be assigned to a host"))


def test_a_gated_pod_is_not_bound(api: KubeApi) -> None:
    add_pod(api, "a", schedulingGates=[{"name": "g"}])

    code, status = ask(api, "POST", BINDING, binding())

    assert (code, status["message"]) == (409, conflict("pod a has non-empty .spec.schedulingGates"))


def test_another_pod_of_the_name_is_not_bound(api: KubeApi) -> None:
    uid = add_pod(api, "a")["metadata"]["uid"]

    code, status = ask(api, "POST", BINDING, binding(uid="another"))
    bound, _ = ask(api, "POST", BINDING, binding(uid=uid))

    assert (code, bound) == (409, 201)
    assert status["message"].endswith(f"Precondition failed: UID in precondition: another, UID in object meta: {uid}")
    assert status["details"] == {"name": "a", "kind": "pods"}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({**binding(), "metadata": {"name": "b"}}, 400, "name in URL does not match name in Binding object"),
        ({**binding(), "target": {}}, 500, "target.name: Required value"),
        (
            {**binding(), "target": {"kind": "Pod", "name": "n"}},
            500,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
        (
            binding(namespace="other"),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {**binding(), "target": 7},
            400,
            'Binding in version "v1" cannot be handled as a Binding: '
            "json: cannot unmarshal number into Go struct field Binding.target of type v1.ObjectReference",
        ),
    ],
)
def test_invalid_binding_is_refused(api: KubeApi, body: dict[str, Any], code: int, message: str) -> None:
    add_pod(api, "a")

    refused, status = ask(api, "POST", BINDING, body)

    assert (refused, status["message"]) == (code, message)
    assert "nodeName" not in read(api)["spec"]


def test_dry_run_binds_no_pod(api: KubeApi) -> None:
    add_pod(api, "a")

    code, _ = ask(api, "POST", f"{BINDING}?dryRun=All", binding())

    assert code == 201
    assert "nodeName" not in read(api)["spec"]

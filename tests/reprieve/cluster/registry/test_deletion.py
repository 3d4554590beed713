"""DELETE: preconditions, grace, finalizers, collections, namespaces."""

from datetime import timedelta
from typing import Any

import pytest

from extender.rules.api_resources import PODS
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.registry.deletion import delete
from tests.reprieve.cluster.api_calls import NOW, PODS_PATH, add_node, add_pod, ask, make_api, merge, names, pod

CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"


def exists(api: KubeApi, name: str) -> bool:
    return ask(api, "GET", f"{PODS_PATH}/{name}")[0] == 200


def replica_set(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    }


def test_a_pod_without_a_node_goes_at_once(api: KubeApi) -> None:
    add_pod(api, "a")

    code, last = ask(api, "DELETE", f"{PODS_PATH}/a")

    assert (code, last["kind"], last["metadata"]["deletionGracePeriodSeconds"]) == (200, "Pod", 0)
    assert not exists(api, "a")


def test_a_deleted_object_is_shown_as_a_table_like_any_other(api: KubeApi) -> None:
    add_pod(api, "web", nodeName="n1")
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"

    _, response = ask(api, "DELETE", f"{PODS_PATH}/web", {"gracePeriodSeconds": 5}, accept=table)

    assert [row["cells"][0] for row in response["rows"]] == ["web"]
    assert response["rows"][0]["cells"][2] == "Terminating"


@pytest.mark.parametrize(
    ("query", "grace", "stays"),
    [
        ("", 30, True),
        ("?gracePeriodSeconds=5", 5, True),
        ("?gracePeriodSeconds=-7", 1, True),
        ("?gracePeriodSeconds=0", 0, False),
    ],
)
def test_a_pod_on_a_node_gets_its_grace(api: KubeApi, query: str, grace: int, stays: bool) -> None:
    add_pod(api, "a", nodeName="n")

    code, answer = ask(api, "DELETE", f"{PODS_PATH}/a{query}")

    assert (code, answer["metadata"]["deletionGracePeriodSeconds"], exists(api, "a")) == (200, grace, stays)
    assert answer["metadata"]["deletionTimestamp"] == f"2026-01-01T12:00:{grace:02}Z"
    assert answer["metadata"]["generation"] == 2


def test_a_pod_that_has_ended_goes_at_once(api: KubeApi) -> None:
    add_pod(api, "a", nodeName="n")
    merge(api, f"{PODS_PATH}/a/status", {"status": {"phase": "Succeeded"}})

    ask(api, "DELETE", f"{PODS_PATH}/a")

    assert not exists(api, "a")


def test_grace_can_be_shortened_but_not_prolonged(api: KubeApi) -> None:
    add_pod(api, "a", nodeName="n")
    ask(api, "DELETE", f"{PODS_PATH}/a?gracePeriodSeconds=20")
    version = api.registry.store.resource_version

    _, repeated = ask(api, "DELETE", f"{PODS_PATH}/a")
    _, longer = ask(api, "DELETE", f"{PODS_PATH}/a?gracePeriodSeconds=60")
    unchanged = api.registry.store.resource_version == version
    _, shorter = ask(api, "DELETE", f"{PODS_PATH}/a?gracePeriodSeconds=10")
    _, negative = ask(api, "DELETE", f"{PODS_PATH}/a?gracePeriodSeconds=-7")

    answers = (repeated, longer, shorter, negative)
    assert [answer["metadata"]["deletionGracePeriodSeconds"] for answer in answers] == [20, 20, 10, 1]
    assert unchanged
    assert shorter["metadata"]["deletionTimestamp"] == "2026-01-01T12:00:10Z"


def test_a_shorter_grace_that_is_over_already_ends_now(api: KubeApi) -> None:
    add_pod(api, "a", nodeName="n")
    ask(api, "DELETE", f"{PODS_PATH}/a?gracePeriodSeconds=30")
    stored = api.registry.store.get(PODS, "default", "a")
    assert stored is not None

    answer = delete(api.registry.store, PODS, stored, {"gracePeriodSeconds": 5}, NOW + timedelta(seconds=20))

    metadata = answer["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-01T12:00:20Z", 1)


def test_finalizers_keep_an_object_until_the_last_is_gone(api: KubeApi) -> None:
    body = pod("a")
    body["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    ask(api, "POST", PODS_PATH, body)

    ask(api, "DELETE", f"{PODS_PATH}/a")
    after_delete = exists(api, "a")
    merge(api, f"{PODS_PATH}/a", {"metadata": {"finalizers": ["example.com/b"]}})
    after_first = exists(api, "a")
    code, _ = merge(api, f"{PODS_PATH}/a", {"metadata": {"finalizers": None}})

    assert (after_delete, after_first, code, exists(api, "a")) == (True, True, 200, False)


def test_finalizers_of_other_kinds_mark_the_object_too(api: KubeApi) -> None:
    ask(api, "POST", "/api/v1/nodes", {"metadata": {"name": "n", "finalizers": ["example.com/a"]}})

    code, answer = ask(api, "DELETE", "/api/v1/nodes/n")

    assert (code, answer["kind"]) == (200, "Node")
    assert answer["metadata"]["deletionTimestamp"] == "2026-01-01T12:00:00Z"
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 0


def test_kinds_that_keep_no_copy_answer_with_a_status(api: KubeApi) -> None:
    add_node(api, "n")
    uid = ask(api, "GET", "/api/v1/nodes/n")[1]["metadata"]["uid"]

    code, status = ask(api, "DELETE", "/api/v1/nodes/n")

    assert (code, status) == (
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "n", "kind": "nodes", "uid": uid},
        },
    )


@pytest.mark.parametrize("place", ["body", "grace"])
def test_preconditions_name_the_very_object(api: KubeApi, place: str) -> None:
    created = add_pod(api, "a", nodeName="n" if place == "grace" else "")
    uid, version = created["metadata"]["uid"], created["metadata"]["resourceVersion"]

    wrong, status = ask(api, "DELETE", f"{PODS_PATH}/a", {"preconditions": {"resourceVersion": "1"}})
    right, _ = ask(api, "DELETE", f"{PODS_PATH}/a", {"preconditions": {"uid": uid, "resourceVersion": version}})

    assert (wrong, status["message"]) == (
        409,
        'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (1) does not match the '
        "ResourceVersion in "
        f"record ({version}). The object might have been modified",
    )
    assert right == 200


@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
)
def test_dependents_are_left_to_the_garbage_collector_by_finalizer(
    api: KubeApi, policy: str, finalizers: list[str] | None
) -> None:
    ask(api, "POST", REPLICA_SETS, replica_set("r"))

    ask(api, "DELETE", f"{REPLICA_SETS}/r", {"propagationPolicy": policy})
    code, obj = ask(api, "GET", f"{REPLICA_SETS}/r")

    assert code == (404 if finalizers is None else 200)
    assert obj["metadata"].get("finalizers") == finalizers


def test_replication_controllers_orphan_by_default(api: KubeApi) -> None:
    body = replica_set("r")
    body["spec"]["selector"] = {"app": "x"}
    ask(api, "POST", CONTROLLERS, body)

    ask(api, "DELETE", f"{CONTROLLERS}/r")

    assert ask(api, "GET", f"{CONTROLLERS}/r")[1]["metadata"]["finalizers"] == ["orphan"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"propagationPolicy": "Later"},
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Later": '
            'supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": '
            "orphanDependents and deletionPropagation cannot be both set",
        ),
    ],
)
def test_wrong_options_are_refused(api: KubeApi, options: dict[str, Any], message: str) -> None:
    add_pod(api, "a")

    code, status = ask(api, "DELETE", f"{PODS_PATH}/a", options)

    assert (code, status["message"]) == (422, message)
    assert exists(api, "a")


def test_a_collection_is_deleted_as_it_is_selected(api: KubeApi) -> None:
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        add_pod(api, name, labels={"app": label})

    code, deleted = ask(api, "DELETE", f"{PODS_PATH}?labelSelector=app%3Dx")

    assert (code, deleted["kind"], names(deleted)) == (200, "PodList", ["a", "c"])
    assert [stored.name for stored in api.registry.store.read(PODS)] == ["b"]


def test_a_namespace_goes_when_it_has_been_finalized() -> None:
    api = make_api(namespaces=("default", "n"))

    _, begun = ask(api, "DELETE", "/api/v1/namespaces/n")
    ask(api, "DELETE", "/api/v1/namespaces/n")
    still = ask(api, "GET", "/api/v1/namespaces/n")[0]
    begun["spec"] = {}
    code, _ = ask(api, "PUT", "/api/v1/namespaces/n/finalize", begun)

    assert begun["status"]["phase"] == "Terminating"
    assert (still, code, ask(api, "GET", "/api/v1/namespaces/n")[0]) == (200, 200, 404)


def test_some_namespaces_never_go() -> None:
    code, status = ask(make_api(), "DELETE", "/api/v1/namespaces/default")

    assert (code, status["message"]) == (403, 'namespaces "default" is forbidden: this namespace may not be deleted')

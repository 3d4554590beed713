"""PATCH: JSON patch, merge patch, strategic merge patch and server-side apply."""

import copy
from typing import Any

import pytest

from extender.rules.api_resources import PODS
from extender.rules.schema import api_types
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.patches import patch_types
from reprieve.cluster.patches.patch_types import Patch
from tests.reprieve.cluster.api_calls import PODS_PATH, add_node, add_pod, ask, make_api, pod


def patch(api: KubeApi, kind: str, body: Any, path: str = f"{PODS_PATH}/a", query: str = "") -> tuple[int, Any]:
    return ask(api, "PATCH", f"{path}{query}", body, content_type=kind)


def test_the_operations_of_a_json_patch_are_done_in_order(api: KubeApi) -> None:
    add_pod(api, "a", labels={"x": "1"})

    code, patched = patch(
        api,
        patch_types.JSON,
        [
            {"op": "test", "path": "/metadata/labels/x", "value": "1"},
            {"op": "add", "path": "/metadata/labels/a~1b", "value": "2"},
            {"op": "copy", "from": "/metadata/labels/x", "path": "/metadata/labels/z"},
            {"op": "remove", "path": "/metadata/labels/x"},
        ],
    )

    assert (code, patched["metadata"]["labels"]) == (200, {"a/b": "2", "z": "1"})


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            [{"op": "test", "path": "/metadata/name", "value": "b"}],
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            [{"op": "remove", "path": "/nothing/here"}],
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            [{"op": "replace", "path": "", "value": 7}],
            422,
            "the server rejected our request due to an error in our request",
        ),
        ([{"op": "shuffle", "path": "/a"}], 422, "the server rejected our request due to an error in our request"),
        (
            [{"op": "add", "path": "/spec/containers/x/y", "value": 1}],
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            {"op": "add"},
            400,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (b"[", 400, "invalid JSON patch"),
        (
            [{"op": "test", "path": "/kind", "value": "Pod"}] * 10_001,
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
    ],
)
def test_a_json_patch_that_cannot_be_done_is_refused(api: KubeApi, body: Any, code: int, message: str) -> None:
    add_pod(api, "a")

    refused, status = patch(api, patch_types.JSON, body)

    assert (refused, status["message"]) == (code, message)


def test_copies_of_copies_do_not_fill_the_memory(api: KubeApi) -> None:
    add_pod(api, "a")
    body = [{"op": "add", "path": "/metadata/annotations", "value": {"x": "y" * 1000}}]
    body += [
        {"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/{number}"}
        for number in range(40)
    ]

    code, _ = patch(api, patch_types.JSON, body)

    assert code == 422


def test_a_merge_patch_replaces_lists_and_takes_away_what_is_null(api: KubeApi) -> None:
    body = pod("a")
    body["metadata"] |= {"labels": {"x": "1", "y": "2"}, "finalizers": ["example.com/a"]}
    ask(api, "POST", PODS_PATH, body)

    code, patched = patch(
        api, patch_types.MERGE, {"metadata": {"labels": {"x": None, "z": "3"}, "finalizers": ["example.com/b"]}}
    )

    assert (code, patched["metadata"]["labels"], patched["metadata"]["finalizers"]) == (
        200,
        {"y": "2", "z": "3"},
        ["example.com/b"],
    )


def test_a_strategic_patch_merges_lists_by_their_keys(api: KubeApi) -> None:
    add_pod(api, "a")
    both = {"containers": [{"name": "c", "image": "j"}]}

    code, patched = patch(api, patch_types.STRATEGIC, {"spec": both})

    assert (code, [(item["name"], item["image"]) for item in patched["spec"]["containers"]]) == (200, [("c", "j")])


def taints(api: KubeApi, *body: dict[str, Any], **more: Any) -> Any:
    add_node(api, "n")
    patch(api, patch_types.MERGE, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, "/api/v1/nodes/n")
    return patch(api, patch_types.STRATEGIC, {"spec": {"taints": list(body), **more}}, "/api/v1/nodes/n")


def test_lists_without_a_merge_key_are_replaced() -> None:
    code, node = taints(make_api(), {"key": "b", "effect": "NoExecute"})

    assert (code, [taint["key"] for taint in node["spec"]["taints"]]) == (200, ["b"])


def conditions(*patches: dict[str, Any], order: list[str] | None = None) -> tuple[int, Any]:
    """The conditions of a pod that has those of type a and b, after a strategic patch of its status."""
    api = make_api()
    add_pod(api, "a")
    before = [{"type": kind, "status": "True"} for kind in "ab"]
    patch(api, patch_types.MERGE, {"status": {"conditions": before}}, f"{PODS_PATH}/a/status")
    body: dict[str, Any] = {"conditions": list(patches)} if patches else {}
    if order is not None:
        body["$setElementOrder/conditions"] = [{"type": kind} for kind in order]
    code, answer = patch(api, patch_types.STRATEGIC, {"status": body}, f"{PODS_PATH}/a/status")
    if code != 200:
        return code, answer["message"]
    return code, [(condition["type"], condition["status"]) for condition in answer["status"].get("conditions", ())]


@pytest.mark.parametrize(
    ("patches", "order", "expected"),
    [
        ([{"type": "b", "status": "False"}], None, [("a", "True"), ("b", "False")]),
        ([{"type": "c", "status": "False"}], None, [("c", "False"), ("a", "True"), ("b", "True")]),
        ([{"$patch": "delete", "type": "a"}], None, [("b", "True")]),
        ([{"$patch": "replace"}, {"type": "c", "status": "Unknown"}], None, [("c", "Unknown")]),
        ([{"type": "c", "status": "True"}], ["b", "c", "a"], [("b", "True"), ("c", "True"), ("a", "True")]),
        ([], ["b", "a"], [("b", "True"), ("a", "True")]),
    ],
)
def test_strategic_patches_of_keyed_lists(
    patches: list[dict[str, Any]], order: list[str] | None, expected: list[tuple[str, str]]
) -> None:
    assert conditions(*patches, order=order) == (200, expected)


@pytest.mark.parametrize(
    ("patches", "order", "message"),
    [
        ([{"status": "True"}], None, "map: map[status:True] does not contain declared merge key: type"),
        ([{"$patch": "shuffle", "type": "a"}], None, "unknown patch type: shuffle in map: map[$patch:shuffle type:a]"),
        ([{"$patch": "merge", "type": "a"}], None, "merging lists cannot yet be specified in the patch"),
    ],
)
def test_strategic_patches_that_make_no_sense(
    patches: list[dict[str, Any]], order: list[str] | None, message: str
) -> None:
    assert conditions(*patches, order=order) == (500, message)


def test_maps_can_be_replaced_or_emptied_and_keys_retained(api: KubeApi) -> None:
    add_pod(api, "a", labels={"x": "1", "y": "2"})

    _, replaced = patch(api, patch_types.STRATEGIC, {"metadata": {"labels": {"$patch": "replace", "z": "3"}}})
    _, retained = patch(api, patch_types.STRATEGIC, {"metadata": {"labels": {"$retainKeys": ["w"], "w": "4"}}})
    code, status = patch(api, patch_types.STRATEGIC, {"metadata": {"labels": {"$retainKeys": ["a"], "b": "5"}}})
    _, emptied = patch(api, patch_types.STRATEGIC, {"metadata": {"labels": {"$patch": "delete"}}})

    assert (replaced["metadata"]["labels"], retained["metadata"]["labels"]) == ({"z": "3"}, {"w": "4"})
    assert "labels" not in emptied["metadata"]
    assert (code, status["message"]) == (400, "invalid patch format of retainKeys")


def test_primitives_are_merged_and_taken_out_of_lists(api: KubeApi) -> None:
    body = pod("a")
    body["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    ask(api, "POST", PODS_PATH, body)

    _, merged = patch(api, patch_types.STRATEGIC, {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}})
    _, removed = patch(
        api, patch_types.STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}}
    )

    assert sorted(merged["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/c"]
    assert sorted(removed["metadata"]["finalizers"]) == ["example.com/a", "example.com/c"]


def test_server_side_apply_creates_and_owns(api: KubeApi) -> None:
    body = (
        b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {x: one}\nspec:\n  containers: [{name: c, image: "
        b"i}]\n"
    )

    created, _ = patch(api, patch_types.APPLY, body, query="?fieldManager=me")
    second, pod = patch(api, patch_types.APPLY, body, query="?fieldManager=me")
    conflict, status = patch(api, patch_types.APPLY, body.replace(b"one", b"two"), query="?fieldManager=you")
    forced, last = patch(api, patch_types.APPLY, body.replace(b"one", b"two"), query="?fieldManager=you&force=true")

    assert (created, second, conflict, forced) == (201, 200, 409, 200)
    assert (status["reason"], status["details"]["causes"][0]["reason"]) == ("Conflict", "FieldManagerConflict")
    assert [(part["manager"], part["operation"]) for part in pod["metadata"]["managedFields"]] == [("me", "Apply")]
    assert last["metadata"]["labels"] == {"x": "two"}


def test_apply_needs_a_manager_and_others_no_force(api: KubeApi) -> None:
    add_pod(api, "a")

    unmanaged, first = patch(api, patch_types.APPLY, b"{}")
    forced, second = patch(api, patch_types.MERGE, {}, query="?force=true")

    assert (unmanaged, first["message"]) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )
    assert (forced, second["message"]) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    )


def test_first_error_of_a_doubly_invalid_apply_is_reported() -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": None, "spec": {"overhead": {"cpu": "9" * 99}}}

    code, status = patch(make_api(), patch_types.APPLY, body, query="?fieldManager=me")

    assert (code, status["message"]) == (
        500,
        "failed to convert new typed object (/; /v1, Kind=Pod) to object: quantities must not be longer than 64 "
        "characters",
    )


def test_a_patch_may_insist_on_a_version(api: KubeApi) -> None:
    version = add_pod(api, "a")["metadata"]["resourceVersion"]

    wrong, _ = patch(api, patch_types.MERGE, {"metadata": {"resourceVersion": "1", "labels": {"x": "y"}}})
    right, _ = patch(api, patch_types.MERGE, {"metadata": {"resourceVersion": version, "labels": {"x": "y"}}})

    assert (wrong, right) == (409, 200)


def test_a_patch_may_not_rename(api: KubeApi) -> None:
    add_pod(api, "a")

    code, status = patch(api, patch_types.MERGE, {"metadata": {"name": "b"}})

    assert (code, status["message"]) == (400, "the name of the object (b) does not match the name on the URL (a)")


def test_a_patch_that_leaves_the_schema_is_refused(api: KubeApi) -> None:
    add_pod(api, "a")

    wrong, status = patch(api, patch_types.MERGE, {"spec": {"priority": "high"}})
    strict, refused = patch(api, patch_types.MERGE, {"spec": {"colour": "red"}}, query="?fieldValidation=Strict")

    assert (wrong, status["reason"], status["details"]["causes"][0]["field"]) == (422, "Invalid", "patch")
    assert strict == 422
    assert 'strict decoding error: unknown field "spec.colour"' in refused["message"]


def test_patch_of_a_missing_object_is_404() -> None:
    code, status = patch(make_api(), patch_types.MERGE, {"metadata": {"labels": {"x": "y"}}})

    assert (code, status["message"]) == (404, 'pods "a" not found')


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (
            patch_types.JSON,
            [{"op": "remove", "path": "/spec/containers/0"}, {"op": "add", "path": "/metadata/labels/x", "value": "2"}],
        ),
        (patch_types.MERGE, {"metadata": {"labels": {"app": None, "x": "2"}}, "spec": {"containers": []}}),
        (
            patch_types.STRATEGIC,
            {"spec": {"containers": [{"name": "one", "image": "new"}, {"name": "two", "$patch": "delete"}]}},
        ),
        (patch_types.STRATEGIC, {"spec": {"containers": [{"name": "one", "env": [{"name": "A", "value": "2"}]}]}}),
        (patch_types.STRATEGIC, {"spec": {"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}]}}),
        (
            patch_types.STRATEGIC,
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"], "labels": {"$patch": "replace", "x": "2"}}},
        ),
        (patch_types.STRATEGIC, {"spec": {"$retainKeys": ["nodeName"], "nodeName": "node-1"}}),
    ],
)
def test_a_patch_leaves_the_original_as_it_was(kind: str, body: Any) -> None:
    original = {
        "metadata": {"labels": {"app": "web"}, "finalizers": ["a/b", "c/d"]},
        "spec": {
            "containers": [
                {"name": "one", "image": "old", "env": [{"name": "A", "value": "1"}]},
                {"name": "two", "image": "old"},
            ]
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    before = copy.deepcopy(original)

    patched = Patch(kind, body).of(api_types.type_of(PODS), original)

    assert original == before
    assert patched != before
    assert patched["status"] == before["status"]


def test_a_patch_of_the_status_keeps_the_fields_of_a_pod_in_order(api: KubeApi) -> None:
    stored = add_pod(api, "a", labels={"x": "1"})

    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    code, patched = patch(api, patch_types.STRATEGIC, {"status": {"conditions": [condition]}}, f"{PODS_PATH}/a/status")

    assert code == 200
    assert list(patched) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert patched["spec"] == stored["spec"]
    assert patched["status"]["conditions"][0]["reason"] == "Unschedulable"


def test_patched_spec_is_decoded_and_unknown_fields_are_dropped(api: KubeApi) -> None:
    add_pod(api, "a")

    body = {"spec": {"tolerations": [{"key": "k", "operator": "Exists", "unknown": 1}]}}
    code, patched = patch(api, patch_types.STRATEGIC, body, query="?fieldValidation=Warn")

    assert (code, patched["spec"]["tolerations"][0]) == (200, {"key": "k", "operator": "Exists"})

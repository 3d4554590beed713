"""LIST: which objects, as of when, page by page."""

import pytest

from extender.rules.api_resources import PODS
from reprieve.cluster.kube_api import KubeApi
from tests.reprieve.cluster.api_calls import PODS_PATH, add_node, add_pod, ask, make_api, names, send


def test_a_list_is_in_the_order_of_namespaces_and_names() -> None:
    api = make_api(namespaces=("default", "a", "default-too"))
    for namespace, name in (("default", "b"), ("default-too", "a"), ("a", "z"), ("default", "a")):
        add_pod(api, name, namespace)

    _, everywhere = ask(api, "GET", "/api/v1/pods")
    _, in_default = ask(api, "GET", PODS_PATH)

    assert names(everywhere) == ["z", "a", "a", "b"]  # "default-too/" comes before "default/"
    assert names(in_default) == ["a", "b"]


def test_items_of_a_list_do_not_repeat_their_kind(api: KubeApi) -> None:
    add_pod(api, "a")

    _, listed = ask(api, "GET", "/api/v1/pods")

    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert "kind" not in listed["items"][0]


def test_pages_say_how_much_is_to_come_and_where_to_go_on(api: KubeApi) -> None:
    for name in "abcde":
        add_pod(api, name)

    _, first = ask(api, "GET", f"{PODS_PATH}?limit=2")
    _, second = ask(api, "GET", f"{PODS_PATH}?limit=2&continue={first['metadata']['continue']}")
    _, third = ask(api, "GET", f"{PODS_PATH}?limit=2&continue={second['metadata']['continue']}")

    assert [names(page) for page in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [3, 1, None]
    assert "continue" not in third["metadata"]


def test_a_list_of_as_many_objects_as_the_limit_is_one_page(api: KubeApi) -> None:
    for name in "ab":
        add_pod(api, name)

    _, listed = ask(api, "GET", f"{PODS_PATH}?limit=2")

    assert names(listed) == ["a", "b"]
    assert not listed["metadata"].keys() & {"continue", "remainingItemCount"}


def test_later_pages_show_the_moment_of_the_first(api: KubeApi) -> None:
    for name in "acd":
        add_pod(api, name)
    _, first = ask(api, "GET", f"{PODS_PATH}?limit=1")
    ask(api, "DELETE", f"{PODS_PATH}/d?gracePeriodSeconds=0")
    for name in "be":
        add_pod(api, name)

    _, second = ask(api, "GET", f"{PODS_PATH}?limit=1&continue={first['metadata']['continue']}")

    assert names(second) == ["c"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second["metadata"]["remainingItemCount"] == 1


def test_a_page_of_a_forgotten_moment_is_expired_but_says_how_to_go_on(api: KubeApi) -> None:
    for name in "abc":
        add_pod(api, name)
    _, first = ask(api, "GET", f"{PODS_PATH}?limit=1")
    add_pod(api, "d")
    api.registry.store.compact(api.registry.store.resource_version)

    code, status = ask(api, "GET", f"{PODS_PATH}?limit=1&continue={first['metadata']['continue']}")
    _, rest = ask(api, "GET", f"{PODS_PATH}?continue={status['metadata']['continue']}")

    assert (code, status["code"], status["reason"]) == (410, 410, "Expired")
    assert status["message"].startswith(
        "The provided continue parameter is too old to display a consistent list result. You can start"
    )
    assert status["message"].endswith("between the time the first chunk was returned and now may show up in the list.")
    assert names(rest) == ["b", "c", "d"]


def test_any_age_is_answered_whole_whatever_the_limit(api: KubeApi) -> None:
    for name in "abc":
        add_pod(api, name)

    _, listed = ask(api, "GET", f"{PODS_PATH}?limit=1&resourceVersion=0")

    assert names(listed) == ["a", "b", "c"]


def test_the_greatest_limit_is_no_limit(api: KubeApi) -> None:
    add_pod(api, "a")

    code, listed = ask(api, "GET", f"{PODS_PATH}?limit={2**63 - 1}")

    assert (code, names(listed)) == (200, ["a"])


def test_an_exact_version_is_answered_as_it_was(api: KubeApi) -> None:
    first = add_pod(api, "a")["metadata"]["resourceVersion"]
    add_pod(api, "b")

    _, exact = ask(api, "GET", f"{PODS_PATH}?resourceVersion={first}&resourceVersionMatch=Exact")
    _, newer = ask(api, "GET", f"{PODS_PATH}?resourceVersion={first}&resourceVersionMatch=NotOlderThan")
    _, legacy = ask(api, "GET", f"{PODS_PATH}?resourceVersion={first}")
    _, page = ask(api, "GET", f"{PODS_PATH}?resourceVersion={first}&limit=9")

    assert [names(answer) for answer in (exact, newer, legacy, page)] == [["a"], ["a", "b"], ["a", "b"], ["a"]]


def test_an_exact_version_that_is_forgotten_is_expired(api: KubeApi) -> None:
    first = add_pod(api, "a")["metadata"]["resourceVersion"]
    add_pod(api, "b")
    api.registry.store.compact(api.registry.store.resource_version)

    code, status = ask(api, "GET", f"{PODS_PATH}?resourceVersion={first}&resourceVersionMatch=Exact")

    assert (code, status["message"]) == (410, "The resourceVersion for the provided list is too old.")


@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/nodes/n"])
def test_a_version_to_come_is_too_large(api: KubeApi, path: str) -> None:
    add_node(api, "n")
    now = api.registry.store.resource_version

    code, status = ask(api, "GET", f"{path}?resourceVersion={now + 1}")

    assert (code, status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert status["message"] == f"Timeout: Too large resource version: {now + 1}, current: {now}"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        (
            "resourceVersionMatch=Exact",
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            "resourceVersionMatch=Nearly&resourceVersion=1",
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Nearly": '
            'supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            "sendInitialEvents=1",
            422,
            'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for '
            "list",
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            "watch=1&sendInitialEvents=true",
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "resourceVersion=x",
            400,
            'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid '
            "syntax",
        ),
        ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=99999999999999999999", 400, 'strconv.ParseInt: parsing "99999999999999999999": value out of range'),
        ("continue=!", 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"),
        ("fieldSelector=spec.color%3Dred", 400, "field label not supported: spec.color"),
        ("fieldSelector=spec.nodeName", 400, "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'"),
        ("labelSelector=a%20in%20b", 400, "unable to parse requirement: found 'b' expected: '('"),
    ],
)
def test_contradictory_list_options_are_refused_in_upstreams_words(query: str, code: int, message: str) -> None:
    refused, status = ask(make_api(), "GET", f"/api/v1/pods?{query}")

    assert (refused, status["message"]) == (code, message)


def test_kinds_without_fields_of_their_own_are_selected_by_name_and_namespace() -> None:
    code, status = ask(make_api(), "GET", "/apis/apps/v1/deployments?fieldSelector=status.replicas%3D1")

    assert code == 400
    assert (
        status["message"]
        == '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("fieldSelector=spec.nodeName%3D", ["free"]),
        ("fieldSelector=spec.nodeName!%3D", ["bound"]),
        ("fieldSelector=spec.nodeName%3Dn,status.phase%3D%3DPending", ["bound"]),
        ("fieldSelector=spec.host%3Dn", ["bound"]),
        ("fieldSelector=spec.hostNetwork%3Dfalse,metadata.name%3Dfree", ["free"]),
        ("fieldSelector=metadata.namespace%3Dother", []),
        ("labelSelector=app%3Dx", ["bound"]),
        ("labelSelector=!app", ["free"]),
        ("labelSelector=app%20in%20(x,y)&fieldSelector=spec.nodeName%3Dm", []),
    ],
)
def test_selectors(api: KubeApi, selector: str, expected: list[str]) -> None:
    add_pod(api, "free")
    add_pod(api, "bound", nodeName="n", labels={"app": "x"})

    _, everywhere = ask(api, "GET", f"/api/v1/pods?{selector}")
    _, in_namespace = ask(api, "GET", f"{PODS_PATH}?{selector}")

    assert names(everywhere) == names(in_namespace) == expected


def test_tables_and_bare_metadata_are_lists_too(api: KubeApi) -> None:
    add_pod(api, "a")
    suffix = "v=v1;g=meta.k8s.io"

    _, table = ask(api, "GET", PODS_PATH, accept=f"application/json;as=Table;{suffix},application/json")
    _, whole = ask(api, "GET", f"{PODS_PATH}?includeObject=Object", accept=f"application/json;as=Table;{suffix}")
    _, bare = ask(api, "GET", PODS_PATH, accept=f"application/json;as=PartialObjectMetadataList;{suffix}")
    _, one = ask(api, "GET", f"{PODS_PATH}/a", accept=f"application/json;as=PartialObjectMetadata;{suffix}")

    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["resourceVersion"] == str(api.registry.store.resource_version)
    assert whole["rows"][0]["object"]["spec"]["containers"][0]["name"] == "c"
    assert (bare["kind"], set(bare["items"][0])) == ("PartialObjectMetadataList", {"kind", "apiVersion", "metadata"})
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "a")


def test_the_bytes_of_a_list_are_those_that_are_stored(api: KubeApi) -> None:
    add_pod(api, "a")
    stored = api.registry.store.get(PODS, "default", "a")
    assert stored is not None

    answer = send(api, "GET", PODS_PATH)

    assert stored.body in getattr(answer, "body", b"")

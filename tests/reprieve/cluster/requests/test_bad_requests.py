"""Whatever a caller sends, it gets a clear answer."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from extender.rules.api_resources import served
from extender.values import limits
from extender.values.config.feature_gates import DEFAULT_FEATURES
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.requests.request_info import Request
from reprieve.cluster.responses.response import Response
from tests.kit.examples import examples
from tests.reprieve.cluster.api_calls import PODS_PATH, add_node, add_pod, ask, make_api, pod, send

APPLY = "application/apply-patch+yaml"
UNRECOGNIZED = (
    "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: "
)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/", 404),
        ("GET", "/apis/nobody.example/v1/things", 404),
        ("GET", "/api/v1/things", 404),
        ("GET", f"{PODS_PATH}/a/log", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/pods/a", 404),
        ("GET", f"{PODS_PATH}/a/status/more", 404),
        ("POST", f"{PODS_PATH}/a", 405),
        ("PUT", PODS_PATH, 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("BREW", PODS_PATH, 405),
        ("GET", f"{PODS_PATH}/a/binding", 405),
        ("POST", "/api/v1/pods", 405),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405),
        ("POST", "/version", 405),
    ],
)
def test_unknown_path_or_method_is_answered_with_a_status(method: str, path: str, code: int) -> None:
    refused, status = ask(make_api(), method, path)

    assert (refused, status["kind"], status["code"]) == (code, "Status", code)
    assert status["message"] == (
        "the server could not find the requested resource"
        if code == 404
        else "the server does not allow this method on the requested resource"
    )


def test_an_apply_names_its_manager() -> None:
    api = make_api()
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **pod("a")}

    refused, status = ask(api, "PATCH", f"{PODS_PATH}/a", applied, content_type=APPLY)
    created, _ = ask(api, "PATCH", f"{PODS_PATH}/a?fieldManager=me", applied, content_type=APPLY)

    assert (refused, status["details"]["causes"][0]["field"], created) == (422, "fieldManager", 201)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"nonsense", "invalid character 'o' in literal null (expecting 'u') (6e6f6e73656e7365)"),
        (b'{"a"', 'unexpected end of JSON input ({"a")'),
        (b"{1:2}", "invalid character '1' looking for beginning of object key string ({1:2})"),
        (b'{"a":1 "b":2}', 'invalid character \'"\' after object key:value pair ({"a":1 "b":2})'),
        (b'{"a":[1 2]}', "invalid character '2' after array element ({\"a\":[1 2]})"),
        (b"{} {}", "invalid character '{' after top-level value ({} {})"),
        (b'{"a" 1}', "invalid character '1' after object key ({\"a\" 1})"),
        (
            b'{"metadata":{"name":"abcdefghijklmnopqrstuvwxyz"}',
            'unexpected end of JSON input ({"metadata":{"name":"abcdefghi ...)',
        ),
    ],
)
def test_malformed_json_is_refused_with_its_position(body: bytes, message: str) -> None:
    code, status = ask(make_api(), "POST", PODS_PATH, body)

    assert code == 400
    assert status["message"] == UNRECOGNIZED + message


def test_deeply_nested_json_is_refused() -> None:
    for body in (b"[" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000):
        code, status = ask(make_api(), "POST", PODS_PATH, body)

        assert code == 400
        assert status["message"].startswith(f"{UNRECOGNIZED}exceeded max depth")


@pytest.mark.parametrize("escape", ["\\ud800", "\\udc00x", "\\ud800\\ud800"])
def test_half_characters_are_replaced(api: KubeApi, escape: str) -> None:
    body = json.dumps(pod("a")).replace('"name": "a"', f'"name": "a", "annotations": {{"x": "{escape}"}}')

    code, created = ask(api, "POST", PODS_PATH, body.encode())

    assert code == 201
    assert set(created["metadata"]["annotations"]["x"]) <= {"\ufffd", "x"}


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "1e400", "-" + "9" * 25, "1.5", "1e3"])
def test_numbers_beyond_their_type_are_refused(number: str) -> None:
    body = json.dumps(pod("a")).replace('"containers"', f'"priority": {number}, "containers"')

    code, status = ask(make_api(), "POST", PODS_PATH, body.encode())

    assert (code, status["reason"]) == (400, "BadRequest")


def test_bytes_that_are_no_text_are_replaced() -> None:
    body = orjson.dumps(pod("a")).replace(b'"name":"a"', b'"name":"a","annotations":{"x":"\xff"}')

    code, created = ask(make_api(), "POST", PODS_PATH, body)

    assert (code, created["metadata"]["annotations"]) == (201, {"x": "\ufffd"})


def test_bodies_may_be_yaml() -> None:
    code, created = ask(
        make_api(),
        "POST",
        PODS_PATH,
        b"metadata: {name: a}\nspec: {containers: [{name: c, image: i}]}",
        content_type="application/yaml",
    )

    assert (code, created["metadata"]["name"]) == (201, "a")


@pytest.mark.parametrize(
    ("method", "content_type", "message"),
    [
        ("POST", "text/plain", "application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        (
            "PATCH",
            "application/json",
            "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, "
            "application/apply-patch+yaml",
        ),
    ],
)
def test_bodies_of_unknown_form_are_refused(method: str, content_type: str, message: str) -> None:
    path = PODS_PATH if method == "POST" else f"{PODS_PATH}/a"

    code, status = ask(make_api(), method, path, {}, content_type=content_type)

    assert (code, status["reason"]) == (415, "UnsupportedMediaType")
    assert (
        status["message"]
        == f"the body of the request was in an unknown format - accepted media types include: {message}"
    )


@pytest.mark.parametrize(
    "accept", ["text/html", "application/vnd.kubernetes.protobuf", "application/json;as=Song;v=v1;g=meta.k8s.io"]
)
def test_forms_that_we_cannot_answer_in_are_refused(accept: str) -> None:
    code, status = ask(make_api(), "GET", PODS_PATH, accept=accept)

    assert (code, status["reason"]) == (406, "NotAcceptable")
    assert status["message"].startswith("only the following media types are accepted: application/json")


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "application/*", "application/vnd.kubernetes.protobuf,application/json", "text/html, */*;q=0.1"],
)
def test_json_is_what_we_answer_in(accept: str) -> None:
    answer = send(make_api(), "GET", PODS_PATH, accept=accept)

    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")


def test_bodies_have_a_limit() -> None:
    code, status = ask(make_api(), "POST", PODS_PATH, b" " * (limits.API_BODY_BYTES + 1))

    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_an_api_in_memory_is_well_as_soon_as_it_is_there(path: str) -> None:
    answer = send(make_api(), "GET", path)

    assert isinstance(answer, Response)
    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, b"ok", "text/plain; charset=utf-8")


def test_a_head_is_an_answer_without_a_body() -> None:
    answer = send(make_api(), "HEAD", PODS_PATH)

    assert isinstance(answer, Response)
    assert (answer.status, answer.body) == (200, b"")


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "name", "spec", "$patch", "a", ""]), inner, max_size=3)
    ),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [
        PODS_PATH,
        f"{PODS_PATH}/a",
        f"{PODS_PATH}/a/status",
        f"{PODS_PATH}/a/binding",
        f"{PODS_PATH}/a/eviction",
        "/api/v1/nodes",
        "/api/v1/nodes/n",
    ]
)
TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ]
)


def fresh() -> KubeApi:
    api = make_api()
    add_pod(api, "a")
    add_node(api, "n")
    return api


def is_clear(answer: Any) -> bool:
    """Either what was asked for, or a Status with a reason; never an error of ours."""
    body = orjson.loads(answer.body)
    return bool(
        answer.status < 500
        or (
            body["kind"] == "Status"
            and body["message"] != "Internal error occurred: the request could not be processed"
        )
    )


@settings(max_examples=examples(150), deadline=None)
@given(method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]), path=PATHS, media_type=TYPES, value=JSON_VALUES)
def test_any_json_gets_a_clear_answer(method: str, path: str, media_type: str, value: Any) -> None:
    answer = send(fresh(), method, f"{path}?fieldManager=me", json.dumps(value).encode(), content_type=media_type)

    assert is_clear(answer)


@settings(max_examples=examples(100), deadline=None)
@given(
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    path=PATHS,
    media_type=TYPES,
    body=st.binary(max_size=40),
)
def test_any_bytes_get_a_clear_answer(method: str, path: str, media_type: str, body: bytes) -> None:
    assert is_clear(send(fresh(), method, path, body, content_type=media_type))


@settings(max_examples=examples(150), deadline=None)
@given(
    where=st.lists(
        st.sampled_from(
            ["metadata", "labels", "spec", "containers", "status", "conditions", "ownerReferences", "managedFields"]
        ),
        max_size=4,
    ),
    value=JSON_VALUES,
)
def test_wrong_types_anywhere_get_a_clear_answer(where: list[str], value: Any) -> None:
    for step in reversed(where):
        value = {step: value}
    api = fresh()

    for media_type in (
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ):
        assert is_clear(
            send(api, "PATCH", f"{PODS_PATH}/a?fieldManager=me", json.dumps(value).encode(), content_type=media_type)
        )
    merged = pod("b") | (value if isinstance(value, dict) else {})
    assert is_clear(send(api, "POST", PODS_PATH, json.dumps(merged).encode()))


@settings(max_examples=examples(60), deadline=None)
@given(
    path=st.text(alphabet="/apisv1.nodepwtch%\x00é", max_size=30),
    query=st.dictionaries(
        st.sampled_from(
            ["limit", "continue", "resourceVersion", "labelSelector", "fieldSelector", "resourceVersionMatch", "dryRun"]
        ),
        st.text(max_size=10),
        max_size=3,
    ),
)
def test_any_path_and_query_get_a_clear_answer(path: str, query: dict[str, str]) -> None:
    for requested_path in (f"/{path}", PODS_PATH):
        answer = fresh().handle(Request("GET", requested_path, {name: [value] for name, value in query.items()}))

        assert isinstance(answer, Response)
        assert is_clear(answer) or answer.headers["Content-Type"] != "application/json"


def test_every_kind_that_is_served_can_be_listed_and_watched(api: KubeApi) -> None:
    for resource in served(DEFAULT_FEATURES):
        if resource.is_stored:
            root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
            code, listed = ask(api, "GET", f"{root}/{resource.plural}")
            assert (code, listed["kind"]) == (200, f"{resource.kind}List")
            assert send(api, "GET", f"{root}/{resource.plural}?watch=1").status == 200


def test_an_object_that_is_too_large_for_the_store_is_refused_and_nothing_has_changed(api: KubeApi) -> None:
    """It fits into a request, and a patch may make it larger still."""
    before = api.registry.store.resource_version
    large = pod("large") | {"status": {"message": "x"}}
    large["spec"]["containers"][0]["command"] = ["x" * 2**20, "x" * 2**19]
    refused = send(api, "POST", PODS_PATH, large)

    assert isinstance(refused, Response)
    assert refused.status == 500
    assert orjson.loads(refused.body)["message"] == "etcdserver: request is too large"
    assert api.registry.store.resource_version == before
    assert ask(api, "GET", f"{PODS_PATH}/large")[0] == 404

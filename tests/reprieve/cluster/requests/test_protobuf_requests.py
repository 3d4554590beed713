"""Requests with bodies in protobuf: what they do, and what is said of broken ones."""

import orjson
import pytest
from hypothesis import given, strategies as st

from extender.rules.api_resources import PODS
from extender.rules.schema import api_types
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.requests import protobuf_objects
from reprieve.cluster.requests.request_info import Request
from tests.kit.cluster import make_registry
from tests.reprieve.cluster.requests.protobuf_sent import BUDGET, DEPLOYMENT, NAMESPACE
from tests.reprieve.cluster.requests.protobuf_writing import body, field, message, sample

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
CREATED = [
    ("/api/v1/namespaces", NAMESPACE),
    ("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", BUDGET),
]


def full(group, version, kind):
    """A body in which everything is said but what the server says of an object."""
    api_type = api_types.lookup(group, version, kind)
    obj = {**sample(api_type), "metadata": {"name": "web", "labels": {"app": "web"}}}
    return body(f"{group}/{version}".lstrip("/"), kind, message(api_type, obj))


BROKEN = [
    *CREATED,
    ("/api/v1/nodes", full("", "v1", "Node")),
    ("/api/v1/namespaces/default/pods", full("", "v1", "Pod")),
    ("/apis/resource.k8s.io/v1/resourceslices", full("resource.k8s.io", "v1", "ResourceSlice")),
    ("/apis/authorization.k8s.io/v1/subjectaccessreviews", full("authorization.k8s.io", "v1", "SubjectAccessReview")),
]
"""Before they are broken."""


def make_api():
    registry = make_registry("default")
    return registry, KubeApi(registry)


def post(api, path, data):
    return api.handle(
        Request("POST", path, {}, {"content-type": protobuf_objects.MEDIA_TYPE, "accept": "application/json"}, data)
    )


@pytest.mark.parametrize(("path", "data"), CREATED)
def test_message_of_a_go_client_creates_its_object(path, data):
    answer = post(make_api()[1], path, data)

    assert answer.status == 201
    assert orjson.loads(answer.body)["metadata"]["name"] == protobuf_objects.parse(data)["metadata"]["name"]


def test_a_pod_is_bound():
    registry, api = make_api()
    registry.create(PODS, "default", POD)
    target = field(1, "Node") + field(3, "n")

    answer = post(
        api,
        "/api/v1/namespaces/default/pods/web/binding",
        body("v1", "Binding", field(1, field(1, "web")) + field(2, target)),
    )

    assert answer.status == 201
    assert registry.get(PODS, "default", "web")["spec"]["nodeName"] == "n"


def test_a_pod_is_evicted():
    registry, api = make_api()
    registry.create(PODS, "default", POD)
    options = field(1, 0)

    answer = post(
        api,
        "/api/v1/namespaces/default/pods/web/eviction",
        body("policy/v1", "Eviction", field(1, field(1, "web") + field(3, "default")) + field(2, options)),
    )

    assert answer.status == 201
    assert registry.list(PODS) == []


def test_a_namespace_needs_a_name():
    answer = post(make_api()[1], "/api/v1/namespaces", body("v1", "Namespace", b""))

    assert answer.status == 422
    assert 'Namespace "" is invalid: metadata.name: Required value' in orjson.loads(answer.body)["message"]


UNRECOGNIZED = "the object provided is unrecognized (must be of type Namespace): "


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", f"{UNRECOGNIZED}empty data (<empty>)"),
        (b"k8s\0", f"{UNRECOGNIZED}empty body (6b387300)"),
        (NAMESPACE[:20], f"{UNRECOGNIZED}unexpected EOF (6b3873000a0f0a02763112094e616d6573706163)"),
        (
            body("v1", "Namespace", b"\x0a\x7f"),
            'Namespace in version "v1" cannot be handled as a Namespace: unexpected EOF',
        ),
        (
            body("apps/v1", "Deployment", b"\x0f"),
            'Deployment in version "v1" cannot be handled as a Namespace: proto: illegal wireType 7',
        ),
        (
            body("v1", "Unheard", b""),
            'Unheard in version "v1" cannot be handled as a Namespace: no kind "Unheard" is registered for version '
            '"v1" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)
def test_broken_message_is_refused_with_the_reason(data, message):
    answer = post(make_api()[1], "/api/v1/namespaces", data)

    assert answer.status == 400
    assert orjson.loads(answer.body)["message"] == message


def test_a_number_that_is_too_large_is_refused():
    answer = post(make_api()[1], "/api/v1/nodes", body("v1", "Node", field(3, field(6, field(1, field(1, 1 << 40))))))

    assert answer.status == 400
    assert (
        "cannot unmarshal number 1099511627776 into Go struct field DaemonEndpoint"
        in orjson.loads(answer.body)["message"]
    )


@given(st.data())
def test_a_broken_body_is_refused_or_read(data):
    """And the answer says which; nothing breaks behind the reader either."""
    path, whole = data.draw(st.sampled_from(BROKEN))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 4, len(whole))))
    broken = whole[:start] + data.draw(st.binary(max_size=4)) + whole[end:]

    answer = post(make_api()[1], path, broken)

    reply = orjson.loads(answer.body)
    # A resourceVersion, which may come about by chance, is refused with a 500 by upstream too: but with a message of
    # its own.
    assert reply.get("reason") != "InternalError", reply
    assert answer.status == 201 or (reply["kind"] == "Status" and reply["message"])


@pytest.mark.parametrize(("path", "data"), CREATED)
def test_a_body_that_ends_too_early_is_refused(path, data):
    """Wherever it ends; the last four bytes are two empty fields of the envelope."""
    _, api = make_api()

    answers = {post(api, path, data[:end]).status for end in range(len(data) - 4)}

    assert answers <= {400, 422}

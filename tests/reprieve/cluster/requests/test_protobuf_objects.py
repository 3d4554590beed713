"""Bodies in protobuf say the same as bodies in JSON."""

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from extender.rules.api_resources import DEPLOYMENTS, NAMESPACES, RESOURCES
from extender.rules.schema import api_types
from extender.values.golang.schema import read_as
from reprieve.cluster.requests import protobuf_objects
from tests.kit.tables import cases
from tests.reprieve.cluster.requests.protobuf_sent import BUDGET, DEPLOYMENT, NAMESPACE
from tests.reprieve.cluster.requests.protobuf_writing import body, field, message, sample, varint


def test_a_namespace():
    obj, _ = api_types.read(NAMESPACES, protobuf_objects.parse(NAMESPACE))

    assert obj == api_types.read(NAMESPACES, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}})[0]


def test_a_deployment():
    obj, problems = api_types.read(DEPLOYMENTS, protobuf_objects.parse(DEPLOYMENT))

    container = {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}}
    expected: Any = {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "nginx", "labels": {"app": "nginx"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "nginx"}},
            "template": {"metadata": {"labels": {"app": "nginx"}}, "spec": {"containers": [container]}},
        },
    }
    assert (obj, problems) == (api_types.read(DEPLOYMENTS, expected)[0], [])


def test_a_percentage():
    assert protobuf_objects.parse(BUDGET)["spec"] == {
        "maxUnavailable": "50%",
        "selector": {"matchLabels": {"app": "nginx"}},
    }


@cases(
    "api_version, kind, message, obj",
    (
        "a time with fractions",
        "coordination.k8s.io/v1",
        "Lease",
        field(2, field(1, "me") + field(2, 15) + field(3, field(1, 1_000_000_000) + field(2, 5_000))),
        {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2001-09-09T01:46:40.000005Z"}},
    ),
    (
        "a time, and none",
        "v1",
        "Namespace",
        field(1, field(8, field(1, 1_000_000_000)) + field(9, b"")),
        {"metadata": {"creationTimestamp": "2001-09-09T01:46:40Z", "deletionTimestamp": None}},
    ),
    (
        "a message that JSON does not show",
        "v1",
        "Pod",
        field(2, field(1, field(1, "v") + field(2, field(2, field(1, "Memory") + field(2, field(1, "1Gi")))))),
        {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]}},
    ),
    (
        "a negative number",
        "v1",
        "Pod",
        field(2, field(25, -5) + field(22, field(3, "NoSchedule"))),
        {"spec": {"priority": -5, "tolerations": [{"value": "NoSchedule"}]}},
    ),
    (
        "a map",
        "v1",
        "Node",
        field(
            3,
            field(1, field(1, "cpu") + field(2, field(1, "4")))
            + field(1, field(1, "pods") + field(2, field(1, "110"))),
        ),
        {"status": {"capacity": {"cpu": "4", "pods": "110"}}},
    ),
    (
        "lists in a map",
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        field(2, field(5, field(1, "k") + field(2, field(1, "a") + field(1, "b")))),
        {"spec": {"extra": {"k": ["a", "b"]}}},
    ),
    (
        "JSON in protobuf",
        "v1",
        "Namespace",
        field(1, field(17, field(1, "m") + field(7, field(1, '{"f:spec":{}}')))),
        {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]}},
    ),
    (
        "numbers packed together",
        "v1",
        "Pod",
        field(2, field(14, field(4, varint(1) + varint(300)) + field(4, 7))),
        {"spec": {"securityContext": {"supplementalGroups": [1, 300, 7]}}},
    ),
    (
        "a message in two parts",
        "v1",
        "Pod",
        field(1, field(1, "a")) + field(1, field(3, "b")),
        {"metadata": {"name": "a", "namespace": "b"}},
    ),
    (
        "a port by its name",
        "v1",
        "Pod",
        field(
            2,
            field(
                2, field(1, "c") + field(10, field(1, field(2, field(2, field(1, 1) + field(3, "web")))) + field(4, 5))
            ),
        ),
        {"spec": {"containers": [{"name": "c", "livenessProbe": {"httpGet": {"port": "web"}, "periodSeconds": 5}}]}},
    ),
    (
        "a volume of an unknown kind",
        "v1",
        "Pod",
        field(2, field(1, field(1, "v") + field(2, field(99, "x")))),
        {"spec": {"volumes": [{"name": "v"}]}},
    ),
    ("unknown fields", "v1", "Namespace", field(99, "x") + field(98, 7), {}),
    ("unknown kind", "v1", "Unheard", field(1, "x"), {}),
    (
        "options are the same everywhere",
        "apps/v1",
        "DeleteOptions",
        field(1, 0) + field(2, field(1, "u")) + field(4, "Foreground"),
        {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "propagationPolicy": "Foreground"},
    ),
)
def test_message_is_decoded_to_its_json_form(api_version, kind, message, obj):
    assert protobuf_objects.parse(body(api_version, kind, message)) == {"kind": kind, "apiVersion": api_version, **obj}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty data"),
        (b"k8s\0", "empty body"),
        (b"{}", "provided data does not appear to be a protobuf message"),
        (NAMESPACE[:20], "unexpected EOF"),
        (b"k8s\0" + b"\xff" * 11, "integer overflow"),
        (b"k8s\0\x0b", "illegal wireType 3"),
        (b"k8s\0" + field(1, 5), "wrong wireType"),
        (b"k8s\0\0\0", "illegal tag 0"),
        (body("v1", "Pod", field(2, b"\x59" + bytes(8))), "wrong wireType"),
        (body("v1", "Pod", field(2, field(11, "true"))), "wrong wireType"),
        (body("v1", "Pod", field(2, field(25, "high"))), "wrong wireType"),
        (body("v1", "Namespace", field(1, field(17, field(7, field(1, "[" * 101 + "]" * 101))))), "exceeded max depth"),
        (body("v1", "Namespace", field(1, field(17, field(7, field(1, "{"))))), "unexpected end of data"),
        (body("v1", "Namespace", field(1, field(8, field(1, 1 << 60)))), "a time beyond all bounds"),
    ],
)
def test_malformed_message_is_refused(data, why):
    with pytest.raises(ValueError, match=why):
        protobuf_objects.parse(data)


@pytest.mark.parametrize(
    ("api_version", "kind", "why"),
    [
        ("v1", "", r"""Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:"v1", Kind:""}'"""),
        ("", "Pod", r"""Object 'apiVersion' is missing in 'runtime.TypeMeta{APIVersion:"", Kind:"Pod"}'"""),
    ],
)
def test_message_without_kind_or_version_is_refused(api_version, kind, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        protobuf_objects.parse(body(api_version, kind, b""))


def test_message_without_type_is_read_as_the_expected_kind():
    assert protobuf_objects.parse(body("", "", field(1, field(1, "n"))), "v1", "Node") == {
        "kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"},
    }  # fmt: skip


@pytest.mark.parametrize(
    "kind", sorted({kind for resource in RESOURCES if resource.is_typed for kind in resource.kinds}), ids="/".join
)
def test_an_object_with_everything_is_read_as_it_was(kind):
    api_type, group = api_types.lookup(*kind), f"{kind[0]}/{kind[1]}".lstrip("/")
    whole = {**sample(api_type), "kind": kind[2], "apiVersion": group}

    parsed = protobuf_objects.parse(body(group, kind[2], message(api_type, whole)))

    assert parsed == whole
    assert read_as(api_type, parsed)[1] == []


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_nothing_but_value_error(data):
    for kind in (b"", NAMESPACE[:23], DEPLOYMENT[:29]):
        try:
            protobuf_objects.parse(kind + data)
        except ValueError:
            continue

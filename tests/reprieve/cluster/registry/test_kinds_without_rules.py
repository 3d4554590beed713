"""Kinds that no rule of the cluster's own is about are kept as they are sent, and who creates one is told."""

import base64

import orjson
import pytest

from tests.reprieve.cluster.api_calls import ask, make_api, send

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
APPLY = "application/apply-patch+yaml"


def test_who_creates_an_object_on_which_nothing_acts_is_warned():
    answer = send(make_api(), "POST", ACCOUNTS, {"metadata": {"name": "agent"}})

    assert answer.status == 201
    assert answer.headers["Warning"] == (
        '299 - "nothing acts on serviceaccounts in this cluster: the object is only stored"'
    )


def test_unknown_fields_of_published_types_are_refused():
    role = {"metadata": {"name": "r"}, "rulez": []}

    code, refusal = ask(
        make_api(), "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles?fieldValidation=Strict", role
    )

    assert code == 400
    assert refusal["message"].endswith('strict decoding error: unknown field "rulez"')


@pytest.mark.parametrize(("name", "code"), [("system:metrics", 201), ("a%b", 422)])
def test_names_of_rbac_may_have_colons_but_are_parts_of_paths(name, code):
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"

    assert ask(make_api(), "POST", path, {"metadata": {"name": name}})[0] == code


def test_texts_of_a_secret_are_kept_as_its_data():
    secret = {"metadata": {"name": "s"}, "stringData": {"key": "value"}}

    _, created = ask(make_api(), "POST", "/api/v1/namespaces/default/secrets", secret)

    assert (created["type"], created["data"]) == ("Opaque", {"key": base64.b64encode(b"value").decode()})
    assert "stringData" not in created


def test_fields_of_kinds_without_a_type_are_kept():
    webhooks = [{"name": "a.b.c", "clientConfig": {"service": {"name": "x", "namespace": "y"}}}]

    _, created = ask(make_api(), "POST", WEBHOOKS, {"metadata": {"name": "w"}, "webhooks": webhooks})

    assert created["webhooks"] == webhooks


@pytest.mark.parametrize(
    "content_type", ["application/merge-patch+json", "application/strategic-merge-patch+json", APPLY]
)
def test_kinds_without_a_type_are_patched(api, content_type):
    ask(api, "POST", WEBHOOKS, {"metadata": {"name": "w"}, "webhooks": [{"name": "a"}]})
    type_meta = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    patch = {**type_meta, "metadata": {"name": "w"}, "webhooks": [{"name": "b"}]}

    code, patched = ask(
        api,
        "PATCH",
        f"{WEBHOOKS}/w?fieldManager=kubectl{'&force=true' if content_type == APPLY else ''}",
        orjson.dumps(patch),
        content_type=content_type,
    )

    assert (code, patched["webhooks"]) == (200, [{"name": "b"}])


def test_kinds_without_a_type_have_no_form_in_protobuf():
    answer = send(make_api(), "POST", WEBHOOKS, b"k8s\0", content_type="application/vnd.kubernetes.protobuf")

    assert answer.status == 415


def test_a_pod_may_name_an_account_that_does_not_exist():
    pod = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "x", "containers": [{"name": "c", "image": "i"}]}}

    assert ask(make_api(), "POST", "/api/v1/namespaces/default/pods", pod)[0] == 201

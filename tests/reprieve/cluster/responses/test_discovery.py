"""Callers that look around are told what is served, in the form they ask for."""

import pytest

from extender.rules.api_resources import served
from extender.values.config.feature_gates import DEFAULT_FEATURES
from reprieve.cluster.responses import discovery
from tests.kit.tables import cases

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def body(path, accept="application/json"):
    document = discovery.answer(path, accept, address="h:1")
    assert document is not None
    return document.body


def test_the_core_group_has_its_own_root():
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "h:1"}]

    assert body("/api") == {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def test_groups_are_listed_in_upstreams_order():
    assert [group["name"] for group in body("/apis")["groups"]] == [
        "apiregistration.k8s.io",
        "apps",
        "events.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "discovery.k8s.io",
        "resource.k8s.io",
    ]


def test_a_group_tells_its_versions():
    version = {"groupVersion": "policy/v1", "version": "v1"}

    assert body("/apis/policy") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "policy",
        "versions": [version],
        "preferredVersion": version,
    }


def test_both_groups_of_events_have_one_storage_version():
    hashes = {
        resource["storageVersionHash"]
        for path in ("/api/v1", "/apis/events.k8s.io/v1")
        for resource in body(path)["resources"]
        if resource["name"] == "events"
    }

    assert hashes == {"r2yiGXH7wu8="}


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_one_document_may_tell_everything(version):
    accept = AGGREGATED.replace("v=v2", f"v={version}")

    document = discovery.answer("/api", accept)

    assert document is not None
    assert (document.content_type, document.cache_control) == (accept, "public")
    assert document.body["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    (core,) = document.body["items"]
    (v1,) = core["versions"]
    pods = next(resource for resource in v1["resources"] if resource["resource"] == "pods")
    assert pods["subresources"][1] == {
        "subresource": "eviction",
        "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "verbs": ["create"],
    }


def test_aggregated_and_plain_discovery_agree():
    plain = {
        (group["name"], resource["name"])
        for group in body("/apis")["groups"]
        for resource in body(f"/apis/{group['preferredVersion']['groupVersion']}")["resources"]
        if "/" not in resource["name"]
    }
    items = body("/apis", AGGREGATED)["items"]
    aggregated = {
        (item["metadata"]["name"], entry["resource"]) for item in items for entry in item["versions"][0]["resources"]
    }

    assert plain == aggregated == {(entry.group, entry.plural) for entry in served(DEFAULT_FEATURES) if entry.group}


@cases(
    "accept, kind",
    ("anything goes", "", "APIGroupList"),
    ("anything goes, in words", "*/*", "APIGroupList"),
    ("the first that is known", f"application/json,{AGGREGATED}", "APIGroupList"),
    ("as kubectl asks", f"{AGGREGATED},application/json", "APIGroupDiscoveryList"),
    (
        "unknown media types are skipped",
        f"application/vnd.kubernetes.protobuf;as=X,{AGGREGATED}",
        "APIGroupDiscoveryList",
    ),
    ("unknown versions are skipped", AGGREGATED.replace("v=v2", "v=v9") + ",application/json", "APIGroupList"),
)
def test_the_caller_chooses_the_form(accept, kind):
    assert body("/apis", accept)["kind"] == kind


def test_the_version_is_that_of_the_api():
    version = body("/version")

    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.2")


@pytest.mark.parametrize("path", ["/", "/api/v2", "/apis/nope", "/apis/apps/v2", "/api/v1/pods", "/healthz"])
def test_unknown_path_has_no_discovery_document(path):
    assert discovery.answer(path, "") is None

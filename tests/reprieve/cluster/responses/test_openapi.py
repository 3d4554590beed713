"""The API describes itself so that clients merge, explain and validate as they should."""

import json
import re

import pytest

from extender.rules.api_resources import served
from extender.rules.statuses import ApiStatus
from extender.values.config.feature_gates import DEFAULT_FEATURES
from reprieve.cluster.responses import openapi

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def answer_at(path: str, accept: str = "") -> tuple[str, bytes]:
    """The media type and the body."""
    answer = openapi.answer(path, accept)
    assert answer is not None
    return answer


def document(path):
    return json.loads(answer_at(path)[1])


@pytest.fixture(scope="module")
def core():
    return document("/openapi/v3/api/v1")


def schema_of(core, kind):
    return core["components"]["schemas"][f"io.k8s.api.core.v1.{kind}"]


def test_the_index_names_a_document_for_every_group_and_version():
    places = document("/openapi/v3")["paths"]

    assert {f"apis/{kind.api_version}" if kind.group else "api/v1" for kind in served(DEFAULT_FEATURES)} == set(places)
    for place in places.values():
        assert openapi.answer(place["serverRelativeURL"].partition("?")[0]) is not None


@pytest.mark.parametrize(
    ("path", "where"), [("/openapi/v2", "#/definitions/"), ("/openapi/v3/apis/apps/v1", "#/components/schemas/")]
)
def test_every_reference_leads_somewhere(path, where):
    whole = document(path)

    schemas = whole["definitions"] if path == "/openapi/v2" else whole["components"]["schemas"]
    assert set(re.findall(rf"{where}([\w.]+)", json.dumps(whole))) <= set(schemas)


def test_lists_say_how_they_are_merged(core):
    containers = schema_of(core, "PodSpec")["properties"]["containers"]

    assert containers["x-kubernetes-list-type"] == "map"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["items"] == {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}


def test_types_say_whether_they_are_one_value(core):
    assert schema_of(core, "ObjectReference")["x-kubernetes-map-type"] == "atomic"
    assert schema_of(core, "PersistentVolumeSpec")["properties"]["claimRef"]["x-kubernetes-map-type"] == "granular"


def test_required_fields_and_defaults(core):
    assert schema_of(core, "PodSpec")["required"] == ["containers"]
    assert schema_of(core, "ContainerPort")["properties"]["protocol"]["default"] == "TCP"


def test_kinds_are_found_by_group_version_and_kind(core):
    assert schema_of(core, "Pod")["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert schema_of(core, "PodList")["properties"]["items"]["items"] == {
        "$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"
    }


def test_the_server_offers_to_validate_fields(core):
    """kubectl leaves validation to a server whose patch takes `fieldValidation`."""
    pod = core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]

    patch = {parameter["name"] for parameter in pod["patch"]["parameters"]}
    assert patch == {"dryRun", "fieldManager", "fieldValidation", "force"}
    assert pod["patch"]["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert set(pod) == {"get", "put", "patch", "delete", "parameters"}


def test_subresources_have_kinds_of_their_own(core):
    eviction = core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]

    assert eviction["x-kubernetes-group-version-kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


def test_operations_have_names_of_their_own(core):
    pods = core["paths"]["/api/v1/namespaces/{namespace}/pods"]

    assert pods["post"]["operationId"] == "createCoreV1NamespacedPod"
    assert pods["delete"]["operationId"] == "deleteCoreV1CollectionNamespacedPod"
    for path in document("/openapi/v3")["paths"]:
        operations = [
            operation["operationId"]
            for item in document(f"/openapi/v3/{path}")["paths"].values()
            for method, operation in item.items()
            if method != "parameters"
        ]
        assert len(operations) == len(set(operations))


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", f"{PROTOBUF};q=0.5,application/json"])
def test_json_is_what_most_callers_get(accept):
    assert answer_at("/openapi/v2", accept)[0] == "application/json"


@pytest.mark.parametrize("accept", [PROTOBUF, f"{PROTOBUF},application/json;q=0.5"])
def test_protobuf_is_served_when_accepted(accept):
    media_type, body = answer_at("/openapi/v2", accept)

    assert media_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert body != answer_at("/openapi/v2")[1]


@pytest.mark.parametrize(
    ("path", "accept"), [("/openapi/v3", PROTOBUF), ("/openapi/v3/api/v1", PROTOBUF), ("/openapi/v2", "text/html")]
)
def test_unsupported_media_type_is_not_acceptable(path, accept):
    with pytest.raises(ApiStatus) as refusal:
        openapi.answer(path, accept)

    assert refusal.value.code == 406


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v3/apis/nope/v1", "/api/v1"])
def test_unknown_paths_are_not_served(path):
    assert openapi.answer(path) is None

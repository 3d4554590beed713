"""What a CustomResourceDefinition defines is served from the next request on, and goes with it."""

from typing import Any

import orjson
import pytest

from extender.rules.api_resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Object
from extender.rules.seeding import seed
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.reprieve.cluster.api_calls import ask, events, make_api, names, send, summary
from tests.reprieve.cluster.controllers.running_cluster import running_controllers, settle

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
APPLY = "application/apply-patch+yaml"
TYPE_META = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}


def definition(plural: str = "widgets", kind: str = "Widget", scope: str = "Namespaced", **version: Any) -> Object:
    versions = [{"name": "v1", "served": True, "storage": True, **version}]
    names_of_it = {"plural": plural, "kind": kind, "shortNames": [plural[:2]]}
    spec = {"group": "example.com", "scope": scope, "names": names_of_it, "versions": versions}
    return {**TYPE_META, "metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def widget(name: str = "w", **fields: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **fields}


def defined(**how: Any) -> KubeApi:
    api = make_api()
    api.registry.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition(**how))
    return api


def test_objects_are_kept_with_all_their_fields() -> None:
    api = defined()

    code, created = ask(api, "POST", WIDGETS, widget(spec={"a": [{"b": 1}]}, extra="x"))

    assert (code, created["spec"], created["extra"]) == (201, {"a": [{"b": 1}]}, "x")
    assert names(ask(api, "GET", WIDGETS)[1]) == ["w"]


def test_who_creates_one_is_warned() -> None:
    answer = send(defined(), "POST", WIDGETS, widget())

    assert answer.headers["Warning"].startswith('299 - "nothing acts on widgets.example.com')


def test_what_is_not_defined_is_not_served() -> None:
    assert ask(make_api(), "POST", WIDGETS, widget())[0] == 404


def test_list_of_definitions_is_empty_at_first() -> None:
    """kubectl looks here before it says that a kind is unknown."""
    answer = ask(make_api(), "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")[1]

    assert (answer["kind"], answer["items"]) == ("CustomResourceDefinitionList", [])


def test_a_definition_is_established_at_once() -> None:
    status = ask(defined(), "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")[1][
        "status"
    ]

    assert {condition["type"]: condition["status"] for condition in status["conditions"]}["Established"] == "True"


def test_kubectl_finds_the_kind() -> None:
    api = defined()

    group = ask(api, "GET", "/apis/example.com/v1")[1]

    assert [(resource["name"], resource["kind"], resource["namespaced"]) for resource in group["resources"]] == [
        ("widgets", "Widget", True)
    ]
    assert "example.com" in [api_group["name"] for api_group in ask(api, "GET", "/apis")[1]["groups"]]


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", APPLY])
def test_objects_are_patched(content_type: str) -> None:
    api = defined()
    ask(api, "POST", WIDGETS, widget(spec={"a": 1, "b": 2}))
    how = "&force=true" if content_type == APPLY else ""

    code, patched = ask(
        api,
        "PATCH",
        f"{WIDGETS}/w?fieldManager=kubectl{how}",
        orjson.dumps(widget(spec={"a": 5, "b": 2})),
        content_type=content_type,
    )

    assert (code, patched["spec"], patched["metadata"]["generation"]) == (200, {"a": 5, "b": 2}, 2)


def test_the_status_has_a_place_of_its_own() -> None:
    api = defined(subresources={"status": {}})
    created = ask(api, "POST", WIDGETS, widget(status={"ready": True}))[1]

    _, updated = ask(api, "PUT", f"{WIDGETS}/w/status", {**created, "status": {"ready": False}})

    assert "status" not in created
    assert updated["status"] == {"ready": False}


async def test_objects_are_watched() -> None:
    api = defined()
    watch = send(api, "GET", f"{WIDGETS}?watch=true&timeoutSeconds=1")

    ask(api, "POST", WIDGETS, widget())

    assert [*map(summary, await events(watch))] == [("ADDED", "w")]


def test_a_kind_that_is_called_like_a_known_one_has_none_of_its_rules() -> None:
    api = defined(plural="jobs", kind="Job")
    job = {"apiVersion": "example.com/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": []}}

    code, created = ask(api, "POST", WIDGETS.replace("widgets", "jobs"), job)

    assert (code, created["spec"]) == (201, {"tasks": []})
    assert (
        ask(api, "GET", WIDGETS.replace("widgets", "jobs"), accept="application/json;as=Table;g=meta.k8s.io;v=v1")[0]
        == 200
    )


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"metadata": {"name": "other.example.com"}}, 'must be spec.names.plural+"."+spec.group'),
        ({"spec": {}}, "spec: Invalid value"),
        ({"spec": {**definition()["spec"], "scope": "All"}}, "spec.scope: Unsupported value"),
    ],
    ids=["name", "empty", "scope"],
)
def test_a_wrong_definition_is_refused(wrong: Any, why: str) -> None:
    code, refusal = ask(
        make_api(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition() | wrong
    )

    assert code == 422
    assert why in refusal["message"]


def test_a_dump_may_name_objects_before_their_definition() -> None:
    registry = make_registry("default")

    report = seed(registry, [widget(), definition()])

    assert (report.stored, report.left_out) == ({"CustomResourceDefinition": 1, "Widget": 1}, {})


async def test_a_namespace_takes_its_custom_objects_along() -> None:
    async with running_controllers() as registry:
        registry.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
        registry.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition())
        api = KubeApi(registry)
        ask(api, "POST", WIDGETS.replace("default", "shop"), widget())

        registry.delete(NAMESPACES, "", "shop")
        await settle()

        assert ask(api, "GET", "/apis/example.com/v1/widgets")[1]["items"] == []
        assert "shop" not in [namespace["metadata"]["name"] for namespace in registry.list(NAMESPACES)]


async def test_a_definition_takes_its_objects_along() -> None:
    async with running_controllers() as registry:
        registry.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition())
        api = KubeApi(registry)
        ask(api, "POST", WIDGETS, widget())
        await settle()

        registry.delete(CUSTOM_RESOURCE_DEFINITIONS, "", "widgets.example.com")
        await settle()
        registry.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition())

        assert ask(api, "GET", WIDGETS)[1]["items"] == []


async def test_what_a_custom_object_owns_goes_with_it() -> None:
    async with running_controllers() as registry:
        registry.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition())
        api = KubeApi(registry)
        created = ask(api, "POST", WIDGETS, widget())[1]
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": created["metadata"]["uid"]}
        registry.create(CONFIG_MAPS, "default", {"metadata": {"name": "c", "ownerReferences": [owner]}})
        await settle()

        ask(api, "DELETE", f"{WIDGETS}/w")
        await settle()

        assert registry.list(CONFIG_MAPS) == []

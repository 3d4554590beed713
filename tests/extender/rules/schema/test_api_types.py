"""What the table of API types says holds together, and says what clients rely on."""

from typing import Any

import pytest

from extender.rules.api_resources import RESOURCES
from extender.rules.schema import api_types
from extender.values.golang.schema import Field, Kind, ListOf, MapOf, Presence, Scalar, Struct


def structs(field_type, collected):
    if isinstance(field_type, ListOf):
        structs(field_type.item, collected)
    elif isinstance(field_type, MapOf):
        structs(field_type.value, collected)
    elif isinstance(field_type, Struct) and field_type not in collected:
        collected.add(field_type)
        for field in field_type.fields.values():
            structs(field.type, collected)


@pytest.fixture(scope="module")
def all_structs():
    collected: set[Struct] = set()
    for resource in RESOURCES:
        for kind in resource.kinds:
            structs(api_types.lookup(*kind), collected)
    return collected


def test_every_resource_and_subresource_has_a_type():
    for resource in RESOURCES:
        assert api_types.type_of(resource).short_name == resource.kind
        assert [api_types.lookup(*kind).short_name for kind in resource.kinds] == [
            kind for _, _, kind in resource.kinds
        ]


@pytest.mark.parametrize(
    "kind", [("", "v1", "Container"), ("core", "v1", "Pod"), ("meta", "v1", "Status"), ("", "v2", "Pod")], ids="/".join
)
def test_unknown_kind_is_not_found(kind):
    assert api_types.find(*kind) is None


def test_kinds_that_are_not_served_are_known():
    batch_kinds = [api_types.find("batch", "v1", kind) for kind in ("Job", "CronJob")]

    assert [struct and struct.short_name for struct in batch_kinds] == ["Job", "CronJob"]


def test_keys_of_lists_are_fields_of_their_items(all_structs):
    lists: list[Any] = [
        field.type for struct in all_structs for field in struct.fields.values() if isinstance(field.type, ListOf)
    ]

    assert [kind for kind in lists if kind.list_type == "map" and not set(kind.keys) <= set(kind.item.fields)] == []
    assert [kind for kind in lists if (kind.list_type == "map") != bool(kind.keys)] == []


def test_merge_keys_are_fields_of_the_items(all_structs):
    for struct in all_structs:
        for field in struct.fields.values():
            assert field.patch_key is None or field.patch_key in field.type.item.fields


def test_absent_keys_of_list_items_have_a_default(all_structs):
    """Items are told apart by all of their keys: one that need not be given means its default. The secrets of an
    account are references whose names have none, as upstream.
    """
    optional = {
        (struct.short_name, key)
        for struct in all_structs
        for field in struct.fields.values()
        if isinstance(field.type, ListOf) and isinstance(field.type.item, Struct)
        for key in field.type.keys
        if not (key_field := field.type.item.fields[key]).required
        and key_field.default is None
        and key_field.presence is Presence.OMIT
    }

    assert optional == {("ServiceAccount", "name")}


@pytest.mark.parametrize(
    ("kind", "name", "key", "strategy"),
    [
        ("PodSpec", "containers", "name", "merge"),
        ("PodSpec", "volumes", "name", "merge,retainKeys"),
        ("PodStatus", "conditions", "type", "merge"),
        ("Container", "ports", "containerPort", "merge"),
        ("NodeSpec", "taints", None, ""),
        ("DeploymentSpec", "strategy", None, "retainKeys"),
        ("ObjectMeta", "ownerReferences", "uid", "merge"),
    ],
)
def test_patch_key_and_strategy_of_lists_are_upstreams(all_structs, kind, name, key, strategy):
    field = next(struct for struct in all_structs if struct.short_name == kind).fields[name]

    assert (field.patch_key, field.patch_strategy) == (key, strategy)


def test_zero_value_of_a_pod_keeps_only_required_fields():
    assert api_types.lookup("", "v1", "Pod").zero() == {"metadata": {}, "spec": {"containers": None}, "status": {}}
    assert Field(Scalar(Kind.STRING)).presence is Presence.OMIT

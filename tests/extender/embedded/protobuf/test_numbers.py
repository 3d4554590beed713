"""The numbers are written by hand; here they are held against the schema."""

import pytest

from extender.embedded import schema
from extender.embedded.protobuf.fields import numbered
from extender.embedded.protobuf.numbers import (
    NUMBERS,
    containers,
    devices,
    events,
    metadata,
    nodes,
    others,
    pods,
    scheduling,
    services,
    storage,
    volumes,
    workloads,
)
from extender.embedded.schema.types import ListOf, MapOf, Struct

DISKS_OF_FORMER_TIMES = {
    "azureFile", "cephfs", "fc", "flexVolume", "flocker", "gitRepo", "glusterfs", "photonPersistentDisk", "portworxVolume", "quobyte",
    "scaleIO", "storageos", "vsphereVolume",
}  # fmt: skip


def inner(of):
    """The Struct in a type, if there is one."""
    while isinstance(of, (ListOf, MapOf)):
        of = of.item if isinstance(of, ListOf) else of.value
    return of if isinstance(of, Struct) else None


def structs():
    """Those of every kind that is served, by name."""
    found, waiting = {}, list(schema.KINDS.values())
    while waiting:
        of = waiting.pop()
        if of.name not in found:
            found[of.name] = of
            waiting += [each for each in (inner(field.type) for field in of.fields.values()) if each is not None]
    return found


def names(numbers):
    """The fields that have a number, and those of the messages that JSON does not show."""
    for name in numbers.values():
        yield from [name] if isinstance(name, str) else names(name)


STRUCTS = structs()


def test_a_number_stands_for_one_field():
    with pytest.raises(ValueError, match="second: number 1 is there twice"):
        numbered(first=1, second=1)


def test_a_hidden_message_takes_a_number_too():
    with pytest.raises(ValueError, match="name: number 1 is there twice"):
        numbered({1: numbered(inside=1)}, name=1)


def test_a_message_stands_in_one_table():
    tables = [
        metadata.METADATA, nodes.NODES, pods.PODS, containers.CONTAINERS, scheduling.SCHEDULING, volumes.VOLUMES, storage.STORAGE,
        services.SERVICES, workloads.WORKLOADS, events.EVENTS, devices.DEVICES, others.OTHERS,
    ]  # fmt: skip

    assert sum(map(len, tables)) == len(NUMBERS)


@pytest.mark.parametrize("message", NUMBERS)
def test_the_schema_knows_every_field(message):
    found = list(names(NUMBERS[message]))

    assert set(found) <= set(STRUCTS[message].fields)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("message", NUMBERS)
def test_a_field_leads_to_a_message_with_numbers(message):
    fields = STRUCTS[message].fields
    within = {name: inner(fields[name].type) for name in names(NUMBERS[message])}

    assert [name for name, of in within.items() if of is not None and of.name not in NUMBERS] == []


def test_what_go_clients_do_not_send_is_left_out():
    """Volumes that nobody has any more, what became of the kubelet's configuration, and two alpha features."""
    left_out = {
        (STRUCTS[message].short_name, name)
        for message, numbers in NUMBERS.items()
        for name in set(STRUCTS[message].fields) - set(names(numbers)) - {"kind", "apiVersion"}
    }

    former = {(of, name) for of in ("Volume", "PersistentVolumeSpec") for name in DISKS_OF_FORMER_TIMES}
    assert left_out == former - {("PersistentVolumeSpec", "gitRepo")} | {
        ("NodeSpec", "configSource"),
        ("NodeStatus", "config"),
        ("PodStatus", "nodeAllocatableResourceClaimStatuses"),
        ("Device", "nodeAllocatableResourceMappings"),
    }


def test_every_kind_can_be_read_but_the_one_that_only_we_send():
    assert {of.short_name for of in schema.KINDS.values() if of.name not in NUMBERS} == {"Status"}

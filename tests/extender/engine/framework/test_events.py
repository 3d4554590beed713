"""Events: how they are called, and who hears of them."""

import pytest

from extender.engine.framework import ALL_EVENTS, ActionType, ClusterEvent, EventResource, QueueingHint, on, queue_if
from extender.engine.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    match_any,
)
from tests.kit.tables import cases

NODE, POD = EventResource.NODE, EventResource.POD
ASSIGNED, UNSCHEDULABLE = EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD
ANY = EventResource.WILDCARD
ADD, UPDATE, DELETE, ALL = ActionType.ADD, ActionType.UPDATE, ActionType.DELETE, ActionType.ALL
LABEL, TAINT = ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ClusterEvent(NODE, ADD), "NodeAdd"),
        (ClusterEvent(NODE, TAINT), "NodeUpdateNodeTaint"),
        (EVENT_ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (ClusterEvent(UNSCHEDULABLE, UPDATE), "UnschedulablePodUpdate"),
        (ClusterEvent(EventResource.CSI_NODE, ADD), "storage.k8s.io/CSINodeAdd"),
        (ClusterEvent(NODE, ADD | TAINT), "Node"),
        (EVENT_FORCE_ACTIVATE, "ForceActivate"),
    ],
)
def test_labels(event: ClusterEvent, label: str) -> None:
    """What happened to what; an event may have a name of its own, several actions together have none."""
    assert event.label == label


@cases(
    "registered, incoming, heard",
    ("just that", (NODE, ADD), (NODE, ADD), True),
    ("one of those", (NODE, ADD | LABEL), (NODE, LABEL), True),
    ("none of those", (NODE, ADD | LABEL), (NODE, TAINT), False),
    ("not even where the number is less", (NODE, ADD | LABEL), (NODE, DELETE), False),
    ("of another kind", (NODE, ADD), (POD, ADD), False),
    ("pods on nodes are pods", (POD, DELETE), (ASSIGNED, DELETE), True),
    ("pods without a node, too", (POD, UPDATE), (UNSCHEDULABLE, ActionType.UPDATE_POD_LABEL), True),
    ("a change that is not that special", (POD, ActionType.UPDATE_POD_LABEL), (UNSCHEDULABLE, UPDATE), False),
    ("any change", (POD, UPDATE), (UNSCHEDULABLE, UPDATE), True),
    ("not the other way round", (ASSIGNED, ADD), (POD, ADD), False),
    ("of any kind", (ANY, DELETE), (NODE, DELETE), True),
    ("of any kind, but not that", (ANY, DELETE), (NODE, ADD), False),
    ("everything", (ANY, ALL), (NODE, LABEL), True),
    ("everything, and anything happened", (ANY, ALL), (ANY, ALL), True),
    ("anything happened: the queue sees to that", (NODE, ALL), (ANY, ALL), False),
)
def test_incoming_event_matches_a_registered_event_that_covers_it(
    registered: tuple[EventResource, ActionType], incoming: tuple[EventResource, ActionType], heard: bool
) -> None:
    event, other = ClusterEvent(*registered), ClusterEvent(EventResource.DEVICE_CLASS, ADD)

    assert event.matches(ClusterEvent(*incoming)) is heard
    assert match_any([other, event], ClusterEvent(*incoming)) is heard


def test_wildcard_event_with_a_label_of_its_own_matches() -> None:
    assert ClusterEvent(ANY, ALL).matches(EVENT_UNSCHEDULABLE_TIMEOUT)
    assert EVENT_UNSCHEDULABLE_TIMEOUT.is_wildcard


def test_plugins_that_do_not_say_hear_of_everything_that_happens_to_ten_kinds() -> None:
    """Upstream's list: no volume attachments, no slices."""
    assert {entry.event.action for entry in ALL_EVENTS} == {ALL}
    assert {entry.hint for entry in ALL_EVENTS} == {None}
    assert {entry.event.resource.value for entry in ALL_EVENTS} == {
        "Pod",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "storage.k8s.io/CSINode",
        "storage.k8s.io/CSIDriver",
        "storage.k8s.io/CSIStorageCapacity",
        "storage.k8s.io/StorageClass",
        "resource.k8s.io/ResourceClaim",
        "resource.k8s.io/DeviceClass",
    }


def test_hints_from_a_yes_or_no() -> None:
    assert (queue_if(True), queue_if(False)) == (QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP)
    assert on(NODE, ADD).event == ClusterEvent(NODE, ADD)

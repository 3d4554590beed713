"""The in-tree plugins want to hear of the same events as upstream's, and the queue is told so in the same way."""

from typing import Any

import pytest

from extender.engine.framework.events import ActionType, ClusterEvent, EventResource, always_queue
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.queueing_hints import queueing_hint_map, registrations
from extender.testing import make_framework
from extender.values.config.feature_gates import DEFAULT_FEATURES
from extender.values.config.plugin_sets import GATE_OF
from tests.parity.cases import component_document
from tests.parity.recorded_events import as_recorded

RECORDED = component_document("registered-events")
pytestmark = pytest.mark.skipif(RECORDED is None, reason="a folder of other cases may lack this one")


BY_DEFAULT = [cls for name, cls in IN_TREE.items() if name not in GATE_OF or DEFAULT_FEATURES.enabled(GATE_OF[name])]
"""The table was recorded while feature gates had their defaults."""


OURS = {
    ClusterEvent(EventResource.NAMESPACE, ActionType.ADD | ActionType.UPDATE),
    ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.DELETE),
    ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE),
}
"""Events that v1.36.2 does not register for; see docs/reference/differences.md."""


def recorded() -> dict[str, Any]:
    assert RECORDED is not None
    return RECORDED


def test_action_bits() -> None:
    """Actions have upstream's names and numbers."""
    assert recorded()["actionBits"] == {str(action): int(action) for action in ActionType.__members__.values()}


def test_events_to_register() -> None:
    """Each plugin registers the same events in the same order, with or without a hint."""
    registered = registrations(make_framework(*BY_DEFAULT).plugins)

    assert recorded()["plugins"] == {
        name: [
            {key: value for key, value in as_recorded(registration.event).items() if key != "label"}
            | {"actionMask": int(registration.event.action), "hasQueueingHintFn": registration.hint is not None}
            for registration in events
            if registration.event not in OURS
        ]
        for name, events in registered.items()
    }


def test_the_table_for_the_queue() -> None:
    """The queue gets one table: event -> plugins. Who hears of new nodes hears of taints as well, and is then always
    worth a try.
    """
    table = queueing_hint_map(registrations(make_framework(*BY_DEFAULT).plugins))

    assert {(row["resource"], row["actionMask"]): row["plugins"] for row in recorded()["queueingHintMap"]} == {
        (event.resource.value, int(event.action)): sorted(hint.plugin_name for hint in hints)
        for event, hints in table.items()
        if event not in OURS
    }
    assert {
        hint.hint for event, hints in table.items() if event.action is ActionType.UPDATE_NODE_TAINT for hint in hints
    } == {always_queue}

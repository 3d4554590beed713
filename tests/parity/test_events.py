"""A change of a pod or a node is told as the same cluster events as upstream tells it."""

from typing import Any

from extender.engine.scheduler.event_handlers import node_scheduling_properties_change, pod_scheduling_properties_change
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from tests.kit.many_cases import each_case
from tests.parity.cases import component_cases
from tests.parity.recorded_events import as_recorded


@each_case(lambda: component_cases("events"))
def test_events(case: dict[str, Any]) -> None:
    """The same events in the same order; a node may change without any."""
    old, new = case["input"]["old"], case["input"]["new"]

    if case["input"]["kind"] == "Node":
        events = node_scheduling_properties_change(convert(Node, old), convert(Node, new))
    else:
        events = pod_scheduling_properties_change(convert(Pod, old), convert(Pod, new))

    assert case["expect"] == [as_recorded(event) for event in events]

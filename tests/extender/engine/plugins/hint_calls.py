"""Calls a plugin's queueing hints as the plugin registers them."""

from collections.abc import Sequence
from typing import Any

from extender.engine.framework import ClusterEvent, Plugin, QueueingHint
from extender.engine.framework.events import always_queue
from extender.engine.scheduler.event_handlers import node_scheduling_properties_change, pod_scheduling_properties_change
from extender.testing import NodeBuilder, PodBuilder, make_cache, make_framework
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

Built = PodBuilder | NodeBuilder | HasMetadata | None


def is_worth_a_try(
    plugin: type[Plugin],
    pod: PodBuilder,
    event: ClusterEvent,
    old: Built,
    new: Built,
    *,
    objects: Sequence[HasMetadata] = (),
    args: Any = None,
) -> bool:
    """Whether a pod that the plugin refused is tried again after the change; the plugin must want to hear of it."""
    handle = make_framework(live=make_cache(objects=objects))
    hints = [
        entry.hint or always_queue for entry in plugin(args, handle).events_to_register() if entry.event.matches(event)
    ]
    assert hints, f"{plugin.name} does not hear of {event.label}"
    return any(hint(pod.obj(), finished(old), finished(new)) is QueueingHint.QUEUE for hint in hints)


def is_worth_a_try_after_change(
    plugin: type[Plugin],
    pod: PodBuilder,
    old: PodBuilder | NodeBuilder,
    new: PodBuilder | NodeBuilder,
    *,
    args: Any = None,
) -> bool:
    """The same for whatever events the change of a pod or node is told as. Changes that the plugin does not hear of are
    not worth a try.
    """
    before, after = finished(old), finished(new)
    if isinstance(before, Node) and isinstance(after, Node):
        events = node_scheduling_properties_change(before, after)
    else:
        assert isinstance(before, Pod)
        assert isinstance(after, Pod)
        events = pod_scheduling_properties_change(before, after)
    handle = make_framework()
    registered = plugin(args, handle).events_to_register()
    hints = [entry.hint or always_queue for entry in registered if any(entry.event.matches(event) for event in events)]
    return any(hint(pod.obj(), before, after) is QueueingHint.QUEUE for hint in hints)


def finished(built: Built) -> HasMetadata | None:
    return built.obj() if isinstance(built, PodBuilder | NodeBuilder) else built

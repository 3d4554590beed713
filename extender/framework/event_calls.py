"""Events: what people are told about a pod. Losing one changes nothing."""

from dataclasses import dataclass
from typing import Literal, final

from extender.framework.api_calls import ApiCall
from extender.objects.pod import Pod
from extender.objects.storage import ObjectReference

EventType = Literal["Normal", "Warning"]


@final
@dataclass(frozen=True, slots=True)
class RecordEvent(ApiCall[None]):
    """Something happened to an object. Equal ones (the note does not count) become one event with a series.

    Upstream: client-go/tools/events/event_recorder.go, makeEvent; event_broadcaster.go, eventKey (v1.36.2).
    """

    regarding: ObjectReference
    type: EventType
    reason: str
    action: str
    note: str
    reporting_controller: str
    """The scheduler's name, as pods ask for it."""
    related: ObjectReference | None = None

    @property
    def concerns(self) -> str:
        """What it is about."""
        return self.regarding.uid

    @property
    def namespace(self) -> str:
        """Where the event is kept: with its object; `default` for objects that have no namespace."""
        return self.regarding.namespace or "default"


def reference_to(pod: Pod) -> ObjectReference:
    """The pod, as events and owners refer to it."""
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
    )

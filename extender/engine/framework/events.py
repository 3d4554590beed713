"""Cluster events and queueing hints: what changed, which plugins registered for it, and whether it may help a pod.

An event is a kind of change (`Node` and `UpdateNodeTaint`). The object before and after the change goes with it, None
where there is none. A plugin registers the events that may undo its refusals, each with a hint that looks at one pod
and one change.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go; pkg/scheduler/framework/types.go, MatchClusterEvents;
events.go.
"""

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

import msgspec

from extender.values.objects.pod import Pod


@final
class ActionType(enum.IntFlag):
    """What happened to an object, with upstream's bits. `UPDATE` is every kind of update, `ALL` every action."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191

    def __str__(self) -> str:
        """Returns upstream's name, such as `UpdateNodeTaint`; empty for a combination without one."""
        return (self.name or "").title().replace("_", "") if self in _NAMED else ""


_NAMED: Final = frozenset(ActionType.__members__.values())


@final
class EventResource(enum.StrEnum):
    """The kind of object that changed. Events have two special kinds of pods; a registration for `POD` both."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    WILDCARD = "*"


_KINDS_OF_PODS: Final = (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)


@final
class ClusterEvent(msgspec.Struct, frozen=True):
    """A kind of change: one that happened, or one that a plugin registers for."""

    resource: EventResource
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The name of the event in logs and metrics, such as `NodeUpdateNodeTaint`."""
        return self.custom_label or f"{self.resource.value}{self.action}"

    @property
    def is_wildcard(self) -> bool:
        """True when anything may have changed, so that every pod is worth another attempt."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: "ClusterEvent") -> bool:
        """Returns whether a registration for this event covers the incoming one.

        An incoming `UPDATE` of no more specific kind matches only registrations for all of `UPDATE`. An incoming
        wildcard event matches only a wildcard registration here; the queue treats it separately.

        Upstream: pkg/scheduler/framework/types.go, MatchClusterEvents.
        """
        if self.is_wildcard:
            return True
        if not (
            self.resource is incoming.resource
            or self.resource is EventResource.WILDCARD
            or (self.resource is EventResource.POD and incoming.resource in _KINDS_OF_PODS)
        ):
            return False
        return bool(self.action & incoming.action) and incoming.action <= self.action


@final
class QueueingHint(enum.Enum):
    """The answer of a hint: whether the change may help the pod, so that it is worth another attempt."""

    QUEUE_SKIP = "QueueSkip"
    QUEUE = "Queue"


QueueingHintFn = Callable[[Pod, Any, Any], QueueingHint]
"""(refused pod, object before the change, object after it) -> whether the change may help. The object before is None if
one was added, the object after is None if one was deleted. A hint that raises counts as `QUEUE`, so that the pod is not
stuck.
"""


@final
class ClusterEventWithHint(msgspec.Struct, frozen=True):
    """An event that may undo a plugin's refusal of a pod, and a hint; without one, every such event counts."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


class QueueingHintFunction(NamedTuple):
    """A hint and the name of its plugin."""

    plugin_name: str
    hint: QueueingHintFn


QueueingHintMap = Mapping[ClusterEvent, Sequence[QueueingHintFunction]]
"""All registrations of a profile: event -> the hints registered for it."""


def always_queue(pod: Pod, old: object, new: object) -> QueueingHint:
    return QueueingHint.QUEUE


def queue_if(may_help: bool) -> QueueingHint:
    return QueueingHint.QUEUE if may_help else QueueingHint.QUEUE_SKIP


def on(resource: EventResource, action: ActionType, hint: QueueingHintFn | None = None) -> ClusterEventWithHint:
    """Returns a registration, as `events_to_register` lists them. Raises TypeError if the hint is an async def."""
    if inspect.iscoroutinefunction(hint):
        raise TypeError(f"nothing waits for an async def: write def {hint.__qualname__}")
    return ClusterEventWithHint(ClusterEvent(resource, action), hint)


def match_any(registered: Iterable[ClusterEvent], incoming: ClusterEvent) -> bool:
    """Returns whether any of the registrations matches the event. Upstream: MatchAnyClusterEvent."""
    return any(event.matches(incoming) for event in registered)


ALL_EVENTS: Final = tuple(
    on(resource, ActionType.ALL)
    for resource in (
        EventResource.POD,
        EventResource.NODE,
        EventResource.PERSISTENT_VOLUME,
        EventResource.PERSISTENT_VOLUME_CLAIM,
        EventResource.CSI_NODE,
        EventResource.CSI_DRIVER,
        EventResource.CSI_STORAGE_CAPACITY,
        EventResource.STORAGE_CLASS,
        EventResource.RESOURCE_CLAIM,
        EventResource.DEVICE_CLASS,
    )
)
"""The registrations of plugins that do not override `events_to_register`. Upstream: UnrollWildCardResource."""

SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF_Q: Final = "PopFromBackoffQ"
FORCE_ACTIVATE: Final = "ForceActivate"
UNSCHEDULABLE_TIMEOUT: Final = "UnschedulableTimeout"

EVENT_ASSIGNED_POD_ADD: Final = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
EVENT_ASSIGNED_POD_DELETE: Final = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
EVENT_UNSCHEDULED_POD_ADD: Final = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)
EVENT_UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE)
EVENT_UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, UNSCHEDULABLE_TIMEOUT)
EVENT_FORCE_ACTIVATE: Final = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, FORCE_ACTIVATE)

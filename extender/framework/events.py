"""Cluster events, and hints: what has changed, which plugin wants to know, and whether the change may help a pod that it refused.

An event is a kind of change (`Node` and `UpdateNodeTaint`); the objects that changed go with it as (old, new), None where there is none.
A plugin registers the events that may undo its refusals, each with a hint that looks at one pod and one change.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go; pkg/scheduler/framework/types.go, MatchClusterEvents; events.go (v1.36.2).
"""

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from extender.objects.pod import Pod


@final
class ActionType(enum.IntFlag):
    """What happened to an object. Upstream's bits; `UPDATE` is all that a change can be, `ALL` everything."""

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
        """Upstream's name, such as `UpdateNodeTaint`; "" for several bits that have no name together."""
        return "".join(word.capitalize() for word in (self.name or "").split("_")) if self in _NAMED else ""


_NAMED: Final = frozenset(ActionType.__members__.values())


@final
class EventResource(enum.StrEnum):
    """What it happened to. The two kinds of pods occur in events alone; whoever registers for `POD` hears of both."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
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
    WILDCARD = "*"


_KINDS_OF_PODS: Final = (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)


@final
@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A kind of change: one that happened, or one that a plugin wants to hear of."""

    resource: EventResource
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """How logs and metrics call it, such as `NodeUpdateNodeTaint`."""
        return self.custom_label or f"{self.resource.value}{self.action}"

    @property
    def is_wildcard(self) -> bool:
        """Anything may have changed: every pod is worth another try."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: "ClusterEvent") -> bool:
        """Whether whoever registered for this event wants to hear of the one that came.

        A change that nobody could name more closely than `UPDATE` is for those alone who registered for all of `UPDATE`. A wildcard event
        matches only a wildcard registration; the queue knows what else it means.

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
    """A hint's answer."""

    QUEUE_SKIP = "QueueSkip"
    """The change does not help the pod."""
    QUEUE = "Queue"
    """It may help: the pod is worth another try."""


QueueingHintFn = Callable[[Pod, Any, Any], QueueingHint]
"""(the pod that was refused, the object before the change, the object after it) -> whether the change may help. Of an object that was
added there is no old one, of one that was deleted no new one: None. A hint that raises is taken for `QUEUE`, lest the pod be stuck."""


@final
@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """What a plugin registers: an event that may undo its refusal of a pod, and a hint; without a hint it always may."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


class QueueingHintFunction(NamedTuple):
    """A hint, and whose it is."""

    plugin_name: str
    hint: QueueingHintFn


QueueingHintMap = Mapping[ClusterEvent, Sequence[QueueingHintFunction]]
"""Who wants to hear of what: all registrations of a profile."""


def always_queue(pod: Pod, old: object, new: object) -> QueueingHint:
    """The hint of those who registered without one."""
    return QueueingHint.QUEUE


def queue_if(may_help: bool) -> QueueingHint:
    """A hint's answer, from a yes or no."""
    return QueueingHint.QUEUE if may_help else QueueingHint.QUEUE_SKIP


def on(resource: EventResource, action: ActionType, hint: QueueingHintFn | None = None) -> ClusterEventWithHint:
    """A registration, as `events_to_register` lists them."""
    return ClusterEventWithHint(ClusterEvent(resource, action), hint)


def match_any(registered: Iterable[ClusterEvent], incoming: ClusterEvent) -> bool:
    """Whether one of the registrations is for the event. Upstream: MatchAnyClusterEvent."""
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
"""What plugins hear of that do not say which events they want. Upstream: UnrollWildCardResource."""

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

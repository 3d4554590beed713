"""Writes to the API server as values, and the contract of the dispatcher that performs them.

A plugin states what should be written and about which object. The dispatcher turns the value into a request, chooses
when to send it, and handles a lost answer. The other calls are in `pod_calls` and `storage_calls`; the call that
records an Event is in this module.

Upstream: staging/src/k8s.io/kube-scheduler/framework/api_calls.go, APICall, APIDispatcher;
pkg/scheduler/framework/api_calls.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, final

from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.grouping import GroupKey
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.storage import ObjectReference

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class CallError(Exception):
    """A write failed, or its outcome is unknown. The message is the API server's where it gave one."""


class CallNotFound(CallError):  # noqa: N818  (named like the answers of the API server)
    """The object does not exist, or no longer exists."""


class CallConflict(CallError):  # noqa: N818
    """The object is newer than the call assumes, another one of that name, or bound already. Read it again."""


class CallUnknown(CallError):  # noqa: N818
    """The write may or may not have been performed: the answer was lost, and reading the object does not settle it."""


class CallSkipped(CallError):  # noqa: N818
    """A call that is more relevant, or includes this one, replaces it (ErrCallSkipped, ErrCallOverwritten)."""


class CallMerged(CallSkipped):
    """A newer call of the same type about the object includes it."""


class ApiCall(ABC, Generic[T_co]):
    """One write. T is the result of performing it: the object as the API server has it afterwards, or None.

    Calls with a `relevance` are about pods. Of those that wait for one pod only the most relevant is kept; of two
    equally relevant ones the newer replaces the older and takes over what the older has in addition. Calls without a
    relevance are performed independently.
    """

    __slots__ = ()

    relevance: ClassVar[int] = 0
    """Higher replaces lower; 0 for calls that upstream performs at once. Upstream: api_calls.Relevances."""
    is_urgent: ClassVar[bool] = False
    """True if the call overtakes calls that are not urgent, because a pod waits for it."""

    @property
    @abstractmethod
    def object_key(self) -> str:
        """The UID of the object, or another text that no other object has."""

    @property
    def is_no_op(self) -> bool:
        """True when performing the call would change nothing."""
        return False

    def merged_with(self, older: "ApiCall[Any]") -> "ApiCall[T_co]":
        """Returns this call combined with an older one of the same kind about the same object."""
        return self

    def after(self, earlier: "ApiCall[Any]") -> "ApiCall[T_co]":
        """Returns this call, adapted to an earlier one about the same object that was performed."""
        return self


class Dispatcher(Protocol):
    """Performs calls. All profiles share one."""

    async def perform(self, call: ApiCall[T]) -> T:
        """Performs the call and returns its result; at once if it would change nothing.

        Raises CallError: CallNotFound, CallConflict, CallUnknown or CallSkipped where one of these applies.
        """

    def submit(self, call: ApiCall[T]) -> "asyncio.Future[T | None]":
        """Performs the call in the background; the future has its result, None after a logged failure."""


class LiveCluster(Protocol):
    """The cluster as observed at this moment, for code that waits for a change; a Snapshot holds for a cycle."""

    @property
    def objects(self) -> ClusterObjects:
        """Claims, volumes, classes and the other objects that are neither pods nor nodes."""

    def node(self, name: str) -> Node | None:
        """Returns the node; None if there is none."""

    def pod(self, uid: str) -> Pod | None:
        """Returns the pod if it has a node or is assumed to; None otherwise."""

    def group_members(self, group: GroupKey) -> Mapping[str, Pod]:
        """Returns UID -> pod of all known pods of a pod group, with a node or without."""


EventType = Literal["Normal", "Warning"]


@final
@dataclass(frozen=True, slots=True)
class RecordEvent(ApiCall[None]):
    """Records an Event. Calls that are equal but for their note become one event with a series.

    Upstream: client-go/tools/events/event_recorder.go, makeEvent; event_broadcaster.go, eventKey.
    """

    regarding: ObjectReference
    type: EventType
    reason: str
    action: str
    note: str
    reporting_controller: str
    """The scheduler name of the profile."""
    related: ObjectReference | None = None

    @property
    def object_key(self) -> str:
        return self.regarding.uid

    @property
    def namespace(self) -> str:
        """The namespace of the event: that of the object; `default` for objects without one."""
        return self.regarding.namespace or "default"


def reference_to(pod: Pod) -> ObjectReference:
    """Returns a reference to the pod, as events and owner references hold it."""
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
    )

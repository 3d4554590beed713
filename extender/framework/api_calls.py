"""Writes to the API server as values, and the dispatcher that performs them.

A plugin states what should be written and about which object. The dispatcher turns the value into a request, chooses when to send it, and
handles a lost answer. The other calls are in `pod_calls` and `storage_calls`; the call that records an Event is in this module.

Upstream: staging/src/k8s.io/kube-scheduler/framework/api_calls.go, APICall, APIDispatcher; pkg/scheduler/framework/api_calls (v1.36.2).
"""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, final

from extender.objects.cluster import ClusterObjects
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.storage import ObjectReference

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class CallError(Exception):
    """A write did not happen, or nobody can tell. The message is the API server's, if it said anything."""


class CallNotFound(CallError):  # noqa: N818  (named like the answers of the API server)
    """The object does not exist, or no more."""


class CallConflict(CallError):  # noqa: N818
    """The object is not as the call takes it to be: newer, another one of that name, or bound already. Look at it again."""


class CallUnknown(CallError):  # noqa: N818
    """It may have happened or not: the answer was lost, and the object does not tell."""


class CallSkipped(CallError):  # noqa: N818
    """It was not performed, and need not be: a more relevant call about the object, or one that includes it, is under way.

    Upstream: fwk.ErrCallSkipped, fwk.ErrCallOverwritten.
    """


class ApiCall(ABC, Generic[T_co]):
    """One write. T is what performing it yields: the object as the API server has it afterwards, or None.

    Calls with a `relevance` are about pods, and of those waiting about one pod only one is kept: the more relevant one; of equals the
    newer, with what the older had to say merged into it. Calls without are performed each by itself.
    """

    __slots__ = ()

    relevance: ClassVar[int] = 0
    """Upstream: api_calls.Relevances; 0 for calls that it performs at once."""
    is_urgent: ClassVar[bool] = False
    """Goes before others: a pod waits for it."""

    @property
    @abstractmethod
    def concerns(self) -> str:
        """The object: its UID, or whatever tells it from all others."""

    @property
    def is_no_op(self) -> bool:
        """True when nothing would change."""
        return False

    def merged_with(self, older: "ApiCall[Any]") -> "ApiCall[T_co]":
        """This call and an older one of the same kind about the same object, in one."""
        return self

    def after(self, earlier: "ApiCall[Any]") -> "ApiCall[T_co]":
        """This call, now that an earlier one about the same object has been performed."""
        return self


class Dispatcher(Protocol):
    """Performs calls. There is one for all profiles."""

    async def perform(self, call: ApiCall[T]) -> T:
        """Perform it, and wait until that is done; a call that would change nothing is done at once.

        Raises:
            CallNotFound, CallConflict, CallUnknown, CallSkipped: as they say.
            CallError: refused for another reason.
        """

    def submit(self, call: ApiCall[T]) -> "asyncio.Future[T | None]":
        """Have it performed in the background; failure is logged.

        Returns:
            Done when the call was: what it yields, None if it came to nothing. Never an error.
        """


class LiveCluster(Protocol):
    """The cluster as it is known this very moment, for those who wait for something to happen in it. A Snapshot is of its cycle alone."""

    @property
    def objects(self) -> ClusterObjects:
        """Claims, volumes, classes and the rest."""

    def node(self, name: str) -> Node | None:
        """The node; None if there is none."""

    def pod(self, uid: str) -> Pod | None:
        """The pod that runs on a node or is assumed to; None if there is none."""


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

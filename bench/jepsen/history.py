"""The history of a run: what was asked of the API server and by whom, what observers saw of it, and which faults there
were.

Times are seconds since the start of the run. An *era* is a stretch of the API server's life in which nothing that it
has acknowledged may be forgotten: a server that is told to end has saved everything, and the next one continues its
era; after a crash, or where it could not save, the next one begins another era with the state of its file.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias, final

import msgspec

from extender.values.objects.quantity import Quantity

LEASE = "kube-scheduler"
"""The lease of the replicas."""
CLIENT = "client"
"""The name under which the requests of the workload are recorded; processes of replicas are called a1, a2, b1 and so
on.
"""


@final
class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What matters of a pod, a node or a lease.

    Attributes:
        cpu: millicores that a pod requests or a node has.
        selector: the name of the only node on which a pod may run; empty for any.
        reason: the reason of the condition PodScheduled, if that is False.
        is_closed: whether a node is cordoned, or a pod is being deleted.
    """

    name: str
    uid: str
    version: int = 0
    node: str = ""
    cpu: int = 0
    priority: int = 0
    selector: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    is_closed: bool = False
    holder: str = ""

    @classmethod
    def of(cls, obj: dict[str, Any]) -> "Seen":
        """Reads a Pod, a Node or a Lease."""
        metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        requests = [container.get("resources", {}).get("requests", {}) for container in spec.get("containers", ())]
        amounts = [request.get("cpu", "0") for request in requests] or [status.get("allocatable", {}).get("cpu", "0")]
        refused = [
            condition
            for condition in status.get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=int(metadata.get("resourceVersion") or 0),
            node=spec.get("nodeName") or "",
            cpu=sum(Quantity.parse(amount).milli_value() for amount in amounts),
            priority=spec.get("priority") or 0,
            selector=(spec.get("nodeSelector") or {}).get("name", ""),
            phase=status.get("phase") or "",
            reason=refused[0].get("reason", "") if refused else "",
            message=refused[0].get("message", "") if refused else "",
            is_closed=bool(spec.get("unschedulable") or metadata.get("deletionTimestamp")),
            holder=spec.get("holderIdentity") or "",
        )


@final
class Request(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="record", tag="request"):
    """A write, from when the network got it until the API server's answer came.

    Attributes:
        life: the number of the API server that was asked.
        status: 0 if no answer came, so that nobody knows whether it was done.
        version: the resourceVersion in the answer; 0 if it holds none.
        uid: of the pod that was created, bound or deleted, as far as request or answer say.
        node: the target of a binding.
        holder: whom a lease was to name.
        is_copy: whether the network made it out of another one.
    """

    at: float
    until: float
    life: int
    by: str
    verb: str
    resource: str
    subresource: str = ""
    name: str = ""
    uid: str = ""
    status: int = 0
    version: int = 0
    node: str = ""
    holder: str = ""
    is_copy: bool = False

    @property
    def is_done(self) -> bool:
        return 200 <= self.status < 300

    @property
    def may_be_done(self) -> bool:
        return self.is_done or self.status == 0 or self.status >= 500

    @property
    def is_binding(self) -> bool:
        return self.subresource == "binding"


@final
class Listed(msgspec.Struct, frozen=True, tag_field="record", tag="listed"):
    """A list, by whom it was read, and its resourceVersion."""

    at: float
    life: int
    by: str
    resource: str
    version: int
    objects: list[Seen]


@final
class Event(msgspec.Struct, frozen=True, tag_field="record", tag="event"):
    """An event of a watch: of the one with this number, which began after the resourceVersion `since`."""

    at: float
    life: int
    by: str
    resource: str
    watch: int
    since: int
    type: str
    seen: Seen


@final
class Began(msgspec.Struct, frozen=True, tag_field="record", tag="began"):
    """An API server began.

    Attributes:
        life: its number; the first is 0.
        saved: the pods in the file that it begins with.
        forgets: whether the one before may have forgotten something, so that another era begins.
    """

    at: float
    life: int
    saved: list[Seen]
    forgets: bool = False


@final
class Happened(msgspec.Struct, frozen=True, tag_field="record", tag="happened"):
    """Something to read: a fault, a process that began or ended. `broken` says that a process did what none may do."""

    at: float
    what: str
    broken: bool = False


@final
class Healed(msgspec.Struct, frozen=True, tag_field="record", tag="healed"):
    """From here on there are no faults."""

    at: float


@final
class Ended(msgspec.Struct, frozen=True, tag_field="record", tag="ended"):
    """The end: pods and nodes as the API server has them.

    Attributes:
        waited: the seconds since the last fault in which processes waited for a processor.
        is_starved: whether that was so long that it is not known what they would have done.
    """

    at: float
    pods: list[Seen]
    nodes: list[Seen]
    waited: float = 0.0
    is_starved: bool = False


Record: TypeAlias = Request | Listed | Event | Began | Happened | Healed | Ended
History: TypeAlias = list[Record]


def write(records: Iterable[Record], path: Path) -> None:
    """Writes a history as lines of JSON."""
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))


def read(path: Path) -> History:
    """Returns the history in a file."""
    return [msgspec.json.decode(line, type=Record) for line in path.read_bytes().splitlines()]

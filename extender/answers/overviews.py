"""Answers about many pods and nodes, as values: pods, names that were found, the map, and the history."""

from typing import Literal, final

import msgspec

from extender.answers.parts import PodName
from extender.answers.stories import Preemption
from extender.answers.types import Answer, Attempt

PodState = Literal["pending", "gated", "scheduled", "terminating"]
PodOrder = Literal["", "name", "-name", "node", "-node", "priority", "-priority", "age", "-age"]


@final
class ListedPod(Answer, frozen=True, kw_only=True):
    """A pod, where it is, and what it belongs to."""

    pod: PodName
    node: str = ""
    """Empty for a pod that waits."""
    state: PodState = "scheduled"
    workload: str = ""
    """The workload that the pod belongs to, written as in `QueuePlace`."""
    group: str = ""
    since: str | None = None
    """When it was created."""


@final
class NamespacePods(Answer, frozen=True, kw_only=True):
    """The pods of one namespace, and what those on nodes request together: millicores of cpu, and bytes of memory."""

    namespace: str
    pods: int
    pending: int = 0
    requested_cpu: int = 0
    requested_memory: int = 0


@final
class PodList(Answer, frozen=True, kw_only=True):
    """GET /v1/pods: the pods that are asked for; without a namespace, also the namespaces."""

    items: tuple[ListedPod, ...] = ()
    total: int = 0
    """The number of all such pods, also of those that are not listed."""
    namespaces: tuple[NamespacePods, ...] = ()
    """The namespaces that have such pods, by name."""


Kind = Literal["namespace", "workload", "group", "node", "pod"]


@final
class Found(Answer, frozen=True, kw_only=True):
    """Something whose name contains what was asked for."""

    kind: Kind
    name: str
    """The name; of a workload it is Kind/name."""
    namespace: str = ""
    """Empty for a node; of a namespace its own name."""
    node: str = ""
    """Of a pod, the node on which it is; empty for a pod that waits."""
    is_gone: bool = False
    """Whether the pod is no longer there, and only what was recorded about it is known."""


@final
class FoundNames(Answer, frozen=True, kw_only=True):
    """GET /v1/find: exact names first, then those that begin with the first word, then the others; if nothing has such
    a part in its name, the names most like it.
    """

    items: tuple[Found, ...]
    more: bool = False
    """Whether there are others that are left out."""


@final
class PodOnNode(Answer, frozen=True, kw_only=True):
    """A pod and its requests."""

    pod: PodName
    cpu: int = 0
    """Millicores."""
    memory: int = 0
    """Bytes."""
    requests: dict[str, int] = msgspec.field(default_factory=dict)
    """What it requests of other resources, such as GPUs."""
    terminating: bool = False


@final
class ResourceOnNode(Answer, frozen=True, kw_only=True):
    """A resource other than cpu, memory and pods: an extended resource, or the devices of a class."""

    name: str
    """Of a device class: deviceclass.resource.kubernetes.io/ and its name, under which pods may request it."""
    allocatable: int
    requested: int


@final
class NodeOnMap(Answer, frozen=True, kw_only=True):
    """A node. Cpu in millicores, memory in bytes."""

    name: str
    zone: str = ""
    cordoned: bool = False
    taints: tuple[str, ...] = ()
    """key=value:effect."""
    cpu: int = 0
    """The allocatable amount, as `memory` is."""
    memory: int = 0
    requested_cpu: int = 0
    requested_memory: int = 0
    max_pods: int = 0
    num_pods: int = 0
    resources: tuple[ResourceOnNode, ...] = ()
    """The extended resources and device classes of the node, by name."""
    conditions: tuple[str, ...] = ()
    """What is wrong with it: NotReady, and the other conditions that hold, such as DiskPressure."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    pods: tuple[PodOnNode, ...] = ()
    """Highest priority first, the largest of equal ones first; see `ClusterMap.has_pods`."""


@final
class ClusterMap(Answer, frozen=True, kw_only=True):
    """GET /v1/cluster: nodes by zone and name."""

    generation: int
    """A number that changes whenever the nodes or pods change."""
    nodes: tuple[NodeOnMap, ...]
    num_pods: int = 0
    priorities: tuple[int, ...] = ()
    """The distinct priorities of pods that have a node, lowest first."""
    priority_classes: dict[str, int] = msgspec.field(default_factory=dict)
    """PriorityClass -> its value, for those that are known."""
    has_pods: bool = True
    """Whether the nodes list their pods; GET /v1/cluster/{node} lists those of one node in any case."""


OutcomeWanted = Literal["", "scheduled", "unschedulable", "error", "preempted", "asked"]
"""`preempted`: attempts that preempted. `asked`: calls by another scheduler. Empty for all."""


@final
class Decisions(Answer, frozen=True, kw_only=True):
    """GET /v1/decisions: attempts, newest first."""

    items: tuple[Attempt, ...]
    oldest: int = 0
    """The id of the oldest attempt that is still kept."""


@final
class Preemptions(Answer, frozen=True, kw_only=True):
    """GET /v1/preemptions: newest first."""

    items: tuple[Preemption, ...]


@final
class AttemptsAlike(Answer, frozen=True, kw_only=True):
    """Attempts for one pod that ended alike."""

    attempt: Attempt
    """The newest of the attempts."""
    count: int
    first: str
    """The time of the oldest."""


@final
class Count(Answer, frozen=True, kw_only=True):
    """How the attempts of one part of the time ended."""

    placed: int = 0
    refused: int = 0
    failed: int = 0


@final
class Past(Answer, frozen=True, kw_only=True):
    """What was decided in a time."""

    alike: tuple[AttemptsAlike, ...]
    """The attempts, those that ended alike together, with the newest first."""
    preemptions: tuple[Preemption, ...]
    counts: tuple[Count, ...]
    """One for each part of the time."""
    begin: float
    end: float
    """The end of the time, as `begin` in seconds since 1970."""
    total: int
    older: int = 0
    """The id before which further attempts are found; 0 if there are none."""


@final
class PlannedMove(Answer, frozen=True, kw_only=True):
    """A pod that is evicted, and runs on another node before the next move."""

    pod: PodName
    from_node: str
    to_node: str
    owner: str = ""
    """Kind/name of the controller that recreates it."""
    requests: dict[str, str] = {}  # noqa: RUF012 - msgspec copies empty defaults
    """What it requests in all, as Kubernetes quantities."""
    gpu_hours: float = 0.0
    """The GPU time that it loses: since its last checkpoint, or since its start."""
    hours: float = 0.0
    """How long it has run, in hours."""
    restarts: int = 1
    """How often the plan has restarted it then: more than once if it moves again."""
    needs_steering: bool = False
    """Whether the scheduler would choose another node for it of its own accord, the one that it leaves aside."""
    cordon: tuple[str, ...] = ()
    """The nodes to cordon until it runs, as the scheduler would, or might, choose one of them; none of very many."""
    waits_for: tuple[str, ...] = ()
    """The PodDisruptionBudget that earlier moves have used up: the pods that these moved have to be ready again before
    this one goes.
    """

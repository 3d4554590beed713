"""The answers as values: what /v1 sends, what commands print, what the page shows. Names are camelCase on the wire; times RFC 3339, UTC."""

from typing import Any, Literal, final

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts of an answer have in common."""


# Pods and reasons.


@final
class PodName(Answer, frozen=True, kw_only=True):
    """A pod. Who may not see its namespace gets its priority alone."""

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0
    hidden: bool = False
    """The caller may not list pods in its namespace; the names are empty then."""


@final
class Victim(Answer, frozen=True, kw_only=True):
    """A pod that has to go."""

    pod: PodName
    started: str | None = None
    owner: str = ""
    """Kind/name of its controller."""
    violates: tuple[str, ...] = ()
    """Names of the PodDisruptionBudgets that its going violates."""
    cpu: int = 0
    """Millicores that it holds, or held."""
    memory: int = 0
    """Bytes that it holds, or held."""


@final
class ReasonCount(Answer, frozen=True, kw_only=True):
    """A reason, in kube-scheduler's words, and on how many nodes it holds."""

    reason: str
    nodes: int


@final
class WaterfallStep(Answer, frozen=True, kw_only=True):
    """What one Filter plugin left over of the nodes that stood before it."""

    plugin: str
    reasons: tuple[ReasonCount, ...]
    refused: int
    unresolvable: int
    """Of those refused: on which preemption cannot help."""
    left: int


@final
class Lack(Answer, frozen=True, kw_only=True):
    """What a node is short of, as Kubernetes quantities."""

    resource: str
    asks: str
    free: str
    short: str


@final
class NearNode(Answer, frozen=True, kw_only=True):
    """A node that refused the pod for little."""

    node: str
    plugins: tuple[str, ...]
    """All that refuse it, each asked by itself."""
    reasons: tuple[str, ...]
    lacks: tuple[Lack, ...] = ()


@final
class Fix(Answer, frozen=True, kw_only=True):
    """Something that would let the pod fit."""

    kind: Literal["request", "toleration", "affinity", "spread", "gate", "ports", "volume", "node", "preemption", "other"]
    text: str
    opens: int
    """Nodes on which the pod would fit then."""
    nodes: tuple[str, ...] = ()
    """The first of them; none where the node is still to be added."""


@final
class NodeScore(Answer, frozen=True, kw_only=True):
    """What the Score plugins gave a node, weighted."""

    node: str
    total: int
    plugins: dict[str, int] = {}


@final
class PluginVerdict(Answer, frozen=True, kw_only=True):
    """One distinct answer of one Filter plugin."""

    plugin: str
    code: str
    reasons: tuple[str, ...]


@final
class NodePicture(Answer, frozen=True, kw_only=True):
    """Node x plugin: each Filter asked by itself about every node."""

    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    verdicts: tuple[PluginVerdict, ...]
    cells: tuple[tuple[int, ...], ...]
    """One row a node, one cell a plugin: a place in `verdicts`, -1 where the plugin lets the pod pass."""


# Preemption.


@final
class CandidateNode(Answer, frozen=True, kw_only=True):
    """A node that would take the pod once its victims have gone."""

    node: str
    victims: tuple[Victim, ...]
    num_pdb_violations: int
    why_not: str = ""
    """Why it lost against the chosen one; empty for the chosen one."""


@final
class PreemptionAnswer(Answer, frozen=True, kw_only=True):
    """What preemption would do, or has found."""

    eligible: bool
    message: str = ""
    """Why the pod may not preempt, or why no node helps; empty when one does."""
    node: str = ""
    victims: tuple[Victim, ...] = ()
    num_pdb_violations: int = 0
    candidates: tuple[CandidateNode, ...] = ()
    """The chosen one first, then its runners-up, best first; not all of a large cluster."""
    num_candidates: int = 0
    not_helpful: tuple[ReasonCount, ...] = ()
    """Why nodes stay closed even without their lower-priority pods."""


# The queue, and attempts.


@final
class WakesOn(Answer, frozen=True, kw_only=True):
    """An event that would have the pod tried again."""

    event: str
    """As upstream names it: Node/Add, AssignedPod/Delete, ..."""
    plugins: tuple[str, ...]


@final
class QueuePlace(Answer, frozen=True, kw_only=True):
    """Where a pod waits."""

    pod: PodName
    queue: Literal["active", "backoff", "unschedulable", "gated", "inFlight"]
    position: int | None = None
    """From 1; None where there is no order."""
    attempts: int = 0
    since: str | None = None
    backoff_ends: str | None = None
    gated_by: str = ""
    refused_by: tuple[str, ...] = ()
    wakes_on: tuple[WakesOn, ...] = ()
    message: str = ""
    """What kube-scheduler, or we, said of it last."""


@final
class Attempt(Answer, frozen=True, kw_only=True):
    """One decision about one pod, as it was recorded."""

    id: int
    time: str
    pod: PodName
    profile: str
    number: int
    """Of this pod's attempts, from 1; 0 when kube-scheduler asked us."""
    outcome: Literal["Scheduled", "Unschedulable", "Error", "Filter", "Prioritize", "Preempt"]
    """The last three: what kube-scheduler asked of the extender."""
    node: str = ""
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    seconds: float = 0.0
    woken_by: str = ""
    """The event that brought the pod to the active queue."""
    waterfall: tuple[WaterfallStep, ...] = ()
    scores: tuple[NodeScore, ...] = ()
    """The best nodes, where there was a choice."""
    preemption: PreemptionAnswer | None = None
    picture: NodePicture | None = None
    """Where it was asked for and is still kept: of each node the plugin that refused it first, for the others were not asked then."""


@final
class PreemptionRecord(Answer, frozen=True, kw_only=True):
    """A preemption that was decided."""

    id: int
    """Of the attempt that decided it."""
    time: str
    by: PodName
    node: str
    victims: tuple[Victim, ...]
    num_pdb_violations: int
    candidates: tuple[CandidateNode, ...] = ()
    num_candidates: int = 0
    outcome: Literal["deciding", "told", "failed"] = "deciding"
    """Whether the victims were told to go."""


# The whole answers.


@final
class Explanation(Answer, frozen=True, kw_only=True):
    """GET /v1/explain/{namespace}/{pod}."""

    pod: PodName
    state: Literal["Pending", "Gated", "Nominated", "Binding", "Scheduled", "Finished", "NotOurs", "Unreadable"]
    node: str = ""
    """Where it is, is going, or is nominated to."""
    requests: dict[str, str] = {}
    """What it asks for in all, as Kubernetes quantities."""
    summary: str
    """One sentence for people."""
    message: str = ""
    """What kube-scheduler would say of the pod now, word for word; empty if it fits."""
    total_nodes: int = 0
    feasible_nodes: int = 0
    waterfall: tuple[WaterfallStep, ...] = ()
    nearest: tuple[NearNode, ...] = ()
    fixes: tuple[Fix, ...] = ()
    preemption: PreemptionAnswer | None = None
    scores: tuple[NodeScore, ...] = ()
    """The best feasible nodes now."""
    queue: QueuePlace | None = None
    attempts: tuple[Attempt, ...] = ()
    """Newest first."""
    preempted_by: PreemptionRecord | None = None
    picture: NodePicture | None = None
    """Only when asked for: it is large."""
    notes: tuple[str, ...] = ()
    """What was taken for granted, and what is not known here: sentences for people."""


@final
class Decisions(Answer, frozen=True, kw_only=True):
    """GET /v1/decisions: attempts, newest first."""

    items: tuple[Attempt, ...]
    oldest: int = 0
    """Id of the oldest attempt that is still kept."""


@final
class Preemptions(Answer, frozen=True, kw_only=True):
    """GET /v1/preemptions: newest first."""

    items: tuple[PreemptionRecord, ...]


@final
class Queue(Answer, frozen=True, kw_only=True):
    """GET /v1/queue: every pod that waits, in the order in which it would be tried where there is one."""

    items: tuple[QueuePlace, ...]
    counts: dict[str, int] = {}
    deciding: bool = True
    """False when another scheduler decides: there is no queue here then, and the pods are those without a node."""


@final
class NodeRoom(Answer, frozen=True, kw_only=True):
    """How many of the pods fit on one node."""

    node: str
    pods: int


@final
class Capacity(Answer, frozen=True, kw_only=True):
    """GET and POST /v1/capacity: how many of such pods fit, one after the other, without evicting anybody."""

    fits: int
    by_node: tuple[NodeRoom, ...]
    stopped_by: str
    """What kube-scheduler would say of the next one."""
    is_limit: bool = False
    """Counting stopped at the limit of the question, not of the cluster."""
    notes: tuple[str, ...] = ()
    """What was taken for granted, and what is not known here: sentences for people."""


class WhatIfRequest(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """POST /v1/whatif."""

    create: list[dict[str, Any]] = []
    """Kubernetes objects: pods, workloads (their pods are created), nodes, and what these refer to (priority classes, budgets, claims)."""
    remove_nodes: list[str] = []
    drain_nodes: list[str] = []
    configuration: dict[str, Any] | None = None
    """Another KubeSchedulerConfiguration."""
    include_pending: bool = False
    """Place the pods that are pending now, too."""


@final
class Placement(Answer, frozen=True, kw_only=True):
    """What becomes of one pod."""

    pod: PodName
    cause: Literal["created", "pending", "evicted"]
    requests: dict[str, str] = {}
    """What it asks for in all, as Kubernetes quantities."""
    node: str = ""
    """Empty if it finds no place."""
    message: str = ""
    """What kube-scheduler would say then."""
    evicts: tuple[Victim, ...] = ()
    preemption: PreemptionAnswer | None = None
    waits_for: tuple[str, ...] = ()
    """Names of the PodDisruptionBudgets that a drain waits for before the pod leaves the node where it is."""


@final
class Eviction(Answer, frozen=True, kw_only=True):
    """A pod that loses its place, and what becomes of it."""

    victim: Victim
    node: str
    """Where it was."""
    why: Literal["preempted", "drained", "node removed", "scaled down", "replaced"]
    """The last two: its controller wants fewer, or others in its place; then it is not made again, and no budget is asked."""
    by: PodName | None = None
    """Who takes its place."""
    returns: bool = True
    """Whether a controller makes it again."""
    lands_on: str = ""
    message: str = ""
    """Why it finds no place."""
    depth: int = 1
    """1: because of what was asked; 2: because of an evicted pod that landed there; ..."""
    waits_for: tuple[str, ...] = ()
    """Names of the PodDisruptionBudgets that allow no disruption: a drain waits for them, and what is said here holds afterwards."""


@final
class EvictionLoop(Answer, frozen=True, kw_only=True):
    """Pods that would evict each other for ever."""

    pods: tuple[PodName, ...]
    text: str


@final
class WhatIf(Answer, frozen=True, kw_only=True):
    """The answer of POST /v1/whatif."""

    summary: str
    placements: tuple[Placement, ...]
    evictions: tuple[Eviction, ...] = ()
    loops: tuple[EvictionLoop, ...] = ()
    unplaced: int = 0
    is_complete: bool = True
    """False when there was more to follow than the limit allows."""
    notes: tuple[str, ...] = ()
    """What was taken for granted, and what is not known here: sentences for people."""

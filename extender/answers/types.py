"""Answers as values: what /v1 sends (in camelCase, times in RFC 3339 and UTC), commands print and the page shows."""

from typing import Annotated, Any, Literal, final

import msgspec

from extender.answers.parts import CandidateNode, Outcome, PodName, Victim
from extender.answers.shown import Columns, Framed, Shown
from extender.answers.stories import Story
from extender.values.objects.listed_events import ListedEvents
from extender.values.reasons import InputError


class QuestionError(InputError):
    """The question cannot be answered; the message says why."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of answers and their parts."""


# Nodes and reasons.


@final
class ReasonCount(Answer, frozen=True, kw_only=True):
    """A `reason`, in kube-scheduler's words, and the number of `nodes` on which it holds."""

    reason: str
    nodes: int


@final
class WaterfallStep(Answer, frozen=True, kw_only=True):
    """The nodes that one Filter plugin refused and left over."""

    plugin: str
    reasons: tuple[ReasonCount, ...]
    refused: int
    unresolvable: int
    """The number of refused nodes on which preemption cannot help."""
    left: int


@final
class Lack(Answer, frozen=True, kw_only=True):
    """A resource of which a node has too little, as Kubernetes quantities."""

    resource: str
    asks: str
    free: str
    short: str


@final
class NearNode(Answer, frozen=True, kw_only=True):
    """A node that comes close to taking the pod."""

    node: str
    plugins: tuple[str, ...]
    """All plugins that refuse it, each asked by itself."""
    reasons: tuple[str, ...]
    lacks: tuple[Lack, ...] = ()


@final
class Fact(Answer, frozen=True, kw_only=True):
    """What a plugin that refuses nodes finds on them, or in the cluster."""

    plugin: str
    text: str
    """Half a sentence for people."""
    nodes: tuple[str, ...] = ()
    """The nodes of which it is true, nearest first; none if it is about the cluster."""
    pods: tuple[PodName, ...] = ()
    """The pods that the text names."""


@final
class Fix(Answer, frozen=True, kw_only=True):
    """A change that would let the pod fit."""

    kind: Literal[
        "request", "toleration", "affinity", "spread", "gate", "ports", "volume", "node", "preemption", "other"
    ]
    text: str
    opens: int
    """The number of nodes on which the pod would fit then."""
    nodes: tuple[str, ...] = ()
    """The first of these nodes; none if the node is still to be added."""
    patch: dict[str, Any] = {}
    """A change of the pod's spec, as a strategic merge patch; empty where the change is not the pod's."""
    command: str = ""
    """What to type to make the change; empty if no one command makes it, as for a pod that has to be created again."""
    objects: tuple[dict[str, Any], ...] = ()
    """What to create in a what-if to try the change."""
    add_like: str = ""
    """The node of which one more would help."""


@final
class PluginScore(Answer, frozen=True, kw_only=True):
    """What a Score plugin gives a node: normalised to 0..100, and multiplied by the weight of the plugin."""

    raw: int
    normalized: int
    weight: int
    weighted: int


@final
class NodeScore(Answer, frozen=True, kw_only=True):
    """The score of a node: the sum of the weighted scores of plugins, and of others."""

    node: str
    total: int
    plugins: dict[str, PluginScore] = {}
    others: int = 0
    """What extenders add, and plugins that are not asked twice because they wait for something."""


@final
class PluginVerdict(Answer, frozen=True, kw_only=True):
    """One distinct verdict of one Filter plugin."""

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
    """A row for each node with a cell for each plugin: a place in `verdicts`, or -1 where the pod passes."""


# Preemption.


@final
class PreemptionAnswer(Framed, Answer, frozen=True, kw_only=True):
    """What preemption would do, or has done.

    Attributes:
        eligible: whether the pod may preempt.
        message: why it may not, or why no node helps; empty when one does.
        node: where the pod would run; empty if there is none.
        victims: the pods that would be evicted there for it.
        num_pdb_violations: the number of victims whose eviction violates a PodDisruptionBudget.
        candidates: the chosen one first, then its runners-up, best first; not all of a large cluster.
        num_candidates: the number of all candidates.
        gpu_hours: the GPU time that the victims lose together.
        without_policies: what kube-scheduler alone would choose, if the profile has victim policies.
        gpu_hours_without_policies: the GPU time that would be lost then; `gpu_hours` where there are no policies.
        not_helpful: why evictions of pods of lower priority do not help on other nodes.
    """

    eligible: bool
    message: str = ""
    node: str = ""
    victims: tuple[Victim, ...] = ()
    num_pdb_violations: int = 0
    candidates: tuple[CandidateNode, ...] = ()
    num_candidates: int = 0
    gpu_hours: float = 0.0
    without_policies: CandidateNode | None = None
    gpu_hours_without_policies: float = 0.0
    not_helpful: tuple[ReasonCount, ...] = ()

    def _words(self) -> str:
        evicting = ", ".join(victim.pod.key for victim in self.victims) or "no pod"
        return f"on {self.node}, evicting {evicting}" if self.node else self.message or "not eligible"

    def _columns(self) -> Columns:
        columns = {name: [getattr(victim, name) for victim in self.victims] for name in Victim.__struct_fields__}
        return columns | {"pod": [pod.key for pod in columns["pod"]], "priority": [p.priority for p in columns["pod"]]}


# The queue, and attempts.


@final
class WakesOn(Answer, frozen=True, kw_only=True):
    """An event after which the pod is retried."""

    event: str
    """Upstream's name: Node/Add, AssignedPod/Delete, ..."""
    plugins: tuple[str, ...]


@final
class Standing(Answer, frozen=True, kw_only=True):
    """How far a pod has come with its scheduler."""

    state: Literal["untried", "gated", "refused", "nominated", "waiting", "binding", "elsewhere", "deleted"]
    """`waiting`: a node is chosen, and something has to happen before the pod is bound. `elsewhere`: the scheduler that
    the pod names is not seen here.
    """
    waits_for: Literal["", "volume", "device", "permit", "taint", "finalizer", "scheduler"] = ""
    """`taint`: until the nominated node has lost it."""
    node: str = ""
    """The node that was chosen."""
    since: str | None = None
    """Of a pod that waits, when its node was chosen, or the earliest time at which that can have been."""
    text: str
    """Half a sentence for people."""
    reason: str = ""
    """The same without names of claims, for groups of pods; empty if the message of the pod says it."""
    now: Literal["", "fits", "refused"] = ""
    """What would become of the pod now, if it was asked."""


@final
class QueuePlace(Answer, frozen=True, kw_only=True):
    """Where a pod waits."""

    pod: PodName
    queue: Literal["active", "backoff", "unschedulable", "gated", "inFlight", "placed", "elsewhere"]
    """The last two are in no queue: a node is chosen for the pod, or its scheduler is not seen here."""
    position: int | None = None
    """The place in the queue from 1; None where there is no order."""
    attempts: int = 0
    since: str | None = None
    """When it began to wait; further attempts do not change it."""
    backoff_ends: str | None = None
    gated_by: str = ""
    refused_by: tuple[str, ...] = ()
    wakes_on: tuple[WakesOn, ...] = ()
    message: str = ""
    """The last message of its scheduler."""
    claims: tuple[str, ...] = ()
    """What its claims wait for, where the message is about claims."""
    standing: Standing | None = None
    """How far it has come with its scheduler."""
    workload: str = ""
    """Kind/name of what makes the pod: its controller, but the Deployment of a ReplicaSet; empty if nothing does."""


@final
class Attempt(Answer, frozen=True, kw_only=True):
    """One attempt to schedule a pod, as it was recorded."""

    id: int
    time: str
    pod: PodName
    profile: str
    number: int
    """The number among the attempts of the pod, from 1; 0 for a call by kube-scheduler."""
    outcome: Outcome
    """The last three are calls of the extender by kube-scheduler."""
    node: str = ""
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    seconds: float = 0.0
    woken_by: str = ""
    """The event that moved the pod to the active queue."""
    caller: str = ""
    """Of a call of the extender: the name of the user who called, or where an unknown one called from; empty for an
    attempt of ours.
    """
    waterfall: tuple[WaterfallStep, ...] = ()
    scores: tuple[NodeScore, ...] = ()
    """The best nodes, if there was a choice."""
    preemption: PreemptionAnswer | None = None
    picture: NodePicture | None = None
    """If it was asked for and is still kept: the first plugin that refused each node, after which no other plugin was
    asked.
    """


# Pod groups.


@final
class MemberOutcome(Answer, frozen=True, kw_only=True):
    """What the trial of a pod group finds for one member."""

    pod: PodName
    node: str = ""
    """The node that it would get, if need be after evictions; empty if there is none."""
    message: str = ""
    """Why it gets none as things are."""


@final
class GroupOutcome(Answer, frozen=True, kw_only=True):
    """What becomes of the members of a pod group that are scheduled together."""

    namespace: str
    name: str
    members: int
    """The number of members that have no node yet."""
    fits: int
    """How many of them get one as things are, in the nearest placement."""
    min_count: int | None = None
    """How many members a gang needs, those that run included; None for a group that is no gang."""
    scheduled: bool = False
    topology_key: str = ""
    """The label of which all its nodes have the same value; empty without such a constraint."""
    placement: str = ""
    """The value of that label: of the placement that was chosen, or else of the nearest one."""
    message: str = ""
    """The message that kube-scheduler would write for the group; empty if it is scheduled."""
    evicts: tuple[Victim, ...] = ()
    """The pods that are evicted for the group as a whole."""
    without_policies: tuple[Victim, ...] = ()
    """The pods that kube-scheduler alone would evict, where the group asks for the fewest victims and others were
    found; else empty.
    """
    pods: tuple[MemberOutcome, ...] = ()
    """The members without a node, in the order in which they are tried."""
    text: str = ""
    """One sentence for people."""


# The whole answers.


@final
class AboutService(Answer, frozen=True, kw_only=True):
    """GET /v1/about: who answers, and for which cluster."""

    version: str
    cluster: str = ""
    """The URL of the cluster's API server; empty if it is not known."""
    nodes: int = 0
    pods: int = 0


@final
class Explanation(Shown, Answer, frozen=True, kw_only=True):
    """GET /v1/explain/{namespace}/{pod}."""

    pod: PodName
    state: Literal[
        "Pending", "Gated", "Nominated", "Waiting", "Binding", "Scheduled", "Finished", "NotOurs", "Unreadable"
    ]
    """`Waiting`: a node is chosen, and the pod is bound once something has happened, which `standing` names."""
    node: str = ""
    """The node on which it is, to which it is being bound, or to which it is nominated."""
    workload: str = ""
    """Kind/name of what makes the pod, a Deployment rather than its ReplicaSet; empty if nothing does."""
    created: str | None = None
    requests: dict[str, str] = {}
    """What it requests in all, as Kubernetes quantities."""
    summary: str
    """One sentence for people."""
    message: str = ""
    """The message that kube-scheduler would write for the pod now; empty if it fits."""
    total_nodes: int = 0
    feasible_nodes: int = 0
    waterfall: tuple[WaterfallStep, ...] = ()
    nearest: tuple[NearNode, ...] = ()
    facts: tuple[Fact, ...] = ()
    fixes: tuple[Fix, ...] = ()
    preemption: PreemptionAnswer | None = None
    scores: tuple[NodeScore, ...] = ()
    """The best nodes: of a pod that has one, those that it could choose from, its own among equals first; of another,
    the feasible ones now.
    """
    scores_of: Literal["", "decision", "now"] = ""
    """Whether the scores were kept when the node was chosen, or were worked out as things are now, as if the pod had no
    node.
    """
    choice: str = ""
    """Why a pod is on its node: one sentence for people."""
    standing: Standing | None = None
    """How far a pod without a node has come with its scheduler."""
    queue: QueuePlace | None = None
    attempts: tuple[Attempt, ...] = ()
    """Newest first."""
    story: Story | None = None
    """What happened to the pod; of one that was never created, nothing."""
    events: ListedEvents | None = None
    """The Events about it, if they were asked for."""
    group: GroupOutcome | None = None
    """What would become of the pod's group now, if it is scheduled with one."""
    picture: NodePicture | None = None
    """Only if it was asked for, since it is large."""
    notes: tuple[str, ...] = ()
    """What was taken for granted, and what is not known: sentences for people."""

    __str__ = Shown._as_text

    def _words(self) -> str:
        return f"{self.pod.key}: {self.summary}"

    def _columns(self) -> Columns:
        return {"it would fit if you": [fix.text for fix in self.fixes], "nodes": [fix.opens for fix in self.fixes]}


@final
class Queue(Answer, frozen=True, kw_only=True):
    """GET /v1/queue: every pod that waits, in the order in which they would be tried, as far as there is one."""

    items: tuple[QueuePlace, ...]
    counts: dict[str, int] = {}
    deciding: bool = True
    """False if another scheduler decides: there is no queue then, and the pods are those without a node."""


@final
class NodeRoom(Answer, frozen=True, kw_only=True):
    """The number of the `pods` that fit on one `node`."""

    node: str
    pods: int


@final
class Capacity(Framed, Answer, frozen=True, kw_only=True):
    """How many of such pods fit, one after the other, without evictions: GET and POST /v1/capacity.

    Attributes:
        fits: the number of pods that fit on all nodes together.
        by_node: how many of them fit on each node that takes some, the most first.
        stopped_by: the message that kube-scheduler would write for the next one; empty where counting stopped earlier.
        is_limit: whether counting stopped at the limit of the question, not of the cluster.
        gangs: how many gangs of the pod's size that is, each within its topology domain; None for pods of no gang.
        gang_size: the number of pods that such a gang needs.
        notes: what was taken for granted, and what is not known: sentences for people.
    """

    fits: int
    by_node: tuple[NodeRoom, ...]
    stopped_by: str
    is_limit: bool = False
    gangs: int | None = None
    gang_size: int = 0
    notes: tuple[str, ...] = ()

    def _words(self) -> str:
        return "; ".join([f"{self.fits:,} fit", *filter(None, [self.stopped_by]), *self.notes])

    def _columns(self) -> Columns:
        return {"node": [room.node for room in self.by_node], "pods": [room.pods for room in self.by_node]}


class NodesLike(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Further nodes with the labels, taints and sizes of one that exists, and without its pods."""

    like: str
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1


class WhatIfRequest(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """POST /v1/whatif."""

    create: list[dict[str, Any]] = []
    """Kubernetes objects: pods, workloads (their pods are created), nodes, and what these refer to (priority classes,
    budgets, claims).
    """
    add_nodes: list[NodesLike] = []
    """At most a thousand in all."""
    remove_nodes: list[str] = []
    drain_nodes: list[str] = []
    configuration: dict[str, Any] | None = None
    """Another KubeSchedulerConfiguration to try."""
    include_pending: bool = False


@final
class Placement(Answer, frozen=True, kw_only=True):
    """What becomes of one pod."""

    pod: PodName
    cause: Literal["created", "pending", "evicted"]
    requests: dict[str, str] = {}
    """What it requests in all, as Kubernetes quantities."""
    node: str = ""
    """Empty if it is unschedulable."""
    message: str = ""
    """The message that kube-scheduler would write then."""
    evicts: tuple[Victim, ...] = ()
    preemption: PreemptionAnswer | None = None
    waits_for: tuple[str, ...] = ()
    """Names of the PodDisruptionBudgets that a drain waits for before the pod leaves the node where it is."""


@final
class Eviction(Answer, frozen=True, kw_only=True):
    """A pod that is evicted or deleted, and what becomes of it."""

    victim: Victim
    node: str
    """The node that it leaves."""
    why: Literal["preempted", "drained", "node removed", "scaled down", "replaced"]
    """The last two: its controller wants fewer pods, or replaces it; then it is not recreated, and no budget is asked.
    """
    by: PodName | None = None
    returns: bool = True
    """Whether a controller recreates it."""
    lands_on: str = ""
    message: str = ""
    """Why it is unschedulable then."""
    depth: int = 1
    """1: a consequence of what was asked; 2: of an evicted pod that landed there; ..."""
    waits_for: tuple[str, ...] = ()
    """Names of the PodDisruptionBudgets that allow no disruption: the drain waits for them, and what follows happens
    afterwards.
    """


@final
class EvictionLoop(Answer, frozen=True, kw_only=True):
    """Pods that would evict each other forever."""

    pods: tuple[PodName, ...]
    text: str


@final
class WhatIf(Answer, frozen=True, kw_only=True):
    """The answer of POST /v1/whatif."""

    summary: str
    placements: tuple[Placement, ...]
    groups: tuple[GroupOutcome, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    loops: tuple[EvictionLoop, ...] = ()
    unplaced: int = 0
    gpu_hours: float = 0.0
    """The GPU time that all evictions together lose."""
    is_complete: bool = True
    """False if the simulation reached its limit."""
    notes: tuple[str, ...] = ()
    """What was taken for granted, and what is not known: sentences for people."""

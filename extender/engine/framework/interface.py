"""The extension points, in the order in which a pod meets them, and what a plugin may reach.

| point | signature | result | may suspend |
|---|---|---|---|
| QueueSort | `sort_key(pod, timestamp)` | tuple | no |
| PreEnqueue | `pre_enqueue(pod)` | Status | no |
| PreFilter | `pre_filter(state, pod, snapshot)` | PreFilterResult | no |
| Filter | `filter(state, pod, rows)` | Verdicts (R) | no |
| PostFilter | `post_filter(state, pod, statuses)` | PostFilterResult | yes |
| PreScore | `pre_score(state, pod, rows)` | Status | no |
| Score | `score(state, pod, rows)`, `normalize_score(state, pod, scores)` | int64 (R,), 0..100 after normalising | no |
| Reserve | `reserve(state, pod, node)`, `unreserve(state, pod, node)` | Status | no |
| Permit | `permit(state, pod, node)` | Status, seconds | no |
| PreBind | `pre_bind_pre_flight(state, pod, node)`, `pre_bind(state, pod, node)` | PreFlight, Status | no, yes |
| Bind | `bind(state, pod, node)` | Status | yes |
| PostBind | `post_bind(state, pod, node)` | nothing | yes |

A plugin is a class, and its base classes are the extension points where it runs. One instance per profile is made, with
its arguments and a `Handle`. Filters and Scores get `Rows`, which are hypothetical nodes as arrays; plugins derived
from `EachNodeFilterPlugin` and `EachNodeScorePlugin` get one node at a time instead. Any plugin may also derive from
`AdvicePlugin`, for people who ask why a pod is pending; see `extender.engine.framework.interface`.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go.
"""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, Protocol, TypeVar, final

import msgspec
import numpy as np

from extender.engine.framework.api_calls import Dispatcher, EventType, LiveCluster
from extender.engine.framework.cycle_state import CycleState, StateKey
from extender.engine.framework.events import ALL_EVENTS, ClusterEventWithHint
from extender.engine.framework.preemption import Candidate, PreemptionExtender, PreemptionOutcome, PreemptionRules
from extender.engine.framework.status import SUCCESS, NodeStatuses, Status, Verdicts
from extender.engine.framework.waiting import WaitingPods
from extender.engine.snapshot import NodeInfo, Rows, Snapshot
from extender.engine.snapshot.axes import Int64s
from extender.engine.snapshot.columns import LabelScores
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.metrics import PluginMetrics
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Container, Pod

T = TypeVar("T")

MAX_NODE_SCORE = 100
"""The highest score after normalising; the lowest is 0. Upstream: fwk.MaxNodeScore."""


class Handle(Protocol):
    """Everything that a plugin may use beyond its arguments."""

    @property
    def random(self) -> random.Random:
        """The source of chance, seedable so that ties can be replayed."""

    @property
    def extenders(self) -> Sequence[PreemptionExtender]:
        """The HTTP extenders that take part in preemption, in calling order."""

    @property
    def dispatcher(self) -> Dispatcher | None:
        """Performs writes to the API server; None where there is none."""

    @property
    def live(self) -> LiveCluster | None:
        """The cluster as it is known at this moment, also after the cycle; None where it is not kept up to date."""

    @property
    def is_exhaustive(self) -> bool:
        """True in evaluations for people, where limits that only save time do not apply."""

    @property
    def feature_gates(self) -> FeatureGates:
        """The features that are on. Upstream: the feature.Features that plugin factories are given."""

    @property
    def objects(self) -> ClusterObjects:
        """The objects of `live`, or none without it. For hints and PreEnqueue, which belong to no cycle."""

    @property
    def waiting_pods(self) -> WaitingPods:
        """The pods of all profiles that Permit plugins hold."""

    def shared(self, key: StateKey[T], make: Callable[[], T]) -> T:
        """Returns the value that the plugins of all profiles share under the key; the first call makes it."""

    def now(self) -> datetime:
        """Returns the wall clock's time, for objects that are written. The event loop measures durations."""

    def record_event(self, pod: Pod, event_type: EventType, reason: str, action: str, note: str) -> None:
        """Records an event about the pod if there is an API server."""


class Plugin(ABC):  # noqa: B024  (the abstract methods are those of the extension points)
    """A plugin of a profile.

    Its name is that of the class, unless `name` is set. `arguments` is what the profile's pluginConfig holds for the
    plugin: the args value of an in-tree plugin, the mapping as written for others, None if there is nothing.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __init__(self, arguments: Any = None, handle: Handle | None = None) -> None:
        self.arguments = arguments
        self._handle = handle

    @property
    def handle(self) -> Handle:
        """The Handle of a plugin that a framework made; RuntimeError for others."""
        if self._handle is None:
            raise RuntimeError(f"plugin {self.name} was made without a Handle")
        return self._handle

    @property
    def feature_gates(self) -> FeatureGates:
        """The features that are on; the defaults without a Handle."""
        return DEFAULT_FEATURES if self._handle is None else self._handle.feature_gates

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Returns the events that may make a pod schedulable that this plugin refused; all events by default.

        A pod that several plugins refused is requeued as soon as the hint of one of them answers QUEUE.
        """
        return ALL_EVENTS


class SignPlugin(Plugin):
    """Says which part of a pod it looks at, so that what it answered about a node is reused for pods that differ
    elsewhere.

    It serves Filters and Scores that promise `looks_only_at_node`. Without it, only pods with equal spec, labels,
    annotations and namespace share answers.

    Upstream: SignPlugin.
    """

    @abstractmethod
    def sign_pod(self, pod: Pod) -> Hashable:
        """Returns a value that is equal for pods to which Filter and Score answer the same on the same row."""


class QueueSortPlugin(Plugin):
    """Orders the pods in the active queue. A profile has exactly one."""

    @abstractmethod
    def sort_key(self, pod: Pod, timestamp: float) -> tuple[Any, ...]:
        """Returns the sort key of a pod that entered the queue then, in seconds; smaller is earlier."""


class PreEnqueuePlugin(Plugin):
    """Gates pods: keeps them out of the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Returns Success to let the pod into the active queue; anything else gates it."""


class PreFilterResult(msgspec.Struct, frozen=True):
    """The status of a PreFilter, and the nodes to which it narrows the search (None: it does not)."""

    status: Status
    node_names: frozenset[str] | None = None


class PreFilterPlugin(Plugin):
    """Looks at the pod once, before any node."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> PreFilterResult:
        """Returns Success, a refusal, or Skip, which switches Filter off for this pod; see also `SKIP_EQUAL_PODS`.

        What it keeps in `state` must hold for every hypothesis over the snapshot.
        """


class FilterPlugin(Plugin):
    """Decides on which nodes a pod cannot run. Two laws, checked by `extender.testing.check_filter`:

    1. A row is an honest hypothesis: `filter(rows.changed(c))` equals `filter` on a snapshot where those pods really
       moved.
    2. Rows do not talk: `filter(rows.take(mask))` equals `filter(rows)` at `mask`.
    """

    looks_at_pods: ClassVar[bool] = True
    """False promises that the verdict does not depend on which pods are on the node."""

    looks_only_at_node: ClassVar[bool] = False
    """True promises that a row's verdict follows from the pod's spec, labels, annotations and namespace and from that
    row alone (its node and the pods on it), so that it is reused for equal pods while the node is unchanged.
    """

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, rows: Rows) -> Verdicts:
        """Returns a verdict per row, usually `accept(len(rows))` or `reject(mask, reason)`."""


class EachNodeFilterPlugin(Plugin):
    """A Filter that looks at one node at a time, for when arrays are not worth the effort."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Returns Success, or why the pod cannot run on the node with the pods it has."""


class PostFilterResult(msgspec.Struct, frozen=True):
    """What a PostFilter achieved."""

    status: Status
    nominated_node: str | None = None
    """The node to nominate the pod to; "" clears its nomination, None leaves it as it is."""
    candidate: Candidate | None = None
    """The node to make free, with the pods to evict from it."""
    preemption: PreemptionOutcome | None = None
    """The whole outcome of the search for candidates, for explanations."""
    plugin: str = ""
    """The plugin that succeeded. Only the framework sets it."""
    retry_after: float = math.inf
    """Seconds after which another attempt is worth while, even if nothing happens in the cluster."""


class PostFilterPlugin(Plugin):
    """Tries to make room after no node was feasible."""

    chooses_candidates: ClassVar[bool] = False
    """True if the plugin preempts. An evaluation reports then what its search found, or that it was not tried."""
    preemption_rules: PreemptionRules | None = None
    """The rules by which it preempts, also for the verb and answers; None for kube-scheduler 1.36's."""

    @abstractmethod
    async def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> PostFilterResult:
        """Returns the result for what each node answered. Success and unresolvable end the chain of plugins."""


class PreScorePlugin(Plugin):
    """Looks at the pod and the feasible rows once, before scoring."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, rows: Rows) -> Status | None:
        """Returns Success, or Skip, which switches Score off for this pod; see also `SKIP_EQUAL_PODS`."""


class ScorePlugin(Plugin):
    """Ranks the feasible rows."""

    looks_only_at_node: ClassVar[bool] = False
    """True promises that a row's score, before normalising, follows from the pod's spec, labels, annotations and
    namespace and from that row alone, and that its normalised score follows from these and from the scores of all rows;
    see `FilterPlugin.looks_only_at_node`.
    """

    looks_at_pods: ClassVar[bool] = True
    """False promises that the score does not depend on the pods on the node; see `FilterPlugin.looks_at_pods`."""

    scores_nothing_when_skipped: ClassVar[bool] = False
    """True promises that scores of a pod that PreFilter skipped are 0, normalised or not: they are not asked for."""

    normalizes_by_extremes: ClassVar[bool] = False
    """True promises that the normalised score of a row follows from the pod, its own score, and the least and the
    highest of all rows'. `normalize_score` may then be asked for each score in between, once, instead of each row.
    """

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, rows: Rows) -> Int64s:
        """Returns (R,) scores from 0 to 100, or on any scale if `normalize_score` brings them there."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: Int64s) -> Int64s:
        """Returns (R,) the scores on the scale 0..100; by default unchanged."""
        return scores


class LabelScorePlugin(ScorePlugin):
    """Ranks nodes by the values of their labels. It serves InterPodAffinity and is no part of the authors' contract."""

    normalizes_by_extremes = True

    @abstractmethod
    def label_scores(self, state: CycleState) -> Sequence[LabelScores]:
        """Returns the scores by each of the labels, one or more."""

    def score(self, state: CycleState, pod: Pod, rows: Rows) -> Int64s:
        """Returns (R,) the sum over the labels."""
        first, *others = (rows.of_values(of_label.column, of_label.by_value) for of_label in self.label_scores(state))
        return sum(others, first)


class EachNodeScorePlugin(Plugin):
    """A Score that looks at one node at a time."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Returns a score from 0 to 100, or on any scale if `normalize_score` brings it there."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: Int64s) -> Int64s:
        """Returns (R,) the scores on the scale 0..100; by default unchanged."""
        return scores


class ReservePlugin(Plugin):
    """Reserves something for the pod once a node was chosen."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status | None:
        """Reserves it. Any status but Success undoes the reservations of all plugins."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Gives the reservation back. It must be idempotent, and is also called when `reserve` was not."""

    def as_bound(self, state: CycleState, pod: Pod, node: str) -> Sequence[HasMetadata]:
        """Returns what the binding of a pod with a reservation would change, objects as they are then.

        It is asked in trials, where nothing is written, and counts as written from then on.
        """
        return ()


class PermitPlugin(Plugin):
    """May hold a pod before it is bound."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        """Returns Success, a refusal, or Wait with the seconds to wait at most."""


class PreFlight(msgspec.Struct, frozen=True):
    """Whether a PreBind has something to do for a pod (Success or Skip), and whether it may run beside others."""

    status: Status
    allow_parallel: bool = False


class PreBindPlugin(Plugin):
    """Prepares the node or the pod's volumes before binding."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node: str) -> PreFlight:
        """Returns Skip if nothing is to be done for the pod. It is light, changes nothing, and runs before Permit."""
        return PreFlight(SUCCESS)

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status | None:
        """Returns Success, or why the binding fails."""


class BindPlugin(Plugin):
    """Binds the pod. The first plugin that does not answer Skip has handled it."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Returns Success, Skip, or why the binding failed."""


class PostBindPlugin(Plugin):
    """Is called after a pod was bound."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Cleans up. The pod can no longer be refused."""


SuggestionKind = Literal["request", "toleration", "affinity", "spread", "ports", "volume", "node", "other"]
"""What is changed. Of the suggestions of a kind that open the same nodes, only the first is shown."""


@final
class Shortage(msgspec.Struct, frozen=True):
    """A resource of which some of the rows have too little left for the pod, in base units, millicores for cpu."""

    resource: str
    requested: int
    free: Int64s
    """(R,) how much is left; below zero on overcommitted nodes."""


@final
class Suggestion(msgspec.Struct, frozen=True):
    """A change that may let the pod fit."""

    kind: SuggestionKind
    text: str
    """What to do, as half a sentence: `tolerate the taint dedicated=gpu:NoSchedule`. It names no other pod, which its
    reader may not be allowed to see.
    """
    pod: Pod
    """The pod for which the change would be as good as made; it is evaluated, and nothing is written."""
    objects: tuple[HasMetadata, ...] = ()
    """Objects other than the pod that would be changed, as they would be then, such as one of its claims."""


def listed(noun: str, things: Sequence[str]) -> str:
    """Returns `taint a`, `taints a and b`, or `taints a, b and c`."""
    *leading, last = things
    return f"{noun}s {', '.join(leading)} and {last}" if leading else f"{noun} {last}"


def with_containers(pod: Pod, changed: Callable[[Container], Container], **changes: object) -> Pod:
    """Returns the pod with each of its containers changed, and with other fields of its spec."""
    containers, init = [*map(changed, pod.spec.containers)], [*map(changed, pod.spec.init_containers)]
    return replaced(pod, spec=replaced(pod.spec, containers=containers, init_containers=init, **changes))


class AdvicePlugin(Plugin):
    """The base of plugins that advise people whose pod is pending; each method may be left as it is.

    Advice has no part in any decision. It is asked for while a refusal is explained; nominated pods count on the rows.
    Every suggestion is evaluated with all Filters before it is shown, so a plugin may suggest a change without knowing
    that it helps; one that opens no node is dropped.
    """

    def shortages(self, pod: Pod, rows: Rows) -> Iterable[Shortage]:
        """Returns the resources of which the plugin finds too little on some of the rows."""
        return ()

    def suggest(self, pod: Pod, rows: Rows) -> Iterable[Suggestion]:
        """Returns changes that may satisfy the plugin, the smallest first.

        The rows are the nodes that no other plugin refuses, the nearest first; none if PreFilter refused the pod.
        """
        return ()

    def suggest_for_node(self, pod: Pod, rows: Rows) -> Suggestion | None:
        """Returns a change after which the plugin lets the pod pass on the one row; None if there is none.

        It is asked where several plugins refuse each node: changes are made one after the other, so that the pod has
        those that other plugins suggested, and tried together.
        """
        return next(iter(self.suggest(pod, rows)), None)


def default_normalize_score(scores: Int64s, *, reverse: bool = False, highest: int = MAX_NODE_SCORE) -> Int64s:
    """Returns (R,) each score as a share of the highest one, in whole numbers from 0 to `highest`; reversed if less is
    better.

    Upstream: pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore (v1.36).
    """
    top = max(int(scores[scores.argmax()]), 0) if len(scores) else 0  # argmax is faster than max
    if top == 0:
        return np.full_like(scores, highest) if reverse else scores
    # Raw scores are never negative, so floor division equals Go's truncation.
    shares = highest * scores // top
    return highest - shares if reverse else shares


PLUGIN_METRICS: Final = StateKey[PluginMetrics]("PluginMetrics")
"""The key of the plugin metrics of all profiles under `Handle.shared`."""

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

A plugin is a class; its bases say where it runs. It is made once per profile, with its arguments and a `Handle`. Filters and Scores get
`Rows`: hypothetical nodes as arrays. A plugin that rather looks at one node at a time derives from `EachNodeFilterPlugin` and
`EachNodeScorePlugin` instead. Any plugin may derive from `AdvicePlugin`, too, for people who ask why a pod is pending; see
`extender.framework.advice`.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go (v1.36.2).
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from extender.framework.api_calls import Dispatcher, EventType, LiveCluster
from extender.framework.cycle_state import CycleState, StateKey
from extender.framework.events import ALL_EVENTS, ClusterEventWithHint
from extender.framework.extenders import PreemptionExtender
from extender.framework.preemption import Candidate, PreemptionOutcome
from extender.framework.status import SUCCESS, NodeStatuses, Status, Verdicts
from extender.framework.waiting import WaitingPods
from extender.metrics import PluginMetrics
from extender.objects.cluster import ClusterObjects
from extender.objects.pod import Pod
from extender.snapshot import NodeInfo, Rows, Snapshot
from extender.snapshot.axes import Int64s

T = TypeVar("T")

MAX_NODE_SCORE = 100
"""Scores are 0..100 after normalising. Upstream: fwk.MaxNodeScore."""


class Handle(Protocol):
    """All that a plugin may reach beyond its arguments.

    Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, Handle (v1.36.2).
    """

    @property
    def random(self) -> random.Random:
        """Chance, so that ties can be replayed."""

    @property
    def extenders(self) -> Sequence[PreemptionExtender]:
        """The HTTP extenders that take part in preemption, in calling order."""

    @property
    def dispatcher(self) -> Dispatcher | None:
        """Who writes to the API server; None where there is none."""

    @property
    def live(self) -> LiveCluster | None:
        """The cluster as it is known now, after the cycle, too; None where nobody keeps it up to date."""

    @property
    def is_exhaustive(self) -> bool:
        """True where people ask, and not the scheduler: limits that only save time do not hold then."""

    @property
    def objects(self) -> ClusterObjects:
        """The objects of `live`; empty where nobody keeps them up to date. For hints and PreEnqueue, which belong to no cycle."""

    @property
    def waiting_pods(self) -> WaitingPods:
        """Pods that are held at Permit, by whichever plugin of whichever profile."""

    def shared(self, key: StateKey[T], make: Callable[[], T]) -> T:
        """What the plugins of all profiles have in common under the key; made by whoever asks first."""

    def now(self) -> datetime:
        """What the clock on the wall says, for times that are written down. Durations are the event loop's."""

    def record_event(self, pod: Pod, event_type: EventType, reason: str, action: str, note: str) -> None:
        """Tell people about the pod, if there is an API server."""


class Plugin(ABC):  # noqa: B024  (what has to be implemented, the bases for the extension points say)
    """A plugin of a profile.

    The name is the class's, unless `name` says otherwise. `arguments` is what the profile's pluginConfig holds for the plugin: the args
    value of an in-tree plugin, the mapping as written for others, None if there is nothing.
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
        """What the plugin may reach. Only plugins made by a framework have one."""
        if self._handle is None:
            raise RuntimeError(f"plugin {self.name} was made without a Handle")
        return self._handle

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The events that may let in a pod which the plugin has refused, most of them with a hint; all events, unless a plugin says
        otherwise. A pod that several plugins refused comes back as soon as one of them sees a chance.

        Upstream: EnqueueExtensions.EventsToRegister.
        """
        return ALL_EVENTS


class QueueSortPlugin(Plugin):
    """Orders the pods that wait. A profile has exactly one."""

    @abstractmethod
    def sort_key(self, pod: Pod, timestamp: float) -> tuple[Any, ...]:
        """Smaller is earlier.

        Arguments:
            timestamp: when the pod entered the queue, in seconds.
        """


class PreEnqueuePlugin(Plugin):
    """Holds pods back from the queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Success lets the pod in; anything else gates it."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The status of a PreFilter, and to which nodes it narrows the search (None: to no fewer)."""

    status: Status
    node_names: frozenset[str] | None = None


class PreFilterPlugin(Plugin):
    """Looks at the pod once, before any node."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> PreFilterResult:
        """Skip switches the plugin's Filter off for this pod. What it keeps in `state` must hold for every hypothesis over the snapshot."""


class FilterPlugin(Plugin):
    """Says where a pod cannot run. Two laws, checked by `extender.testing.check_filter`:

    1. A row is an honest hypothesis: `filter(rows.changed(c))` equals `filter` on a snapshot where those pods really moved.
    2. Rows do not talk: `filter(rows.take(mask))` equals `filter(rows)` at `mask`.
    """

    looks_at_pods: ClassVar[bool] = True
    """False promises that the verdict does not depend on which pods are on the node."""

    looks_at_room: ClassVar[bool] = False
    """True says that the verdict is about what pods on a node take from each other (resources, ports), so that it is worth another look
    just before a pod is bound."""

    looks_only_at_node: ClassVar[bool] = False
    """True promises that a row's verdict follows from the pod's spec, labels, annotations and namespace and from that row alone (its node
    and the pods on it), so that it need not be asked again for an equal pod while the node is unchanged."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, rows: Rows) -> Verdicts:
        """A verdict per row: `accept(len(rows))`, `reject(mask, reason)`."""


class EachNodeFilterPlugin(Plugin):
    """A Filter that looks at one node at a time, for when arrays are not worth it."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Success, or why the pod cannot run on the node with the pods it has."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter achieved."""

    status: Status
    nominated_node: str | None = None
    """The node to nominate the pod to; "" clears its nomination, None leaves it as it is."""
    candidate: Candidate | None = None
    """The node that is to be made free, and the pods to evict from it."""
    preemption: PreemptionOutcome | None = None
    """All that a search for room has found out, for those who explain it."""
    plugin: str = ""
    """The plugin that succeeded. Only the framework fills it in."""


class PostFilterPlugin(Plugin):
    """Tries to make room after no node was feasible."""

    chooses_candidates: ClassVar[bool] = False
    """True says that the plugin preempts: an evaluation then tells what its search has found, or that it was not tried."""

    @abstractmethod
    async def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> PostFilterResult:
        """Success ends the chain, and so does unresolvable; unschedulable passes on to the next plugin."""


class PreScorePlugin(Plugin):
    """Looks at the pod and the feasible rows once, before scoring."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, rows: Rows) -> Status:
        """Skip switches the plugin's Score off for this pod."""


class ScorePlugin(Plugin):
    """Ranks the feasible rows."""

    looks_only_at_node: ClassVar[bool] = False
    """True promises that a row's score, before normalising, follows from the pod's spec, labels, annotations and namespace and from that
    row alone; see `FilterPlugin.looks_only_at_node`."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, rows: Rows) -> Int64s:
        """(R,) any scale if `normalize_score` brings it to 0..100, else 0..100 at once."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: Int64s) -> Int64s:
        """(R,) the scores on the scale 0..100; as they are, unless a plugin says otherwise."""
        return scores


class EachNodeScorePlugin(Plugin):
    """A Score that looks at one node at a time."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0..100, unless `normalize_score` brings it there."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: Int64s) -> Int64s:
        """(R,) the scores on the scale 0..100."""
        return scores


class ReservePlugin(Plugin):
    """Keeps something for the pod once a node was chosen."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Keep it. Any failure undoes the reservations of all plugins."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Give it back; also called when `reserve` was not, so it must not mind."""


class PermitPlugin(Plugin):
    """May hold a pod before it is bound."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        """Success, a refusal, or Wait and for how many seconds at most."""


@dataclass(frozen=True, slots=True)
class PreFlight:
    """Whether a PreBind has something to do for a pod: Success or Skip; and whether others may do theirs at the same time.

    Upstream: fwk.PreBindPreFlightResult and the Status beside it.
    """

    status: Status
    allow_parallel: bool = False


class PreBindPlugin(Plugin):
    """Prepares the node or the pod's volumes before binding."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node: str) -> PreFlight:
        """Skip, if there is nothing to do for this pod; asked before the pod waits for anything. Light, and changes nothing."""
        return PreFlight(SUCCESS)

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Success, or the binding fails."""


class BindPlugin(Plugin):
    """Binds the pod. The first that does not say Skip has done it."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Success, Skip, or the binding failed."""


class PostBindPlugin(Plugin):
    """Is told that a pod was bound."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Clean up; nothing can be refused any more."""


def default_normalize_score(scores: Int64s, *, reverse: bool = False, highest: int = MAX_NODE_SCORE) -> Int64s:
    """(R,) each score as a share of the highest, in whole numbers from 0 to `highest`; reversed if less is better.

    Upstream: pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore (v1.36).
    """
    top = int(scores.max(initial=0))
    if top == 0:
        return np.full_like(scores, highest) if reverse else scores
    # Raw scores are never negative, so that floor division is Go's truncation.
    shares = highest * scores // top
    return highest - shares if reverse else shares


PLUGIN_METRICS: Final = StateKey[PluginMetrics]("PluginMetrics")
"""Of the plugins of all profiles, under `Handle.shared`."""

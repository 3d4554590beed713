"""Memory: results about nodes that are reused for equal pods while a node is unchanged.

Many pods differ only in their names. For such a pod the plugins that look only at the node (`looks_only_at_node`) are
not run on every node again: their last results are corrected at the nodes that have changed since. This is exact,
because such a plugin promises that rows do not depend on each other; nothing is approximated and nothing expires.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeVar, final
from weakref import WeakValueDictionary

import msgspec
import numpy as np
import numpy.typing as npt

from extender.engine import framework as fwk
from extender.engine.runtime.plugin_calls import call_plugin, pod_signature
from extender.engine.runtime.scoring import Totals, WeightedScorer, in_range, type_of_totals
from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Index, Int64s, Mask
from extender.engine.snapshot.columns import LabelColumn
from extender.values.objects.pod import Pod

KEPT_SIGNATURES = 64
"""At least this many pod signatures are remembered; the least recently used is dropped first."""

KEPT_VALUES = 2**20
"""At most so many values in all, one a node for each signature: 700 signatures for 1,500 nodes."""

KEPT_SIGNATURES_AT_MOST = 1024

KEPT_SIGNATURE_BYTES = 4096
"""Longer signatures are hashed, so that pods with large specs take no more memory than others."""

HASH_BYTES = sha256().digest_size
"""The length of a hashed signature. A pod with another one and without claims demands at most KEPT_SIGNATURE_BYTES."""

NEVER = -1

_ENCODE = msgspec.json.Encoder().encode


A = TypeVar("A", bound=np.generic)
P = TypeVar("P")
Q = TypeVar("Q", bound=fwk.Plugin)

Filters = tuple[tuple[str, fwk.FilterPlugin], ...]
Scorers = tuple[WeightedScorer, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalPlugins(Generic[P]):
    """Filters or scorers that look only at a node, whose results are computed and remembered together."""

    runs: P
    """The Filters or the scorers, in order."""
    plugins: tuple[fwk.Plugin, ...]
    looks_at_pods: bool
    """False if none of them looks at the pods on the node."""

    def sign(self, pod: Pod, signature: bytes) -> Hashable:
        """Returns a value that is equal for pods which these plugins, by `sign_pod` or signature, cannot tell apart."""
        parts: list[tuple[str, Hashable]] = []
        for plugin in self.plugins:
            signed: Hashable = signature
            if isinstance(plugin, fwk.SignPlugin):
                signed = call_plugin(None, plugin.name, "SignPod", pod_signature, plugin, pod)
            parts.append((plugin.name, signed))
        return tuple(parts)


@final
class FilterPlan(msgspec.Struct, frozen=True):
    """The Filters that run for a pod, by what they look at. There is one for each set of skipped plugins."""

    of_nodes: LocalPlugins[Filters]
    """Filters that look only at a node, and at none of its pods."""
    of_pods: LocalPlugins[Filters]
    """Filters that look only at a node and its pods."""
    of_cluster: Filters
    """Filters that look at other nodes or objects as well."""


@final
class ScorePlan(msgspec.Struct, frozen=True):
    """The Score plugins that run for a pod, by what they look at."""

    of_nodes: LocalPlugins[Scorers]
    """Scorers that look only at a node and at none of its pods, and whose scores need no normalising."""
    of_pods: LocalPlugins[Scorers]
    """Scorers that look only at a node and its pods, and whose scores need no normalising."""
    normalized: tuple[LocalPlugins[Scorers], ...]
    """Scorers that look only at a node, and whose scores are normalised over the feasible nodes; each by itself."""
    of_cluster: Scorers
    """Scorers that look at other nodes or objects as well."""
    kind: type[np.signedinteger]
    """The type of sums of weighted scores."""


def filter_plan(filters: Filters, skipped: frozenset[str]) -> FilterPlan:
    running = tuple((name, plugin) for name, plugin in filters if name not in skipped)
    return FilterPlan(
        of_nodes=_local_filters(running, looks_at_pods=False),
        of_pods=_local_filters(running, looks_at_pods=True),
        of_cluster=tuple((name, plugin) for name, plugin in running if not plugin.looks_only_at_node),
    )


def score_plan(scorers: Sequence[WeightedScorer], skipped: frozenset[str]) -> ScorePlan:
    running = [scorer for scorer in scorers if scorer.name not in skipped]
    local = [scorer for scorer in running if scorer.plugin.looks_only_at_node]
    summed = [scorer for scorer in local if not scorer.normalizes]
    return ScorePlan(
        of_nodes=_local_scorers(summed, looks_at_pods=False),
        of_pods=_local_scorers(summed, looks_at_pods=True),
        normalized=tuple(
            _local_scorers([scorer], looks_at_pods=scorer.plugin.looks_at_pods) for scorer in local if scorer.normalizes
        ),
        of_cluster=tuple(scorer for scorer in running if not scorer.plugin.looks_only_at_node),
        kind=type_of_totals(scorer.weight for scorer in running),
    )


def _local_filters(filters: Filters, *, looks_at_pods: bool) -> LocalPlugins[Filters]:
    runs = tuple(
        (name, plugin)
        for name, plugin in filters
        if plugin.looks_only_at_node and plugin.looks_at_pods is looks_at_pods
    )
    return LocalPlugins(runs, tuple(plugin for _, plugin in runs), looks_at_pods)


def _local_scorers(scorers: Sequence[WeightedScorer], *, looks_at_pods: bool) -> LocalPlugins[Scorers]:
    runs = tuple(scorer for scorer in scorers if scorer.plugin.looks_at_pods is looks_at_pods)
    return LocalPlugins(runs, tuple(scorer.plugin for scorer in runs), looks_at_pods)


@final
class PerNodeAnswer(Generic[A]):
    """A per-node result of some plugins, kept between cycles, with the generation it holds for."""

    __slots__ = ("__weakref__", "_are_alike", "generation", "values", "weighted")

    def __init__(self, values: npt.NDArray[A]) -> None:
        self.generation = NEVER
        self.values = values
        """(N,)"""
        self.weighted: npt.NDArray[A] | None = None
        """(N,) the weighted scores while all nodes are feasible; (1,) while all raw ones are equal and normalised by
        extremes; None until they are computed.
        """
        self._are_alike: bool | None = None

    @property
    def are_alike(self) -> bool:
        """True if there are nodes, and all have the same value."""
        if self._are_alike is None:
            self._are_alike = len(self.values) > 0 and bool((self.values == self.values[0]).all())
        return self._are_alike

    def set(self, places: Index, values: npt.NDArray[A]) -> None:
        self.values[places] = values
        self.weighted = self._are_alike = None


AnswersInUse = WeakValueDictionary[Hashable, PerNodeAnswer[Any]]
"""The inputs of an answer -> the answer, while it is remembered for any signature."""


@final
class EqualPodsAnswer(NamedTuple):
    """The answers of successive plugins of a point for equal pods: `SKIP_EQUAL_PODS` or `SUCCESS_EQUAL_PODS`."""

    skipped: tuple[str, ...]
    """The plugins that skip."""
    state_values: Mapping[fwk.StateKey[Any], Any]
    """The values that the other plugins wrote into the state of the cycle."""


@final
class EqualPodsAnswers(Generic[Q]):
    """The answers of PreFilter or PreScore plugins for all equal pods. State: the answers, until `clear`."""

    __slots__ = ("_answers", "_steps")

    def __init__(self) -> None:
        self._answers: dict[str, EqualPodsAnswer] = {}
        self._steps: list[Q | EqualPodsAnswer] = []

    def clear(self) -> None:
        self._answers.clear()
        self._steps = []

    def keep(self, plugin: str, answer: EqualPodsAnswer) -> None:
        """Keeps the first answer of a plugin."""
        if plugin not in self._answers:
            self._answers[plugin] = answer
            self._steps = []

    def steps(self, plugins: Sequence[Q]) -> Sequence[Q | EqualPodsAnswer]:
        """Returns the point's plugins that have to run for an equal pod, and between them the kept answers, joined."""
        if not self._steps:
            for plugin in plugins:
                answer = self._answers.get(plugin.name)
                last = self._steps[-1] if self._steps else None
                if answer is None:
                    self._steps.append(plugin)
                elif isinstance(last, EqualPodsAnswer):
                    self._steps[-1] = EqualPodsAnswer(
                        (*last.skipped, *answer.skipped), {**last.state_values, **answer.state_values}
                    )
                else:
                    self._steps.append(answer)
        return self._steps


@final
class Remembered:
    """The results remembered for the pods of one signature."""

    __slots__ = (
        "_by_label",
        "_changed",
        "_changes",
        "_device_classes",
        "_in_use",
        "_num_nodes",
        "_pre_filter",
        "_signature",
        "answers",
        "pre_score",
    )

    def __init__(self, signature: bytes, snapshot: Snapshot, in_use: AnswersInUse) -> None:
        """Begins with blank results; `in_use` has the answers for pods of any signature."""
        self._signature = signature
        self._changes = snapshot.changes
        self._num_nodes = len(snapshot.nodes)
        self._in_use = in_use
        self.answers: dict[LocalPlugins[Any], PerNodeAnswer[Any]] = {}
        self._changed: dict[bool, tuple[int, int, Rows | None]] = {}
        self._by_label: dict[str, tuple[Index, bytes, npt.NDArray[Any]]] = {}
        self._pre_filter = EqualPodsAnswers[fwk.PreFilterPlugin]()
        self._device_classes = snapshot.objects.device_classes.version
        self.pre_score = EqualPodsAnswers[fwk.PreScorePlugin]()
        """The answers of PreScore for all equal pods; changes of the cluster do not affect them."""

    def is_about(self, snapshot: Snapshot) -> bool:
        """Returns whether the results are about this snapshot's nodes; another cache's generations mean nothing."""
        return self._changes is snapshot.changes and self._num_nodes == len(snapshot.all_nodes)

    def pre_filter(self, snapshot: Snapshot) -> EqualPodsAnswers[fwk.PreFilterPlugin]:
        """Returns the answers of PreFilter, cleared when device classes change."""
        version = snapshot.objects.device_classes.version
        if version != self._device_classes:
            self._pre_filter.clear()
            self._device_classes = version
        return self._pre_filter

    def add_answer(self, local: LocalPlugins[Any], kind: type[A], pod: Pod) -> PerNodeAnswer[A]:
        """Adds and returns these plugins' answer, a `kind` for each node, for pods that they cannot tell apart."""
        key = (local.sign(pod, self._signature), kind, self._changes, self._num_nodes)
        answer = self._in_use.get(key)
        if answer is None:
            answer = self._in_use[key] = PerNodeAnswer(np.zeros(self._num_nodes, kind))
        self.answers[local] = answer
        return answer

    def at_nodes(self, plugin: str, column: LabelColumn, by_value: npt.NDArray[A]) -> npt.NDArray[A]:
        """Returns (N,) a plugin's entries of (V + 1,) by the nodes' values of a label.

        They are kept, since the scores of zones change less often than the pods in them.
        """
        bins, encoded = column.bins, by_value.tobytes()
        kept = self._by_label.get(plugin)
        if kept is None or kept[0] is not bins or kept[1] != encoded:
            kept = self._by_label[plugin] = bins, encoded, column.at_nodes(by_value)
        return kept[2]

    def changed_since(self, generation: int, snapshot: Snapshot, *, looks_at_pods: bool) -> Rows | None:
        """Returns the nodes that changed after a generation, perhaps but for their pods; None if none did.

        These are all nodes when the log does not reach back so far.
        """
        # Filters and scores ask for the same nodes within a cycle.
        cached = self._changed.get(looks_at_pods)
        if cached is not None and cached[0] == generation and cached[1] == snapshot.generation:
            return cached[2]
        log = snapshot.changes if looks_at_pods else snapshot.node_changes
        changed = None if generation == NEVER else log.since(generation)
        rows = Rows.of(snapshot) if changed is None else Rows.of(snapshot, changed) if len(changed) else None
        self._changed[looks_at_pods] = generation, snapshot.generation, rows
        return rows


def kept_signatures(num_nodes: int) -> int:
    """Returns the number of signatures to remember in a cluster of this size."""
    return min(max(KEPT_SIGNATURES, KEPT_VALUES // max(num_nodes, 1)), KEPT_SIGNATURES_AT_MOST)


@final
class Memory:
    """The remembered results by pod signature. A framework has one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Remembered] = OrderedDict()
        self._in_use: AnswersInUse = WeakValueDictionary()

    def forget(self) -> None:
        self._kept.clear()

    def recall(self, signature: bytes, snapshot: Snapshot) -> Remembered:
        """Returns the results for this signature, blank for a new one, and after the nodes were renumbered."""
        remembered = self._kept.get(signature)
        if remembered is None or not remembered.is_about(snapshot):
            remembered = self._kept[signature] = Remembered(signature, snapshot, self._in_use)
            if len(self._kept) > kept_signatures(len(snapshot.nodes)):
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(signature)
        return remembered


def signature_of(pod: Pod) -> bytes:
    """Returns bytes that are equal only for pods which `looks_only_at_node` plugins cannot tell apart.

    Labels in another order make another signature: to sort thousands of them would take long.
    """
    meta = pod.metadata
    encoded = _ENCODE((meta.namespace, meta.labels, meta.annotations, pod.spec))
    return encoded if len(encoded) <= KEPT_SIGNATURE_BYTES else sha256(encoded).digest()


def remembered_fits(
    remembered: Remembered, plan: FilterPlan, passing: Callable[[Filters, Rows], Mask], snapshot: Snapshot, pod: Pod
) -> Mask:
    """Returns (N,) the nodes that pass the plan's local Filters; only changed nodes are filtered, by `passing`.

    It is what is remembered, which must not be changed, and holds until the next snapshot.
    """
    of_nodes = refreshed(remembered, plan.of_nodes, np.bool_, passing, snapshot, pod)
    of_pods = refreshed(remembered, plan.of_pods, np.bool_, passing, snapshot, pod).values
    return of_pods if of_nodes.are_alike and of_nodes.values[0] else of_nodes.values & of_pods


def remembered_sum(
    remembered: Remembered,
    plan: ScorePlan,
    scores: Callable[[WeightedScorer, Rows], Int64s],
    snapshot: Snapshot,
    pod: Pod,
) -> tuple[Totals, int]:
    """Returns (N,) the weighted sum of the plan's local scorers that need no normalising, less what it returns as a
    summand of all nodes.

    Only changed nodes are scored, by `scores`. The array is as that of `remembered_fits`. Raises PluginError for a
    score that is out of range.
    """

    def weighted_sum(scorers: Scorers, stale: Rows) -> Totals:
        total: Int64s | None = None
        for scorer in scorers:
            of_one = in_range(scorer, scores(scorer, stale))
            weighted = of_one if scorer.weight == 1 else of_one * scorer.weight
            total = weighted if total is None else total + weighted
        return np.zeros(len(stale), plan.kind) if total is None else total.astype(plan.kind)

    of_nodes = refreshed(remembered, plan.of_nodes, plan.kind, weighted_sum, snapshot, pod)
    of_pods = refreshed(remembered, plan.of_pods, plan.kind, weighted_sum, snapshot, pod).values
    return (of_pods, int(of_nodes.values[0])) if of_nodes.are_alike else (of_nodes.values + of_pods, 0)


def refreshed(
    remembered: Remembered,
    local: LocalPlugins[P],
    kind: type[A],
    compute: Callable[[P, Rows], npt.NDArray[A]],
    snapshot: Snapshot,
    pod: Pod,
) -> PerNodeAnswer[A]:
    """Returns these plugins' answer, a `kind` for each node; `compute` runs on changed nodes only."""
    answer = remembered.answers.get(local)
    if answer is None:
        answer = remembered.add_answer(local, kind, pod)
    log = snapshot.changes if local.looks_at_pods else snapshot.node_changes
    if answer.generation < log.newest:
        stale = remembered.changed_since(answer.generation, snapshot, looks_at_pods=local.looks_at_pods)
        if stale is not None:
            answer.generation = NEVER  # if a plugin fails here, the values hold for no generation
            answer.set(stale.node, compute(local.runs, stale))
        answer.generation = snapshot.generation
    return answer

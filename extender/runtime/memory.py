"""Memory: results about nodes that are reused for equal pods while a node is unchanged.

Many pods differ only in their names. For such a pod the plugins that look only at the node (`looks_only_at_node`) are not run on every node
again: their last results are corrected at the nodes that have changed since. This is exact, because such a plugin promises that rows do not
depend on each other; nothing is approximated and nothing expires.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.scoring import WeightedScorer
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Int64s, Mask

KEPT_SIGNATURES = 64
"""The number of pod signatures remembered; the least recently used is dropped first."""

NEVER = -1

_ENCODE = msgspec.json.Encoder(order="deterministic").encode


A = TypeVar("A", bound=np.generic)


Filters = tuple[tuple[str, fwk.FilterPlugin], ...]
Scorers = tuple[WeightedScorer, ...]


@final
@dataclass(frozen=True, slots=True)
class FilterPlan:
    """The Filters that run for a pod, by what they look at. There is one for each set of skipped plugins."""

    of_nodes: Filters
    """Filters that look only at a node, and at none of its pods."""
    of_pods: Filters
    """Filters that look only at a node and its pods."""
    others: Filters
    """Filters that look at other nodes or objects as well."""


@final
@dataclass(frozen=True, slots=True)
class ScorePlan:
    """The Score plugins that run for a pod, by what they look at."""

    of_nodes: Scorers
    """Scorers that look only at a node and at none of its pods, and whose scores need no normalising."""
    of_pods: Scorers
    """Scorers that look only at a node and its pods, and whose scores need no normalising."""
    normalized: Scorers
    """Scorers that look only at a node, and whose scores are normalised over the feasible nodes."""
    others: Scorers
    """Scorers that look at other nodes or objects as well."""


def filter_plan(filters: Filters, skipped: frozenset[str]) -> FilterPlan:
    """Returns the Filters that are not skipped, by what they look at."""
    running = [(name, plugin) for name, plugin in filters if name not in skipped]
    return FilterPlan(
        of_nodes=tuple((name, plugin) for name, plugin in running if plugin.looks_only_at_node and not plugin.looks_at_pods),
        of_pods=tuple((name, plugin) for name, plugin in running if plugin.looks_only_at_node and plugin.looks_at_pods),
        others=tuple((name, plugin) for name, plugin in running if not plugin.looks_only_at_node),
    )


def score_plan(scorers: Sequence[WeightedScorer], skipped: frozenset[str]) -> ScorePlan:
    """Returns the Score plugins that are not skipped, by what they look at."""
    running = [scorer for scorer in scorers if scorer.name not in skipped]
    local = [scorer for scorer in running if scorer.plugin.looks_only_at_node]
    return ScorePlan(
        of_nodes=tuple(scorer for scorer in local if not scorer.normalizes and not scorer.plugin.looks_at_pods),
        of_pods=tuple(scorer for scorer in local if not scorer.normalizes and scorer.plugin.looks_at_pods),
        normalized=tuple(scorer for scorer in local if scorer.normalizes),
        others=tuple(scorer for scorer in running if not scorer.plugin.looks_only_at_node),
    )


@final
class PerNodeAnswer(Generic[A]):
    """A per-node result kept between cycles, with the generation it holds for and the plugins that produced it."""

    __slots__ = ("generation", "plugins", "values", "weighted")

    def __init__(self, values: npt.NDArray[A]) -> None:
        self.generation = NEVER
        """The generation that the values hold for."""
        self.plugins: tuple[object, ...] = ()
        """The plugins that produced them."""
        self.values = values
        """(N,)"""
        self.weighted: npt.NDArray[A] | None = None
        """(N,) the weighted scores made of raw ones while all nodes are feasible; None until they are asked for."""


@final
class Remembered:
    """The results remembered for the pods of one signature."""

    __slots__ = (
        "_changed",
        "_changes",
        "fits_node",
        "fits_pods",
        "raw",
        "scored_node",
        "scored_pods",
        "skip_pre_filter",
        "skip_pre_score",
    )

    def __init__(self, snapshot: Snapshot) -> None:
        num_nodes = len(snapshot.nodes)
        self._changes = snapshot.changes
        self._changed: dict[bool, tuple[int, int, Rows | None]] = {}
        self.fits_node = PerNodeAnswer(np.zeros(num_nodes, np.bool_))
        """Nodes that passed the Filters which do not look at pods."""
        self.fits_pods = PerNodeAnswer(np.zeros(num_nodes, np.bool_))
        """Nodes that passed the Filters which look at the node's pods."""
        self.scored_node = PerNodeAnswer(np.zeros(num_nodes, np.int64))
        """The weighted sum of the Score plugins that do not look at pods, and whose scores need no normalising."""
        self.scored_pods = PerNodeAnswer(np.zeros(num_nodes, np.int64))
        """The weighted sum of the Score plugins that look at the node's pods, and whose scores need no normalising."""
        self.raw: dict[str, PerNodeAnswer[np.int64]] = {}
        """Score plugin -> its scores before normalising, which depends on all feasible nodes together."""
        self.skip_pre_filter: frozenset[str] = frozenset()
        """Plugins whose PreFilter answered `SKIP_EQUAL_PODS`."""
        self.skip_pre_score: frozenset[str] = frozenset()
        """Plugins whose PreScore answered `SKIP_EQUAL_PODS`."""

    def is_about(self, snapshot: Snapshot) -> bool:
        """Returns whether the results are about this snapshot's nodes. The generations of another cache mean nothing here."""
        return self._changes is snapshot.changes and len(self.fits_node.values) == len(snapshot.nodes)

    def changed_since(self, generation: int, snapshot: Snapshot, *, looks_at_pods: bool) -> Rows | None:
        """Returns the nodes that changed after a generation, they or the pods on them; all nodes when the log does not reach back so far;
        None if none did.

        Arguments:
            looks_at_pods: False if changes of pods do not matter.
        """
        # Filters and scores ask for the same nodes within a cycle.
        known = self._changed.get(looks_at_pods)
        if known is not None and known[0] == generation and known[1] == snapshot.generation:
            return known[2]
        log = snapshot.changes if looks_at_pods else snapshot.node_changes
        changed = None if generation == NEVER else log.since(generation)
        rows = Rows.of(snapshot) if changed is None else Rows.of(snapshot, np.array(changed, np.intp)) if changed else None
        self._changed[looks_at_pods] = generation, snapshot.generation, rows
        return rows


@final
class Memory:
    """The remembered results by pod signature. A framework has one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Remembered] = OrderedDict()

    def forget(self) -> None:
        self._kept.clear()

    def recall(self, signature: bytes, snapshot: Snapshot) -> Remembered:
        """Returns the results remembered for this signature. They are blank for a new one, and after the nodes were renumbered."""
        known = self._kept.get(signature)
        if known is None or not known.is_about(snapshot):
            known = self._kept[signature] = Remembered(snapshot)
            if len(self._kept) > KEPT_SIGNATURES:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(signature)
        return known


def signature_of(pod: Pod) -> bytes:
    """Returns bytes that are equal for pods which `looks_only_at_node` plugins cannot tell apart."""
    meta = pod.metadata
    return _ENCODE((meta.namespace, meta.labels, meta.annotations, pod.spec))


def remembered_fits(known: Remembered, plan: FilterPlan, passing: Callable[[Filters, Rows], Mask], snapshot: Snapshot) -> Mask:
    """Returns (N,) the nodes that pass the plan's local Filters. Only nodes where something changed that the Filters look at are filtered.

    Arguments:
        passing: returns the rows that some Filters let pass.
    """
    fits = _refreshed(known, known.fits_node, plan.of_nodes, lambda stale: passing(plan.of_nodes, stale), snapshot, looks_at_pods=False)
    return fits & _refreshed(known, known.fits_pods, plan.of_pods, lambda stale: passing(plan.of_pods, stale), snapshot)


def remembered_sum(known: Remembered, plan: ScorePlan, scores: Callable[[WeightedScorer, Rows], Int64s], snapshot: Snapshot) -> Int64s:
    """Returns (N,) the weighted sum of the plan's local scorers that need no normalising, as a new array. Only nodes where something
    changed that the scorers look at are scored.

    Arguments:
        scores: returns one scorer's scores of some rows, all of them from 0 to 100.
    """

    def weighted_sum(scorers: Scorers, stale: Rows) -> Int64s:
        total = np.zeros(len(stale), np.int64)
        for scorer in scorers:
            total += scores(scorer, stale) * scorer.weight
        return total

    of_nodes = _refreshed(known, known.scored_node, plan.of_nodes, partial(weighted_sum, plan.of_nodes), snapshot, looks_at_pods=False)
    of_pods = _refreshed(known, known.scored_pods, plan.of_pods, partial(weighted_sum, plan.of_pods), snapshot)
    total: Int64s = of_nodes + of_pods
    return total


def remembered_raw_scores(
    known: Remembered, scorer: WeightedScorer, scores: Callable[[Rows], Int64s], snapshot: Snapshot
) -> PerNodeAnswer[np.int64]:
    """Returns one scorer's scores of all nodes before normalising. Only nodes that changed are scored.

    Arguments:
        scores: returns the scorer's scores of some rows.
    """
    kept = known.raw.get(scorer.name)
    if kept is None:
        kept = known.raw[scorer.name] = PerNodeAnswer(np.zeros(len(snapshot.nodes), np.int64))
    _refreshed(known, kept, (scorer,), scores, snapshot, looks_at_pods=scorer.plugin.looks_at_pods)
    return kept


def _refreshed(
    known: Remembered,
    kept: PerNodeAnswer[A],
    plugins: tuple[object, ...],
    compute: Callable[[Rows], npt.NDArray[A]],
    snapshot: Snapshot,
    *,
    looks_at_pods: bool = True,
) -> npt.NDArray[A]:
    """Returns (N,) the kept values after computing those of the nodes that changed, or all of them if other plugins produced them."""
    if plugins != kept.plugins:
        kept.plugins, kept.generation = plugins, NEVER
    stale = known.changed_since(kept.generation, snapshot, looks_at_pods=looks_at_pods)
    if stale is not None:
        kept.generation, kept.weighted = NEVER, None  # if a plugin fails here, the values hold for no generation
        kept.values[stale.node] = compute(stale)
    kept.generation = snapshot.generation
    return kept.values

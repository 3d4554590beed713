"""Memory: answers about nodes that hold for equal pods while a node is unchanged.

Pods come in crowds that differ only in their names. For such a pod the plugins that look only at the node (`looks_only_at_node`) need not
be asked about every node again: what they said last time is corrected at the nodes that changed since. This is exact, because such a
plugin promises that rows do not talk; nothing is approximated and nothing expires.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.plans import FilterPlan, Filters, Scorers
from extender.runtime.scoring import WeightedScorer, in_range, raw_scores
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Int64s, Mask

KEPT_SIGNATURES = 64
"""Kinds of pods remembered; the longest unasked is forgotten first."""

NEVER = -1

_ENCODE = msgspec.json.Encoder(order="deterministic").encode


A = TypeVar("A", bound=np.generic)


@final
class Kept(Generic[A]):
    """An answer for every node, and for when and from whom it is."""

    __slots__ = ("asked", "at", "values")

    def __init__(self, values: npt.NDArray[A]) -> None:
        self.at = NEVER
        """The generation that the answers hold for."""
        self.asked: tuple[object, ...] = ()
        """The plugins that gave them."""
        self.values = values
        """(N,)"""


@final
class Remembered:
    """What is known for one kind of pod."""

    __slots__ = ("_changed", "_changes", "fits_node", "fits_pods", "raw", "summed")

    def __init__(self, snapshot: Snapshot) -> None:
        num_nodes = len(snapshot.nodes)
        self._changes = snapshot.changes
        self._changed: dict[tuple[bool, int], tuple[int, Rows]] = {}
        self.fits_node = Kept(np.zeros(num_nodes, np.bool_))
        """Nodes that the Filters which look at no pods let pass."""
        self.fits_pods = Kept(np.zeros(num_nodes, np.bool_))
        """Nodes that the Filters which look at the node's pods let pass."""
        self.summed = Kept(np.zeros(num_nodes, np.int64))
        """The weighted sum of the Score plugins whose scores need no normalising."""
        self.raw: dict[str, Kept[np.int64]] = {}
        """By Score plugin: its scores before normalising, which looks at all feasible nodes together."""

    def is_about(self, snapshot: Snapshot) -> bool:
        """Whether this is known of the same cache's nodes, and of as many. Another cache counts other generations."""
        return self._changes is snapshot.changes and len(self.fits_node.values) == len(snapshot.nodes)

    def changed_since(self, generation: int, snapshot: Snapshot, *, looks_at_pods: bool) -> Rows:
        """The nodes that changed after a generation, they or the pods on them; all of them when that is not known (any more).

        Arguments:
            looks_at_pods: False if pods that come and go do not matter.
        """
        question = looks_at_pods, generation
        answered = self._changed.get(question)
        if answered is not None and answered[0] == snapshot.generation:
            return answered[1]
        log = snapshot.changes if looks_at_pods else snapshot.node_changes
        changed = None if generation == NEVER else log.since(generation)
        rows = Rows.of(snapshot, None if changed is None else np.array(changed, np.intp))
        # Filters and scores ask the same, one after the other; what was asked in earlier cycles will not be asked again.
        self._changed = {key: kept for key, kept in self._changed.items() if kept[0] == snapshot.generation}
        self._changed[question] = snapshot.generation, rows
        return rows


REMEMBERED: Final = fwk.StateKey[Remembered]("Remembered")


@final
class Memory:
    """Pod signature -> what is remembered. One per framework."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Remembered] = OrderedDict()

    def recall(self, signature: bytes, snapshot: Snapshot) -> Remembered:
        """What is remembered for such pods; blank for a new kind, and when the nodes were numbered anew."""
        known = self._kept.get(signature)
        if known is None or not known.is_about(snapshot):
            known = self._kept[signature] = Remembered(snapshot)
            if len(self._kept) > KEPT_SIGNATURES:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(signature)
        return known


def signature_of(pod: Pod) -> bytes:
    """Equal for pods that no `looks_only_at_node` plugin can tell apart."""
    meta = pod.metadata
    return _ENCODE((meta.namespace, meta.labels, meta.annotations, pod.spec))


def remembered_fits(known: Remembered, plan: FilterPlan, ask: Callable[[Filters, Rows], Mask], snapshot: Snapshot) -> Mask:
    """(N,) the nodes that the plan's local Filters let pass, asked again where something changed that they look at.

    Arguments:
        ask: which rows some Filters let pass.
    """
    fits = _refreshed(known, known.fits_node, plan.of_nodes, lambda stale: ask(plan.of_nodes, stale), snapshot, looks_at_pods=False)
    return fits & _refreshed(known, known.fits_pods, plan.of_pods, lambda stale: ask(plan.of_pods, stale), snapshot)


def remembered_sum(known: Remembered, scorers: Scorers, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> Int64s:
    """(N,) the weighted sum of scorers that need no normalising, asked again where the node changed."""

    def ask(stale: Rows) -> Int64s:
        total = np.zeros(len(stale), np.int64)
        for scorer in scorers:
            total += in_range(scorer, raw_scores(scorer, state, pod, stale)) * scorer.weight
        return total

    return _refreshed(known, known.summed, scorers, ask, snapshot)


def remembered_raw_scores(known: Remembered, scorer: WeightedScorer, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> Int64s:
    """(N,) one scorer's answers before normalising, asked again where the node changed."""
    kept = known.raw.get(scorer.name)
    if kept is None:
        kept = known.raw[scorer.name] = Kept(np.zeros(len(snapshot.nodes), np.int64))
    return _refreshed(known, kept, (scorer,), lambda stale: raw_scores(scorer, state, pod, stale), snapshot)


def _refreshed(
    known: Remembered,
    kept: Kept[A],
    asked: tuple[object, ...],
    ask: Callable[[Rows], npt.NDArray[A]],
    snapshot: Snapshot,
    *,
    looks_at_pods: bool = True,
) -> npt.NDArray[A]:
    if asked != kept.asked:
        kept.asked, kept.at = asked, NEVER
    stale = known.changed_since(kept.at, snapshot, looks_at_pods=looks_at_pods)
    if len(stale):
        kept.at = NEVER  # half corrected, should a plugin fail
        kept.values[stale.node] = ask(stale)
    kept.at = snapshot.generation
    return kept.values

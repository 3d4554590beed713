"""Memory: answers about nodes that hold for equal pods while a node is unchanged.

Pods come in crowds that differ only in their names. For such a pod the plugins that look only at the node (`looks_only_at_node`) need not
be asked about every node again: what they said last time is corrected at the nodes that changed since. This is exact, because such a
plugin promises that rows do not talk; nothing is approximated and nothing expires.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, final

import msgspec
import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.scoring import WeightedScorer, normalized_scores, raw_scores
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Int64s, Mask

KEPT_SIGNATURES = 64
"""Kinds of pods remembered; the longest unasked is forgotten first."""

NEVER = -1

_ENCODE = msgspec.json.Encoder(order="deterministic").encode


@final
class RememberedScores:
    """Score plugins' answers for every node."""

    __slots__ = ("asked", "at", "values")

    def __init__(self, num_nodes: int) -> None:
        self.at = NEVER
        """The generation they hold for."""
        self.asked: tuple[str, ...] = ()
        """The plugins they are the answers of."""
        self.values: Int64s = np.zeros(num_nodes, np.int64)
        """(N,)"""


@final
class Remembered:
    """What is known for one kind of pod."""

    __slots__ = ("_changed", "_changes", "asked", "at", "fits", "raw", "summed")

    def __init__(self, snapshot: Snapshot) -> None:
        num_nodes = len(snapshot.nodes)
        self._changes = snapshot.changes
        self.at = NEVER
        """The generation that `fits` holds for."""
        self.asked: tuple[str, ...] = ()
        """The Filters that `fits` is the answer of."""
        self.fits: Mask = np.zeros(num_nodes, np.bool_)
        """(N,) nodes that those Filters let pass."""
        self.summed = RememberedScores(num_nodes)
        """The weighted sum of the Score plugins whose scores need no normalising."""
        self.raw: dict[str, RememberedScores] = {}
        """By Score plugin: its scores before normalising, which looks at all feasible nodes together."""
        self._changed: tuple[int, int, Rows] | None = None

    def is_about(self, snapshot: Snapshot) -> bool:
        """Whether this is known of the same cache's nodes, and of as many. Another cache counts other generations."""
        return self._changes is snapshot.changes and len(self.fits) == len(snapshot.nodes)

    def changed_since(self, generation: int, snapshot: Snapshot) -> Rows:
        """The nodes that changed after a generation; all of them when that is not known (any more)."""
        if self._changed is not None and self._changed[:2] == (generation, snapshot.generation):
            return self._changed[2]
        changed = None if generation == NEVER else snapshot.changes.since(generation)
        rows = Rows.of(snapshot, None if changed is None else np.array(changed, np.intp))
        # Filters and scores ask the same, one after the other.
        self._changed = generation, snapshot.generation, rows
        return rows


REMEMBERED: Final = fwk.StateKey[Remembered]("Remembered")


@final
class Memory:
    """Pod signature -> what is remembered. One per framework."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Remembered] = OrderedDict()

    def recall(self, pod: Pod, snapshot: Snapshot) -> Remembered:
        """What is remembered for such pods; blank for a new kind, and when the nodes were numbered anew."""
        signature = signature_of(pod)
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


def refresh_fits(
    known: Remembered, filters: Sequence[tuple[str, fwk.FilterPlugin]], ask: Callable[[Rows], fwk.Verdicts], snapshot: Snapshot
) -> None:
    """Ask the Filters about the nodes that changed, or about all if other Filters were asked last time.

    Arguments:
        ask: runs these Filters on rows.
    """
    names = tuple(name for name, _ in filters)
    if names != known.asked:
        known.asked, known.at = names, NEVER
    stale = known.changed_since(known.at, snapshot)
    if len(stale):
        known.at = NEVER  # half corrected, should a plugin fail
        known.fits[stale.node] = ask(stale).ok
    known.at = snapshot.generation


def summed_scores(known: Remembered, scorers: Sequence[WeightedScorer], state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> Int64s:
    """(N,) the weighted sum of scorers that need no normalising, asked again where the node changed."""

    def ask(stale: Rows) -> Int64s:
        total = np.zeros(len(stale), np.int64)
        for scorer in scorers:
            total += normalized_scores(scorer, state, pod, raw_scores(scorer, state, pod, stale)) * scorer.weight
        return total

    return _refreshed(known, known.summed, tuple(scorer.name for scorer in scorers), ask, snapshot)


def remembered_raw_scores(known: Remembered, scorer: WeightedScorer, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> Int64s:
    """(N,) one scorer's answers before normalising, asked again where the node changed."""
    remembered = known.raw.get(scorer.name)
    if remembered is None:
        remembered = known.raw[scorer.name] = RememberedScores(len(snapshot.nodes))
    return _refreshed(known, remembered, (scorer.name,), lambda stale: raw_scores(scorer, state, pod, stale), snapshot)


def _refreshed(
    known: Remembered, remembered: RememberedScores, asked: tuple[str, ...], ask: Callable[[Rows], Int64s], snapshot: Snapshot
) -> Int64s:
    if asked != remembered.asked:
        remembered.asked, remembered.at = asked, NEVER
    stale = known.changed_since(remembered.at, snapshot)
    if len(stale):
        remembered.at = NEVER
        remembered.values[stale.node] = ask(stale)
    remembered.at = snapshot.generation
    return remembered.values

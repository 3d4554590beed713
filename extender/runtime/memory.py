"""Memory: answers about nodes that hold for equal pods while a node is unchanged.

Pods come in crowds that differ only in their names. For such a pod the plugins that look only at the node (`looks_only_at_node`) need not be
asked about every node again: what they said last time is corrected at the nodes that changed since. This is exact, because such a plugin
promises that rows do not talk; nothing is approximated and nothing expires.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, final

import msgspec
import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.scoring import WeightedScorer, raw_scores
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Int64s, Mask

KEPT_SIGNATURES = 64
"""Kinds of pods remembered; the longest unasked is forgotten first."""

NEVER = -1

_ENCODE = msgspec.json.Encoder(order="deterministic").encode


@final
class RememberedScores:
    """One Score plugin's answers before normalising."""

    __slots__ = ("at", "raw")

    def __init__(self, num_nodes: int) -> None:
        self.at = NEVER
        """The generation they hold for."""
        self.raw: Int64s = np.zeros(num_nodes, np.int64)
        """(N,)"""


@final
class Remembered:
    """What is known for one kind of pod."""

    __slots__ = ("asked", "at", "fits", "scores")

    def __init__(self, num_nodes: int) -> None:
        self.at = NEVER
        """The generation that `fits` holds for."""
        self.asked: tuple[str, ...] = ()
        """The Filters that `fits` is the answer of."""
        self.fits: Mask = np.zeros(num_nodes, np.bool_)
        """(N,) nodes that those Filters let pass."""
        self.scores: dict[str, RememberedScores] = {}
        """By Score plugin."""


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
        if known is None or len(known.fits) != len(snapshot.nodes):
            known = self._kept[signature] = Remembered(len(snapshot.nodes))
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
    stale = _changed_since(known.at, snapshot)
    if len(stale):
        known.at = NEVER  # half corrected, should a plugin fail
        known.fits[stale.node] = ask(stale).ok
    known.at = snapshot.generation


def refresh_scores(known: Remembered, scorer: WeightedScorer, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> Int64s:
    """(N,) the scorer's answers for every node, asked again where the node changed."""
    remembered = known.scores.get(scorer.name)
    if remembered is None:
        remembered = known.scores[scorer.name] = RememberedScores(len(snapshot.nodes))
    stale = _changed_since(remembered.at, snapshot)
    if len(stale):
        remembered.at = NEVER
        remembered.raw[stale.node] = raw_scores(scorer, state, pod, stale)
    remembered.at = snapshot.generation
    return remembered.raw


def _changed_since(generation: int, snapshot: Snapshot) -> Rows:
    changed = None if generation == NEVER else snapshot.changes.since(generation)
    return Rows.of(snapshot, None if changed is None else np.array(changed, np.intp))

"""What is kept of the arrays of a cycle, packed as small as possible. Texts are made when a record is read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final, final

import msgspec
import numpy as np

from extender.answers.records.values import AttemptRecord, CandidateRecord, PreemptionRecord, Victim
from extender.engine import framework as fwk
from extender.engine.framework import Candidate, Candidates
from extender.engine.preemption.budgets import broken_budgets
from extender.engine.preemption.costs import best
from extender.engine.preemption.victim_policy import lost_gpu_hours
from extender.engine.runtime.findings import Findings
from extender.engine.runtime.scoring import Choice
from extender.engine.snapshot.axes import CPU, MEMORY, Index, Int64s, Mask
from extender.values import limits
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import assigned_requests

TEXT_OVERHEAD: Final = 49
"""Bytes of an empty string."""
OTHER_REASONS: Final = "other reasons"
ARRAY_OVERHEAD: Final = 112
"""Bytes of an array without numbers."""
SCORES_OVERHEAD: Final = 400 + 3 * ARRAY_OVERHEAD
BEST_NODES: Final = 16
"""The number of nodes of which scores are kept."""
DETAILS_OVERHEAD: Final = 250
"""Bytes of details without numbers and texts."""
BYTES_A_NAME: Final = 57
"""Bytes of an empty string and a reference to it."""
NUMBERINGS: Final = 2
"""The numberings of nodes that are recognized again: of the cluster, and of nodes in the requests of another scheduler.
"""


# Names of nodes, kept once for all attempts during which the nodes were numbered the same way.


@final
class NodeNames:
    """The names along axis N."""

    __slots__ = ("names", "size", "users")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.users = 0
        """The number of kept arrays that are about these nodes."""
        self.size = sum(map(len, names)) + BYTES_A_NAME * len(names)
        """The approximate number of bytes; the names may outlive the nodes."""


@final
class Naming:
    """The names of the nodes of the last snapshots, and how much memory all names in use take."""

    def __init__(self) -> None:
        self.size = 0
        """The approximate number of bytes of the names in use."""
        # Each with the index that it was made from: as long as that is the snapshot's, the nodes are numbered as
        # before.
        self._last: list[tuple[dict[str, int], NodeNames]] = []

    def of(self, index: dict[str, int]) -> NodeNames:
        """Returns the names of the nodes.

        Arguments:
            index: that of a snapshot; see `NodeColumns.index`.
        """
        for known, names in self._last:
            if known is index:
                return names
        made = NodeNames(tuple(index))
        self._last = [(index, made), *self._last[: NUMBERINGS - 1]]
        return made

    def used(self, names: NodeNames) -> None:
        """Counts one more array about these nodes."""
        if not names.users:
            self.size += names.size
        names.users += 1

    def unused(self, names: NodeNames) -> None:
        """Counts one array less about these nodes."""
        names.users -= 1
        if not names.users:
            self.size -= names.size


# Packed values.


@final
@dataclass(frozen=True, slots=True)
class KeptVerdicts:
    """What the Filters said of B nodes, and PreFilter of the cluster. A mask is a bit a node, as bytes."""

    nodes: NodeNames
    num_rows: int
    """B; 0 if PreFilter refused the pod, and no Filter was asked."""
    within: bytes | None
    """(N,) the nodes that the Filters were asked about, in order; None for all."""
    refused_by: tuple[tuple[str, bytes], ...]
    """(plugin, (B,) the nodes that it refused), in the order in which they were asked."""
    reasons: tuple[tuple[str, bytes], ...]
    """(reason, (B,) the nodes that it holds for)."""
    unresolvable: bytes
    """(B,) nodes that were refused so that preemption cannot help."""
    pending: bytes | None = None
    """(B,) nodes that were refused until something happens that a plugin waits for; None for none."""
    narrowed_by: tuple[str, ...] = ()
    """PreFilter plugins that left only some nodes in play."""
    pre_filter: tuple[str, str, bool] | None = None
    """(plugin, what it said, whether it said so for good) if PreFilter refused the pod."""
    by_extenders: tuple[tuple[str, int, int], ...] = ()
    """(reason, nodes it holds for, those of them that are refused for good), of nodes that extenders refused."""

    @property
    def size(self) -> int:
        """The approximate number of bytes, without the names."""
        num_masks = 1 + (self.pending is not None) + len(self.refused_by) + len(self.reasons)
        size = 300 + num_masks * (len(self.unresolvable) + 90) + (len(self.within) if self.within is not None else 0)
        if self.pre_filter is not None:
            size += len(self.pre_filter[1]) + TEXT_OVERHEAD
        for reason, _ in self.reasons:
            size += len(reason) + TEXT_OVERHEAD
        for reason, _, _ in self.by_extenders:
            size += len(reason) + TEXT_OVERHEAD
        return size

    def asked(self) -> Index:
        """Returns (B,) places on axis N."""
        if not self.num_rows:
            return np.zeros(0, np.intp)
        return (
            np.arange(self.num_rows)
            if self.within is None
            else np.flatnonzero(unpacked(self.within, len(self.nodes.names)))
        )

    def mask(self, bits: bytes) -> Mask:
        """Returns one of the masks as (B,)."""
        return unpacked(bits, self.num_rows)


@final
class KeptScores(msgspec.Struct, frozen=True, gc=False):
    """The weighted scores of the best B nodes that a pod could choose from: the chosen one, then the others, best
    first.
    """

    nodes: tuple[str, ...]
    """(B,) the names of the nodes, in that order."""
    total: Int64s
    """(B,) with what extenders added."""
    plugins: tuple[tuple[str, int], ...]
    """(name, weight) of P plugins."""
    raw: Int64s
    """(P, B) before normalising."""
    weighted: Int64s
    """(P, B) the normalised scores, each with its plugin's weight."""

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return SCORES_OVERHEAD + BYTES_A_NAME * len(self.nodes) + 2 * self.raw.nbytes + 100 * len(self.plugins)


@final
class Details(msgspec.Struct, frozen=True, gc=False):
    """What is kept of an attempt while there is memory for it."""

    verdicts: KeptVerdicts | None = None
    scores: KeptScores | None = None
    best: tuple[tuple[str, int], ...] = ()
    """(node, score) of the best nodes, where another scheduler asked for scores."""
    not_helpful: tuple[tuple[str, int], ...] = ()
    """(reason, nodes) where evictions would not help."""

    @property
    def size(self) -> int:
        """The approximate number of bytes, without shared names."""
        size = DETAILS_OVERHEAD + 120 * len(self.best) + sum(130 + len(reason) for reason, _ in self.not_helpful)
        if self.scores is not None:
            size += self.scores.size
        if self.verdicts is not None:
            size += self.verdicts.size
        return size


@final
class KeptAttempt(msgspec.Struct, frozen=True, gc=False):
    """An attempt with what is still kept of it."""

    record: AttemptRecord
    details: Details | None = None
    preemption: PreemptionRecord | None = None


def packed(mask: Mask) -> bytes:
    """Returns a mask as bytes of eight nodes each."""
    return np.packbits(mask).tobytes()


def unpacked(bits: bytes, length: int) -> Mask:
    """Returns the mask of such bytes."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=length).view(np.bool_)


# Packing.


def keep_verdicts(findings: Findings, nodes: NodeNames) -> KeptVerdicts:
    """Packs what PreFilter and the Filters said.

    Arguments:
        nodes: those of the snapshot that the findings are about.
    """
    rows, verdicts, pre_filter = findings.rows, findings.verdicts, findings.pre_filter
    node, order = rows.node, None
    if not rows.is_all and not (node[1:] > node[:-1]).all():  # rows may be in another order, and a node may occur twice
        node, order = np.unique(node, return_index=True)

    def bits(mask: Mask) -> bytes:
        return packed(mask if order is None else mask[order])

    pending = verdicts.codes == fwk.Code.PENDING
    is_for_good = pre_filter.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return KeptVerdicts(
        nodes=nodes,
        num_rows=len(node),
        within=None if rows.is_all else _places(node, len(nodes.names)),
        refused_by=tuple((plugin, bits(mask)) for plugin, mask in verdicts.refused_by),
        reasons=tuple((reason, bits(mask)) for reason, mask in _not_too_many(verdicts.reasons)),
        unresolvable=bits(verdicts.codes == fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        pending=bits(pending) if pending.any() else None,
        narrowed_by=findings.narrowed_by,
        pre_filter=None if pre_filter.is_success else (pre_filter.plugin, pre_filter.message, is_for_good),
        by_extenders=_by_extenders(findings),
    )


def keep_scores(choice: Choice) -> KeptScores:
    """Packs the scores of the best nodes that a pod could choose from; of equal ones those that come first among the
    nodes.
    """
    total, chosen = choice.total, choice.chosen
    enough = min(BEST_NODES, len(total))
    # Equal scores may be all there are, so the few above the threshold are sorted, and places are filled up with the
    # first that reach it.
    threshold = -np.partition(-total, enough - 1)[enough - 1]
    above, level = np.flatnonzero(total > threshold), np.flatnonzero(total == threshold)
    best = [*above[np.argsort(-total[above], kind="stable")].tolist(), *level[:enough].tolist()]
    at = np.array([chosen, *(row for row in best if row != chosen)][:enough], np.intp)
    scores = choice.scores_at(at)
    empty = np.zeros((0, len(at)), np.int64)
    return KeptScores(
        tuple(choice.rows.take(at).names),
        total[at],
        tuple(scores.weights.items()),
        np.stack(list(scores.raw.values())) if scores.raw else empty,
        np.stack(list(scores.weighted.values())) if scores.weighted else empty,
    )


def _places(node: Index, num_nodes: int) -> bytes:
    mask = np.zeros(num_nodes, np.bool_)
    mask[node] = True
    return packed(mask)


def _not_too_many(reasons: tuple[tuple[str, Mask], ...]) -> list[tuple[str, Mask]]:
    """Each reason once, in order; of too many reasons, those of the fewest nodes count as one."""
    together = dict(reasons)
    if len(together) < len(reasons):
        together = {}
        for reason, mask in reasons:
            known = together.get(reason)
            together[reason] = mask if known is None else known | mask
    if len(together) <= limits.REASONS_KEPT:
        return list(together.items())
    # Thousands of reasons share a few masks: one for each resource that a pod requests and no node offers.
    masks = _by_id(together.values())
    nodes = {each: np.count_nonzero(mask) for each, mask in masks.items()}
    of_reason = list(map(id, together.values()))
    first = np.argsort([-nodes[each] for each in of_reason], kind="stable")[: limits.REASONS_KEPT].tolist()
    in_order = list(together.items())
    left = Counter(of_reason) - Counter(of_reason[place] for place in first)
    others = np.logical_or.reduce([masks[each] for each in left])
    return [*(in_order[place] for place in first), (OTHER_REASONS, others)]


def _by_id(masks: Iterable[Mask]) -> dict[int, Mask]:
    return {id(mask): mask for mask in masks}


def _by_extenders(findings: Findings) -> tuple[tuple[str, int, int], ...]:
    counts: dict[str, tuple[int, int]] = {}
    for status in findings.by_extenders.values():
        is_for_good = status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        reason = status.message if status.message in counts or len(counts) < limits.REASONS_KEPT else OTHER_REASONS
        nodes, for_good = counts.get(reason, (0, 0))
        counts[reason] = nodes + 1, for_good + is_for_good
    return tuple((reason, *numbers) for reason, numbers in counts.items())


def keep_candidates(
    candidates: Candidates, preemptor: Pod, now: float, chosen: int | None = None
) -> tuple[CandidateRecord, ...]:
    """Returns the best candidates, the chosen one first.

    Arguments:
        now: seconds since 1970.
        chosen: its place in `candidates`; None if the choice is still to be made, so that any of them may be taken.
            Then all victims of each are kept.
    """
    if not len(candidates):
        return ()
    found = best(candidates, limits.CANDIDATES_KEPT, chosen)
    kept, snapshot = found.candidates, candidates.snapshot
    broken = broken_budgets(snapshot, kept.node[found.order], preemptor, candidates.rules)
    first: list[int] = kept.first.tolist()
    slots: list[int] = kept.slots.tolist()
    kept_of_each = [
        limits.VICTIMS_KEPT,
        *[limits.VICTIMS_KEPT if chosen is None else limits.OTHER_VICTIMS_KEPT] * (limits.CANDIDATES_KEPT - 1),
    ]
    slots_of_each = [
        slots[first[place] : first[place + 1]][:limit] for place, limit in zip(found.order, kept_of_each, strict=False)
    ]
    # One look-up in the columns for the victims of all candidates; each takes its own off the iterator.
    held = iter(snapshot.pods.requests[list(chain.from_iterable(slots_of_each))][:, [CPU, MEMORY]].tolist())
    return tuple(
        CandidateRecord(
            node=snapshot.nodes.objects[int(kept.node[place])].name,
            victims=tuple(_victim(snapshot.pod_at(slot), broken, *next(held), now=now) for slot in of_candidate),
            num_pdb_violations=costs.num_pdb_violations,
            costs=costs,
        )
        for place, costs, of_candidate in zip(found.order, found.costs, slots_of_each, strict=True)
    )


def keep_chosen(candidates: Candidates, preemptor: Pod, now: float, place: int) -> CandidateRecord:
    """Returns the chosen candidate alone, without what it costs."""
    snapshot, first, last = candidates.snapshot, int(candidates.first[place]), int(candidates.first[place + 1])
    node = int(candidates.node[place])
    broken = broken_budgets(snapshot, np.array([node]), preemptor, candidates.rules)
    slots: list[int] = candidates.slots[first : min(last, first + limits.VICTIMS_KEPT)].tolist()
    held = snapshot.pods.requests[slots][:, [CPU, MEMORY]].tolist()
    victims = tuple(
        _victim(snapshot.pod_at(slot), broken, *of_pod, now=now) for slot, of_pod in zip(slots, held, strict=True)
    )
    return CandidateRecord(snapshot.nodes.objects[node].name, victims, int(candidates.num_pdb_violations[place]))


def keep_other_choice(chosen: Candidate, now: float) -> CandidateRecord:
    """Returns a candidate that is not one of those that are listed."""
    victims = []
    for pod in chosen.victims[: limits.VICTIMS_KEPT]:
        held, _, _ = assigned_requests(pod)
        victims.append(Victim.of(pod, (), held.milli_cpu, held.memory, lost_gpu_hours(pod, now)))
    return CandidateRecord(chosen.node, tuple(victims), chosen.num_pdb_violations)


def place_of(candidates: Candidates, node: str) -> int | None:
    """Returns the place of a node among the candidates; None if it is not one of them."""
    found = np.flatnonzero(candidates.node == candidates.snapshot.nodes.index.get(node, -1))
    return int(found[0]) if len(found) else None


def _victim(pod: Pod, broken: Mapping[str, tuple[str, ...]], cpu: int, memory: int, *, now: float) -> Victim:
    return Victim.of(pod, broken.get(pod.uid, ()), cpu, memory, lost_gpu_hours(pod, now))

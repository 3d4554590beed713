"""Matches claims with existing volumes: on each node the smallest suitable one, each volume for one claim only.

Upstream: component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume; framework/plugins/volumebinding/binder.go,
findMatchingVolumes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

import msgspec
import numpy as np

from extender.engine.plugins.volume_binding.pod_claims import DelayedClaim, Storage
from extender.engine.plugins.volume_binding.reach import Affinities
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.engine.snapshot.columns import LabelColumn
from extender.engine.snapshot.symbols import ABSENT
from extender.values.objects.claims import (
    VOLUME_AVAILABLE,
    has_access_of,
    has_attributes_of,
    has_mode_of,
    is_bound_to,
    requested_storage,
    storage_capacity,
)
from extender.values.objects.label_selectors import (
    EVERYTHING,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    selector_of,
)
from extender.values.objects.node_selectors import ParsedNodeSelector, ParsedTerm
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim

NONE: Final = -1
"""The rank of no volume."""
_UNDECIDED: Final = -2
_NO_RANK: Final = int(np.iinfo(np.intp).max)


@final
class VolumeChoice(msgspec.Struct, frozen=True):
    """The volume that a claim would get on each node."""

    delayed: DelayedClaim
    volumes: tuple[PersistentVolume, ...]
    """The candidates, by rank."""
    rank: Index
    """(N,) the candidate's rank; NONE where there is none."""

    @property
    def found(self) -> Mask:
        """(N,) the nodes on which the claim would get a volume."""
        mask: Mask = self.rank != NONE
        return mask

    def at(self, node: int) -> PersistentVolume | None:
        rank = int(self.rank[node])
        return None if rank == NONE else self.volumes[rank]


class ClaimSelectorError(Exception):
    """A claim has an invalid selector. The message is upstream's."""


def match_claims(snapshot: Snapshot, storage: Storage, claims: Iterable[DelayedClaim]) -> list[VolumeChoice]:
    """Returns the choice for each claim, smaller claims first.

    Raises ClaimSelectorError for the selector of a claim, QuantityError for the size of a claim or volume.
    """
    choices: list[VolumeChoice] = []
    occupancy, affinities = _Occupancy(len(snapshot.nodes)), Affinities(snapshot)
    # Of claims for which there is no volume at all; a pod may have thousands, and may name one thousands of times.
    empty_choices: dict[int, VolumeChoice] = {}
    none = np.full(len(snapshot.nodes), NONE, np.intp)
    for delayed in sorted(claims, key=lambda delayed: _size(delayed.claim)):
        if choices and choices[-1].volumes:
            occupancy.add(choices[-1])
        empty_choice = empty_choices.get(id(delayed))
        if empty_choice is not None:
            choices.append(empty_choice)
            continue
        prebound, free = _candidates(delayed.claim, storage) if storage.may_have_volumes(delayed.claim) else ((), ())
        candidates = (*prebound, *free)
        if not candidates:
            choices.append(empty_choices.setdefault(id(delayed), VolumeChoice(delayed, (), none)))
            continue
        rows = occupancy.rows_of(candidates)
        rank = _first_prebound(prebound, affinities, occupancy, rows)
        undecided = rank == _UNDECIDED
        if undecided.any():
            rank = np.where(undecided, _smallest(free, affinities, occupancy, rows, len(prebound)), rank)
        choices.append(VolumeChoice(delayed, candidates, rank))
    return choices


@final
class _Occupancy:
    """The volumes given to the pod's claims so far, by node: a row for each volume taken anywhere; row 0 for others."""

    def __init__(self, num_nodes: int) -> None:
        self._nodes = np.arange(num_nodes)
        self._on = np.zeros((1, num_nodes), np.bool_)
        self._row_of: dict[str, int] = {}
        self.most = 0
        """The largest number of volumes taken on a node."""

    def rows_of(self, volumes: Sequence[PersistentVolume]) -> Index:
        """Returns the row of each volume, by rank, and a last entry for no volume."""
        rows = np.zeros(len(volumes) + 1, np.intp)
        if self._row_of:
            rows[:-1] = [self._row_of.get(volume.metadata.name, 0) for volume in volumes]
        return rows

    def row(self, row: int) -> Mask:
        """(N,) the nodes where the volume of a row is taken."""
        mask: Mask = self._on[row]
        return mask

    def at(self, rows: Index) -> Mask:
        """(N,) whether each node's volume, given by its row, is taken there."""
        mask: Mask = self._on[rows, self._nodes]
        return mask

    def add(self, choice: VolumeChoice) -> None:
        """Marks the chosen volumes as taken."""
        nodes = np.flatnonzero(choice.found)
        names = [volume.metadata.name for volume in choice.volumes]
        for rank in np.unique(choice.rank[nodes]).tolist():
            self._row_of.setdefault(names[rank], len(self._row_of) + 1)
        if len(self._row_of) >= len(self._on):
            grown = np.zeros((2 * len(self._row_of) + 1, len(self._nodes)), np.bool_)
            grown[: len(self._on)] = self._on
            self._on = grown
        self._on[self.rows_of(choice.volumes)[choice.rank[nodes]], nodes] = True
        self.most += 1


def _size(claim: PersistentVolumeClaim) -> int:
    requested = requested_storage(claim)
    return 0 if requested is None else requested.nanos()


def _candidates(
    claim: PersistentVolumeClaim, storage: Storage
) -> tuple[list[PersistentVolume], list[PersistentVolume]]:
    """Returns the volumes that name this claim, and the free ones that suit it on any node, smallest first."""
    size, selector = _size(claim), _selector(claim)
    prebound: list[PersistentVolume] = []
    free: list[tuple[int, PersistentVolume]] = []
    for volume in storage.volumes_for(claim):
        is_prebound = is_bound_to(volume, claim)
        if volume.spec.claim_ref is not None and not is_prebound:
            continue
        capacity = storage_capacity(volume).nanos()
        if capacity < size or volume.metadata.deletion_timestamp is not None:
            continue
        if not has_mode_of(volume, claim) or (storage.compares_attributes and not has_attributes_of(volume, claim)):
            continue
        if is_prebound:
            prebound.append(volume)
        elif (
            volume.status.phase == VOLUME_AVAILABLE
            and selector.matches(volume.metadata.labels)
            and has_access_of(volume, claim)
        ):
            free.append((capacity, volume))
    # Upstream takes equal ones in the random order of a map. Here their names decide, and not which of them came first.
    prebound.sort(key=lambda volume: volume.metadata.name)
    free.sort(key=lambda candidate: (candidate[0], candidate[1].metadata.name))
    return prebound, [volume for _, volume in free]


def _selector(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return selector_of(claim.spec.selector)
    except SelectorError as exc:
        key = claim.key
        raise ClaimSelectorError(f"error creating internal label selector for claim: {key}: {exc}") from exc


def _first_prebound(
    prebound: Sequence[PersistentVolume], affinities: Affinities, occupancy: _Occupancy, rows: Index
) -> Index:
    """(N,) the rank of the first volume that names the claim and is not taken; _UNDECIDED where there is none.

    A claim with such a volume gets no other one: NONE where the node does not reach it.
    """
    rank = np.full(len(affinities.snapshot.nodes), _UNDECIDED, np.intp)
    for place, volume in enumerate(prebound):
        decided = (rank == _UNDECIDED) & ~occupancy.row(rows[place])
        reached = affinities.mask(volume)
        rank[decided & reached] = place
        rank[decided & ~reached] = NONE
    return rank


def _smallest(
    free: Sequence[PersistentVolume], affinities: Affinities, occupancy: _Occupancy, rows: Index, first_rank: int
) -> Index:
    """(N,) the rank of the first volume that the node reaches and that is not taken there; NONE where there is none.

    Local and zonal volumes are pinned to values of one label, and there may be many: they are looked up by the node's
    value.
    """
    nodes = affinities.snapshot.nodes
    best = np.full(len(nodes), _NO_RANK, np.intp)
    pinned: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, volume in enumerate(free, first_rank):
        selector = affinities.of(volume)
        pin = None if selector is None else _pin_of(selector)
        if pin is not None:
            for value in dict.fromkeys(pin.values):
                pinned[pin.key][value].append(rank)
            continue
        best[(best == _NO_RANK) & ~occupancy.row(rows[rank]) & affinities.mask(volume)] = rank
        if (best != _NO_RANK).all():
            # All further volumes are larger.
            break
    for key, ranks_of_value in pinned.items():
        best = np.minimum(best, _smallest_pinned(nodes.label(key), ranks_of_value, occupancy, rows))
    return np.where(best == _NO_RANK, NONE, best)


def _pin_of(selector: ParsedNodeSelector) -> Requirement | None:
    match selector.terms:
        case (ParsedTerm(expressions=(Requirement(operator=Operator.IN) as requirement,), errors=()),):
            return requirement
    return None


def _smallest_pinned(
    column: LabelColumn, ranks_of_value: Mapping[str, Sequence[int]], occupancy: _Occupancy, rows: Index
) -> Index:
    """(N,) the lowest rank, each with its row in `occupancy`, that the node's value has free; _NO_RANK without any."""
    best = np.full(len(column.codes), _NO_RANK, np.intp)
    # Of this many volumes at least one is free. `nth_of_code[i, code]` is the i-th rank for a value of the label, by
    # code.
    enough = occupancy.most + 1
    nth_of_code = np.full((min(enough, max(map(len, ranks_of_value.values()))), len(column.values) + 1), NONE, np.intp)
    for value, ranks in ranks_of_value.items():
        code = column.values.code_of(value)
        if code != ABSENT:
            nth_of_code[: len(ranks), code] = ranks[:enough]
    for of_code in nth_of_code:
        node_ranks = of_code[column.codes]
        is_open = (best == _NO_RANK) & (node_ranks != NONE)
        if not is_open.any():
            break
        is_free = is_open & ~occupancy.at(rows[node_ranks])
        best[is_free] = node_ranks[is_free]
    return best

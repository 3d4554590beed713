"""Scores nodes by the share of their volumes, or of the capacity for new ones, that a pod's claims would use.

Upstream: framework/plugins/volumebinding/scorer.go; volume_binding.go, Score.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender.engine.framework.interface import MAX_NODE_SCORE
from extender.engine.framework.score_shapes import broken_line, rounded_average
from extender.engine.plugins.volume_binding.binder import PodVolumes
from extender.engine.plugins.volume_binding.reach import NO_CAPACITY, capacity_of_nodes
from extender.engine.plugins.volume_binding.static_matching import VolumeChoice
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Int64s, Mask
from extender.values.config.plugin_args import UtilizationShapePoint
from extender.values.objects.claims import claim_class, requested_storage, storage_capacity, volume_class
from extender.values.objects.storage import PersistentVolumeClaim

_SCALE: Final = MAX_NODE_SCORE // 10
"""A shape gives scores from 0 to 10."""
_FULL: Final = 100
"""The utilization of a class without capacity, or with too little."""


@final
@dataclass(slots=True)
class _ClassUse:
    """The requests of a StorageClass's claims on each node, and the available capacity."""

    requested: Int64s
    capacity: Int64s
    counts: Mask
    """(N,) the nodes on which a claim of the class was counted."""


_Uses = defaultdict[str, _ClassUse]
"""The name of a StorageClass -> the use of its claims."""


def storage_scores(snapshot: Snapshot, volumes: PodVolumes, shape: Sequence[UtilizationShapePoint]) -> Int64s:
    """(N,) the scores of nodes, from 0 to 100: of the StorageClasses' utilizations, averaged.

    On nodes where a claim would get an existing volume, such volumes count; on others the capacity for new ones does.
    Raises QuantityError.
    """
    num_nodes = len(snapshot.nodes)

    def zeros() -> Int64s:
        return np.zeros(num_nodes, np.int64)

    uses: _Uses = defaultdict(lambda: _ClassUse(zeros(), zeros(), np.zeros(num_nodes, np.bool_)))
    is_static = np.zeros(num_nodes, np.bool_)
    for choice in volumes.choices:
        is_static |= choice.found
        _count_volumes(choice, uses)
    for claim, nodes in volumes.to_provision:
        _count_capacity(snapshot, claim, nodes & ~is_static, uses)
    xs = np.array([point.utilization for point in shape], np.int64)
    ys = np.array([point.score * _SCALE for point in shape], np.int64)
    total, count = zeros(), zeros()
    for use in uses.values():
        has_room = (use.capacity != 0) & (use.requested <= use.capacity)
        share = use.requested * _FULL // np.where(use.capacity == 0, 1, use.capacity)
        total += np.where(use.counts, broken_line(np.where(has_room, share, _FULL), xs, ys), 0)
        count += use.counts
    return rounded_average(total, count)


def _count_volumes(choice: VolumeChoice, uses: _Uses) -> None:
    size = _size(choice.delayed.claim)
    for rank in np.unique(choice.rank[choice.found]).tolist():
        volume, nodes = choice.volumes[rank], choice.rank == rank
        use = uses[volume_class(volume)]
        use.requested[nodes] += size
        use.capacity[nodes] += storage_capacity(volume).value()
        use.counts |= nodes


def _count_capacity(snapshot: Snapshot, claim: PersistentVolumeClaim, nodes: Mask, uses: _Uses) -> None:
    storage_class = snapshot.objects.storage_classes.get(claim_class(claim))
    capacity = None if storage_class is None else capacity_of_nodes(snapshot, storage_class, claim)
    if capacity is None:
        return
    nodes = nodes & (capacity != NO_CAPACITY)
    use = uses[claim_class(claim)]
    use.requested[nodes] += _size(claim)
    # All claims of a class share one capacity, which is why it is not added up.
    use.capacity[nodes] = capacity[nodes]
    use.counts |= nodes


def _size(claim: PersistentVolumeClaim) -> int:
    requested = requested_storage(claim)
    return 0 if requested is None else requested.value()

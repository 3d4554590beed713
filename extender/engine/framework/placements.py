"""Placements: the sets of nodes of which a pod group may get one, and the extension points that make and rank them.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, Placement, PlacementGeneratePlugin,
PlacementScorePlugin (v1.36.2).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from extender.engine.framework.interface import Plugin
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Index, Int64s
from extender.values.objects.pod import Pod
from extender.values.objects.pod_groups import PodGroup


@final
@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """Nodes on which all pods of a group may be placed."""

    name: str
    nodes: Index
    """(B,) places on axis N, ascending."""


@final
@dataclass(frozen=True, slots=True)
class PlacedGroup:
    """A placement in which the group fits."""

    placement: GroupPlacement
    pods: tuple[Pod, ...]
    """The members that would get a node in it."""
    num_scheduled: int
    """The number of members that have a node already."""


class PlacementGeneratePlugin(Plugin):
    """Makes the placements of a group. A profile has at most one."""

    @abstractmethod
    def generate_placements(
        self, group: PodGroup, scheduled: Sequence[Pod], parent: GroupPlacement, snapshot: Snapshot
    ) -> Sequence[GroupPlacement]:
        """Returns the placements within `parent`, perhaps none.

        Arguments:
            scheduled: the members that have a node already.

        Raises:
            ValueError: there can be no placement, as the message says.
        """


class PlacementScorePlugin(Plugin):
    """Ranks the placements in which the group fits."""

    @abstractmethod
    def score_placement(self, group: PodGroup, placed: PlacedGroup, snapshot: Snapshot) -> int:
        """Returns a score from 0 to 100, or on any scale if `normalize_placement_scores` brings it there.

        Arguments:
            snapshot: the cluster without the members that are placed.
        """

    def normalize_placement_scores(self, scores: Int64s) -> Int64s:
        """Returns the scores of all placements on the scale 0..100; by default unchanged.

        Raises:
            ValueError: they cannot be ranked.
        """
        return scores

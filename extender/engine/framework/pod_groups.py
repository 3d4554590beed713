"""Pod groups: the write about one, the group for the Permit plugins of its cycle, and its placements, which are
alternative sets of nodes, with the extension points that make and rank them.

Upstream: pkg/scheduler/util/utils.go, PatchPodGroupStatus; pkg/scheduler/schedule_one_podgroup.go,
updatePodGroupCondition; staging/src/k8s.io/kube-scheduler/framework/interface.go, Placement, PlacementGeneratePlugin,
PlacementScorePlugin.
"""

from abc import abstractmethod
from collections.abc import Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar, Final, final

import msgspec

from extender.engine.framework.api_calls import ApiCall
from extender.engine.framework.cycle_state import StateKey
from extender.engine.framework.interface import Plugin
from extender.engine.framework.pod_calls import PodCondition
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Index, Int64s
from extender.values.objects.grouping import PodGroup
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod

GroupCondition = PodCondition
"""The desired condition of a pod group, which has the fields of a pod's."""


@final
@dataclass(frozen=True, slots=True)
class PatchPodGroupStatus(ApiCall[None]):
    """Sets a condition of a pod group, but not of another one that has the name by now."""

    relevance: ClassVar[int] = 1

    namespace: str
    name: str
    uid: str
    condition: GroupCondition
    known: Condition | None
    """The last observed condition of this type."""

    @classmethod
    def of(cls, group: PodGroup, condition: GroupCondition) -> "PatchPodGroupStatus":
        observed = next(
            (old_condition for old_condition in group.status.conditions if old_condition.type == condition.type), None
        )
        return cls(group.namespace, group.name, group.uid, condition, observed)

    @property
    def object_key(self) -> str:
        return self.uid or f"podgroups/{self.namespace}/{self.name}"

    @property
    def is_transition(self) -> bool:
        """True if the status of the condition changes, not only its words."""
        return self.known is None or self.known.status != self.condition.status

    @property
    def is_no_op(self) -> bool:
        return self.condition.is_said_by(self.known)


@final
class GroupCycle(msgspec.Struct, frozen=True):
    """A pod group in its own cycle, in which members are assumed only to find out whether the group fits."""

    group: PodGroup | None
    """None if it does not exist."""
    num_scheduled: int
    """The number of members with a node or assumed on one in this cycle, including the current member."""
    assumed: AbstractSet[str] = frozenset()
    """The UIDs of the members that were assumed before it in this cycle."""


GROUP_CYCLE: Final = StateKey[GroupCycle | None]("PodGroupSchedulingCycle")
"""The key of the GroupCycle in the state of a member; None, or nothing, is under it where a node was chosen for good.
"""


@final
class GroupPlacement(msgspec.Struct, frozen=True):
    """Nodes on which all pods of a group may be placed."""

    name: str
    nodes: Index
    """(B,) places on axis N, ascending."""


@final
class PlacedGroup(msgspec.Struct, frozen=True):
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
        """Returns the placements within `parent`, if any; `scheduled` are the members that have a node already.

        Raises ValueError if there can be none, as the message says.
        """


class PlacementScorePlugin(Plugin):
    """Ranks the placements in which the group fits."""

    @abstractmethod
    def score_placement(self, group: PodGroup, placed: PlacedGroup, snapshot: Snapshot) -> int:
        """Returns a score from 0 to 100, or on any scale if `normalize_placement_scores` brings it there.

        The snapshot is the cluster without the members that are placed.
        """

    def normalize_placement_scores(self, scores: Int64s) -> Int64s:
        """Returns the scores of all placements on the scale 0..100; ValueError if they cannot be ranked."""
        return scores

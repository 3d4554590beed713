"""PodGroups: pods that are scheduled together.

Upstream: k8s.io/api/scheduling/v1alpha2, types.go (v1.36.2); k8s.io/api/scheduling/v1beta1, types.go (v1.37).
"""

from typing import Final

import msgspec

from extender.values.objects.meta import ApiObject, Condition, Int32, Namespaced
from extender.values.objects.pod import Pod

GROUP: Final = "scheduling.k8s.io"
POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
"""The condition that says whether the group was scheduled."""

GroupKey = tuple[str, str]
"""(namespace, name) of a group."""


class GangSchedulingPolicy(ApiObject, frozen=True):
    """All or nothing: at least so many pods run, or none."""

    min_count: Int32 = 0


class BasicSchedulingPolicy(ApiObject, frozen=True):
    """The pods are scheduled in one cycle, but each by itself."""


class PodGroupSchedulingPolicy(ApiObject, frozen=True):
    """One of the two."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(ApiObject, frozen=True):
    """All pods of the group run on nodes with the same value of the label."""

    key: str = ""


class PodGroupSchedulingConstraints(ApiObject, frozen=True):
    """The constraints that the group has as a whole."""

    topology: list[TopologyConstraint] = []


class Anything(ApiObject, frozen=True):
    """A field that says all by being there."""


class DisruptionMode(ApiObject, frozen=True):
    """scheduling/v1beta1.DisruptionMode: one of the two."""

    single: Anything | None = None
    all: Anything | None = None


class PodGroupSpec(ApiObject, frozen=True):
    """scheduling/v1alpha2.PodGroupSpec, as far as scheduling looks at it."""

    scheduling_policy: PodGroupSchedulingPolicy = msgspec.field(default_factory=PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    """Whether single pods of the group may be preempted, or only all of them: `Pod` or `PodGroup` in v1alpha2."""
    priority: Int32 | None = None


class PodGroupStatus(ApiObject, frozen=True):
    """scheduling/v1alpha2.PodGroupStatus, as far as scheduling looks at it."""

    conditions: list[Condition] = []


class PodGroup(Namespaced, frozen=True):
    """scheduling/v1alpha2.PodGroup, a group of pods that are scheduled together."""

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)

    @property
    def min_count(self) -> int | None:
        """The least number of pods that a gang needs; None for a group that is no gang."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def topology_key(self) -> str:
        """The label of which all nodes of the group have the same value; empty without such a constraint."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def goes_as_a_whole(self) -> bool:
        """Whether preemption takes all pods of the group or none."""
        mode = self.spec.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


def group_of(pod: Pod) -> GroupKey | None:
    """Returns the group that the pod is in; None if it is in none."""
    group = pod.spec.scheduling_group
    return None if group is None or not group.pod_group_name else (pod.namespace, group.pod_group_name)

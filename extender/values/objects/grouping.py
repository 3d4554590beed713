"""The objects that group pods: namespaces, services, controllers, disruption budgets, priorities and PodGroups.

Upstream: pkg/apis/scheduling/types.go; v1/helpers.go, SystemPriorityClasses; k8s.io/api/scheduling/v1alpha2, types.go;
k8s.io/api/scheduling/v1beta1, types.go (v1.37).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec

from extender.values.objects.label_selectors import NOTHING, Selector, SelectorError, selector_of
from extender.values.objects.meta import ApiObject, Condition, HasMetadata, Int32, LabelSelector, Namespaced
from extender.values.objects.pod import Pod


class Namespace(HasMetadata, frozen=True):
    """v1.Namespace: only its labels matter."""


class MapSelectorSpec(ApiObject, frozen=True):
    """The spec of v1.Service and v1.ReplicationController: a plain map of labels. None selects nothing."""

    selector: dict[str, str] | None = None


class Service(HasMetadata, frozen=True):
    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class ReplicationController(HasMetadata, frozen=True):
    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class LabelSelectorSpec(ApiObject, frozen=True):
    """The spec of apps/v1 ReplicaSet and StatefulSet."""

    selector: LabelSelector | None = None


class ReplicaSet(HasMetadata, frozen=True):
    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


class StatefulSet(HasMetadata, frozen=True):
    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


class PodDisruptionBudgetSpec(ApiObject, frozen=True, gc=True, dict=True):
    selector: LabelSelector | None = None

    @cached_property
    def parsed_selector(self) -> Selector:
        """The selector; one that is missing or cannot be parsed selects nothing."""
        try:
            return selector_of(self.selector)
        except SelectorError:
            # Upstream ignores such a budget, too. The API server would not have accepted it.
            return NOTHING


class PodDisruptionBudgetStatus(ApiObject, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(HasMetadata, frozen=True):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


# Priorities.

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""The highest priority that a class of a user may have. Upstream: HighestUserDefinablePriority."""
SYSTEM_CRITICAL: Final = 2 * HIGHEST_USER_PRIORITY
"""Priorities from here on belong to the cluster itself. Upstream: SystemCriticalPriority."""
SYSTEM_CLASSES: Final[Mapping[str, int]] = {
    "system-node-critical": SYSTEM_CRITICAL + 1000,
    "system-cluster-critical": SYSTEM_CRITICAL,
}
"""The PriorityClasses that every API server makes."""

# The evaluator writes these messages; records and answers recognise them, also where no engine is loaded.
# Upstream: framework/preemption/preemption.go.
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


class PriorityClass(HasMetadata, frozen=True):
    """scheduling/v1.PriorityClass. Only answers for people read it: pods get their priority from the API server."""

    value: Int32 = 0
    global_default: bool = False
    """True if it is the class of pods that name none."""
    preemption_policy: str | None = None


# PodGroups: pods that are scheduled together.

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
    scheduling_policy: PodGroupSchedulingPolicy = msgspec.field(default_factory=PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    """Whether single pods of the group may be preempted, or only all of them: `Pod` or `PodGroup` in v1alpha2."""
    priority: Int32 | None = None


class PodGroupStatus(ApiObject, frozen=True):
    conditions: list[Condition] = []


class PodGroup(Namespaced, frozen=True):
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
    group = pod.spec.scheduling_group
    return None if group is None or not group.pod_group_name else (pod.namespace, group.pod_group_name)

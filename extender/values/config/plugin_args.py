"""The arguments of the in-tree plugins, with the defaults of v1.

Upstream: kube-scheduler/config/v1, types_pluginargs.go, types.go; pkg/scheduler/apis/config/v1, defaults.go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, get_args

from extender.values.config.feature_gates import FeatureGates
from extender.values.config.json_types import DURATION, DURATION_POINTER, STRINGS, fields_of, struct_of, wire
from extender.values.golang.schema import (
    BOOL,
    INT32,
    INT64,
    STRING,
    Field,
    Kind,
    ListOf,
    MapOf,
    Presence,
    Scalar,
    Struct,
    written_list,
)
from extender.values.golang.times import Duration
from extender.values.objects.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from extender.values.objects.pod import NodeAffinity, PreferredSchedulingTerm, TopologySpreadConstraint

_STRINGS: Final = ListOf(STRING, make=written_list)
_LABEL_SELECTOR_REQUIREMENT: Final = struct_of(
    LabelSelectorRequirement,
    key=wire(STRING),
    operator=wire(Scalar(Kind.STRING, "v1.LabelSelectorOperator")),
    values=wire(_STRINGS, Presence.OMIT),
)
_LABEL_SELECTOR: Final = struct_of(
    LabelSelector,
    match_labels=wire(MapOf(STRING), Presence.OMIT),
    match_expressions=wire(ListOf(_LABEL_SELECTOR_REQUIREMENT, make=list), Presence.OMIT),
)
_NODE_SELECTOR_REQUIREMENT: Final = struct_of(
    NodeSelectorRequirement,
    key=wire(STRING),
    operator=wire(Scalar(Kind.STRING, "v1.NodeSelectorOperator")),
    values=wire(_STRINGS, Presence.OMIT),
)
_NODE_SELECTOR_TERM: Final = struct_of(
    NodeSelectorTerm,
    match_expressions=wire(ListOf(_NODE_SELECTOR_REQUIREMENT, make=list), Presence.OMIT),
    match_fields=wire(ListOf(_NODE_SELECTOR_REQUIREMENT, make=list), Presence.OMIT),
)
_NODE_SELECTOR: Final = struct_of(
    NodeSelector,
    node_selector_terms=wire(ListOf(_NODE_SELECTOR_TERM, make=written_list), Presence.NULL),
)
_PREFERRED_TERM: Final = struct_of(PreferredSchedulingTerm, weight=wire(INT32), preference=wire(_NODE_SELECTOR_TERM))
_NODE_AFFINITY: Final = struct_of(
    NodeAffinity,
    required=wire(_NODE_SELECTOR, Presence.KEEP, name="requiredDuringSchedulingIgnoredDuringExecution"),
    preferred=wire(
        ListOf(_PREFERRED_TERM, make=list), Presence.OMIT, name="preferredDuringSchedulingIgnoredDuringExecution"
    ),
)
_NODE_INCLUSION_POLICY: Final = Scalar(Kind.STRING, "v1.NodeInclusionPolicy")
_TOPOLOGY_SPREAD_CONSTRAINT: Final = struct_of(
    TopologySpreadConstraint,
    max_skew=wire(INT32),
    topology_key=wire(STRING),
    when_unsatisfiable=wire(Scalar(Kind.STRING, "v1.UnsatisfiableConstraintAction")),
    label_selector=wire(_LABEL_SELECTOR, Presence.KEEP),
    min_domains=wire(INT32, Presence.KEEP),
    node_affinity_policy=wire(_NODE_INCLUSION_POLICY, Presence.KEEP),
    node_taints_policy=wire(_NODE_INCLUSION_POLICY, Presence.KEEP),
    match_label_keys=wire(ListOf(STRING, make=list), Presence.OMIT),
)


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource and its weight in a score."""

    name: str = field(default="", metadata=wire(STRING))
    weight: int = field(default=1, metadata=wire(INT64, Presence.OMIT, zero_is_default=True))


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """The score (0 to 10) that a utilization (0 to 100) gets; in between it is interpolated."""

    utilization: int = field(default=0, metadata=wire(INT32))
    score: int = field(default=0, metadata=wire(INT32))


_RESOURCES: Final = ListOf(struct_of(ResourceSpec), make=tuple)
_SHAPE: Final = ListOf(struct_of(UtilizationShapePoint), make=tuple)
_CPU_AND_MEMORY: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam:
    """The shape of the function from utilization to score."""

    shape: tuple[UtilizationShapePoint, ...] = field(default=(), metadata=wire(_SHAPE, Presence.OMIT))


LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """The scoring strategy of NodeResourcesFit. The type has no default once a strategy is given."""

    type: str = field(default="", metadata=wire(Scalar(Kind.STRING, "v1.ScoringStrategyType"), Presence.OMIT))
    resources: tuple[ResourceSpec, ...] = field(
        default=_CPU_AND_MEMORY, metadata=wire(_RESOURCES, Presence.OMIT, zero_is_default=True)
    )
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = field(
        default=None,
        metadata=wire(struct_of(RequestedToCapacityRatioParam), Presence.KEEP),
    )


PREEMPTION_RULES: Final = ("v1.12", "v1.17", "v1.25", "v1.36")
"""The releases whose rules of preemption there are (`extender.engine.preemption.rules`)."""


@dataclass(frozen=True, slots=True)
class Protection:
    """The pods that no preemption may evict, and what a preemption may cost at most."""

    selector: LabelSelector | None = field(default=None, metadata=wire(_LABEL_SELECTOR, Presence.KEEP))
    """Pods with these labels are never evicted."""
    min_run_time: Duration = field(default=Duration(), metadata=wire(DURATION, Presence.OMIT))
    """Pods that have run for less are not evicted."""
    preemption_toleration: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT))
    """Whether annotations of PriorityClasses protect pods, as PreemptionToleration of scheduler-plugins has it."""
    never_violate_budgets: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT))
    """Whether a pod stays if its eviction would violate a PodDisruptionBudget, which upstream only avoids where it can.
    """
    max_victims: int = field(default=0, metadata=wire(INT32, Presence.OMIT))
    """No preemption evicts more pods; 0 for any number."""
    max_lost_gpu_time: Duration = field(default=Duration(), metadata=wire(DURATION, Presence.OMIT))
    """The most GPU time that a preemption loses: victims' time since checkpoints by their GPUs; 0 for any."""


@dataclass(frozen=True, slots=True)
class EvictionCost:
    """The loss of evicting a pod: a fixed part, and one for each hour since it started or last wrote a checkpoint. Both
    are CEL.
    """

    per_hour: str = field(default="gpus", metadata=wire(STRING, Presence.OMIT, zero_is_default=True))
    fixed: str = field(default="0.0", metadata=wire(STRING, Presence.OMIT, zero_is_default=True))


@dataclass(frozen=True, slots=True)
class PreemptionDelay:
    """The time for which a pod that fits nowhere waits for room before it may preempt."""

    default: Duration = field(default=Duration(), metadata=wire(DURATION, Presence.OMIT))
    by_priority_class: Mapping[str, Duration] = field(
        default_factory=dict, metadata=wire(MapOf(DURATION), Presence.OMIT)
    )
    """That of pods of these PriorityClasses."""


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """The number of candidates that a preemption examines: the larger of a share of the nodes, in percent, and a
    number. All by default, where kube-scheduler takes 10 %.

    Upstream's arguments have no more. `preemption_rules` is the release whose rules choose among the candidates, v1.36
    if it is absent; the others are victim policies.
    """

    min_candidate_nodes_percentage: int = field(default=100, metadata=wire(INT32))
    min_candidate_nodes_absolute: int = field(default=100, metadata=wire(INT32))
    preemption_rules: str | None = field(default=None, metadata=wire(STRING, Presence.KEEP))
    protect: Protection | None = field(default=None, metadata=wire(struct_of(Protection, "Protection"), Presence.KEEP))
    cost: EvictionCost | None = field(
        default=None, metadata=wire(struct_of(EvictionCost, "EvictionCost"), Presence.KEEP)
    )
    delay: PreemptionDelay | None = field(
        default=None, metadata=wire(struct_of(PreemptionDelay, "PreemptionDelay"), Presence.KEEP)
    )
    loop_guard: bool | None = field(default=None, metadata=wire(BOOL, Presence.KEEP))
    """Whether preemptors whose preemptions help nobody are paused; they are if it is absent."""


def binding_conditions_are_on(features: FeatureGates) -> bool:
    """Returns whether devices may take time to prepare."""
    return features.enabled("DRADeviceBindingConditions") and features.enabled("DRAResourceClaimDeviceStatus")


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """The time that Filter may search on one node (zero: without limit), and the time that PreBind waits for devices.
    Either may only be given while its feature gates are on: DRASchedulerFilterTimeout; DRADeviceBindingConditions and
    DRAResourceClaimDeviceStatus.
    """

    filter_timeout: Duration | None = field(default=None, metadata=wire(DURATION_POINTER, Presence.KEEP))
    binding_timeout: Duration | None = field(default=None, metadata=wire(DURATION_POINTER, Presence.KEEP))

    def completed(self, features: FeatureGates) -> "DynamicResourcesArgs":
        """Returns the arguments with the default timeouts, 10 s and 10 min, of enabled features without one."""
        searching, binding = self.filter_timeout, self.binding_timeout
        if searching is None and features.enabled("DRASchedulerFilterTimeout"):
            searching = Duration.of(10)
        if binding is None and binding_conditions_are_on(features):
            binding = Duration.of(600)
        return replace(self, filter_timeout=searching, binding_timeout=binding)


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """The weight in a score (0 to 100) of the required affinity of running pods, and whether their preferred terms
    count.
    """

    hard_pod_affinity_weight: int = field(default=1, metadata=wire(INT32))
    ignore_preferred_terms_of_existing_pods: bool = field(default=False, metadata=wire(BOOL))


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """A node affinity that every pod of the profile has in addition to its own."""

    added_affinity: NodeAffinity | None = field(default=None, metadata=wire(_NODE_AFFINITY, Presence.KEEP))


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """The resources whose use should be balanced; all weigh 1."""

    resources: tuple[ResourceSpec, ...] = field(
        default=_CPU_AND_MEMORY, metadata=wire(_RESOURCES, Presence.OMIT, zero_is_default=True)
    )


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """The resources and groups (the part before the slash) that the Fit filter ignores, and how Fit scores."""

    ignored_resources: tuple[str, ...] = field(default=(), metadata=wire(STRINGS, Presence.OMIT))
    ignored_resource_groups: tuple[str, ...] = field(default=(), metadata=wire(STRINGS, Presence.OMIT))
    scoring_strategy: ScoringStrategy | None = field(
        default=ScoringStrategy(LEAST_ALLOCATED),
        metadata=wire(struct_of(ScoringStrategy), Presence.KEEP),
    )


SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """The constraints of pods that have none: the built-in ones (`System`), or these (`List`)."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = field(
        default=(), metadata=wire(ListOf(_TOPOLOGY_SPREAD_CONSTRAINT, make=tuple), Presence.OMIT)
    )
    defaulting_type: str = field(
        default=SYSTEM_DEFAULTING,
        metadata=wire(
            Scalar(Kind.STRING, "v1.PodTopologySpreadConstraintsDefaulting"), Presence.OMIT, zero_is_default=True
        ),
    )


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """The seconds that PreBind waits for volumes; and the scores of the utilization of storage, which may only be given
    while the feature gate StorageCapacityScoring is on.
    """

    bind_timeout_seconds: int = field(default=600, metadata=wire(INT64))
    shape: tuple[UtilizationShapePoint, ...] | None = field(default=None, metadata=wire(_SHAPE, Presence.KEEP))

    def completed(self, features: FeatureGates) -> "VolumeBindingArgs":
        """Returns the arguments with the default shape if they need one: the more storage is left, the better."""
        if self.shape or not features.enabled("StorageCapacityScoring"):
            return self
        return replace(self, shape=(UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)))


PluginArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

_TYPE_META: Final = {"kind": Field(STRING), "apiVersion": Field(STRING, attribute="api_version")}


def _args_type(cls: type[PluginArgs]) -> Struct:
    """Returns the type of the arguments: their fields, besides the kind and apiVersion that an object may carry."""

    def make(kind: str = "", api_version: str = "", **members: object) -> PluginArgs:
        return cls(**members)  # type: ignore[arg-type]

    return Struct(f"v1.{cls.__name__}", {**_TYPE_META, **fields_of(cls)}, make=make)


ARGS_OF: Final[dict[str, type[PluginArgs]]] = {cls.__name__.removesuffix("Args"): cls for cls in get_args(PluginArgs)}
"""The types of arguments, by the names of the in-tree plugins that have any."""

ARGS_TYPES: Final[dict[str, Struct]] = {cls.__name__: _args_type(cls) for cls in ARGS_OF.values()}
"""The types of arguments that may be decoded, by their `kind`."""

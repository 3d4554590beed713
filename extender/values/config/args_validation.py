"""The validation of the arguments of the in-tree plugins.

`validate_..._args(path, args)` finds every error; `check_args(args)` is for a plugin that is made with the arguments.

Upstream: pkg/scheduler/apis/config/validation, validation_pluginargs.go.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from extender.values import cel
from extender.values.cel import CompileError
from extender.values.config.configuration import ConfigErrors
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.config.plugin_args import (
    ARGS_OF,
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    PREEMPTION_RULES,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
    binding_conditions_are_on,
)
from extender.values.golang.field_errors import (
    FieldError,
    all_invalid,
    child,
    duplicate,
    forbidden,
    invalid,
    marshalled,
    not_supported,
    required,
)
from extender.values.golang.times import Duration
from extender.values.objects.label_selectors import SelectorError, selector_of
from extender.values.objects.meta import NodeSelectorTerm
from extender.values.objects.name_syntax import label_key_errors
from extender.values.objects.node_selectors import term_errors
from extender.values.objects.pod import NodeAffinity, TopologySpreadConstraint

MAX_CUSTOM_PRIORITY_SCORE: Final = 10
"""The highest score a shape may give. Upstream: config.MaxCustomPriorityScore."""

_STRATEGIES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_ONE_SECOND: Final = Duration.of(1)


def validate_args(path: str, args: PluginArgs, features: FeatureGates = DEFAULT_FEATURES) -> list[FieldError]:
    """Returns the errors of arguments of any type, while these features are on."""
    if isinstance(args, VolumeBindingArgs):
        return list(validate_volume_binding_args(path, args, features))
    if isinstance(args, DynamicResourcesArgs):
        return list(validate_dynamic_resources_args(path, args, features))
    return list(_VALIDATE[type(args)](path, args))


def check_args(args: PluginArgs, features: FeatureGates = DEFAULT_FEATURES) -> None:
    """Refuses arguments while a plugin is made of them, by ConfigErrors as upstream's constructors do."""
    errors = validate_args("", args, features)
    if errors:
        raise ConfigErrors(errors, "create")


def validate_default_preemption_args(path: str, args: DefaultPreemptionArgs) -> Iterator[FieldError]:
    """Requires 0 to 100 percent and a number from 0, not both zero, and rules that there are."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(percentage_path, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
        yield invalid(absolute_path, 0, "cannot be zero at the same time as minCandidateNodesPercentage")
    if args.preemption_rules is not None and args.preemption_rules not in PREEMPTION_RULES:
        yield not_supported(child(path, "preemptionRules"), args.preemption_rules, PREEMPTION_RULES)
    yield from _victim_policy_errors(path, args)


def _victim_policy_errors(path: str, args: DefaultPreemptionArgs) -> Iterator[FieldError]:
    durations: dict[str, Duration] = {}
    if args.protect is not None:
        parent, protect = child(path, "protect"), args.protect
        durations |= {
            child(parent, "minRunTime"): protect.min_run_time,
            child(parent, "maxLostGpuTime"): protect.max_lost_gpu_time,
        }
        if protect.max_victims < 0:
            yield invalid(child(parent, "maxVictims"), protect.max_victims, "must be zero or positive")
        if protect.selector is not None:
            try:
                selector_of(protect.selector)
            except SelectorError as exc:
                yield invalid(child(parent, "selector"), "", str(exc))
    if args.cost is not None:
        for name, expression in (("perHour", args.cost.per_hour), ("fixed", args.cost.fixed)):
            try:
                cel.PodNumber(expression)
            except CompileError as exc:
                yield invalid(child(child(path, "cost"), name), expression, str(exc))
    if args.delay is not None:
        parent = child(path, "delay")
        durations[child(parent, "default")] = args.delay.default
        durations |= {
            f"{child(parent, 'byPriorityClass')}[{name}]": value for name, value in args.delay.by_priority_class.items()
        }
    for where, duration in durations.items():
        if duration.nanoseconds < 0:
            yield invalid(where, str(duration), "must be zero or positive")


def validate_dynamic_resources_args(
    path: str, args: DynamicResourcesArgs, features: FeatureGates
) -> Iterator[FieldError]:
    """Requires timeouts from 0 for Filter and 1 s for binding; neither while its gates are off."""
    searching, binding = args.filter_timeout, args.binding_timeout
    if searching is not None:
        if not features.enabled("DRASchedulerFilterTimeout"):
            yield forbidden(child(path, "filterTimeout"), "DRASchedulingFilterTimeout feature gate is disabled")
        elif searching.nanoseconds < 0:
            yield invalid(child(path, "filterTimeout"), str(searching), "must be zero or positive")
    if binding is not None:
        if not binding_conditions_are_on(features):
            why = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(child(path, "bindingTimeout"), why)
        elif binding < _ONE_SECOND:
            yield invalid(child(path, "bindingTimeout"), str(binding), "must be at least 1 second")


def validate_inter_pod_affinity_args(path: str, args: InterPodAffinityArgs) -> Iterator[FieldError]:
    """Requires a weight of 0 to 100. Upstream: ValidateInterPodAffinityArgs."""
    if not 0 <= args.hard_pod_affinity_weight <= 100:
        yield invalid(
            child(path, "hardPodAffinityWeight"), args.hard_pod_affinity_weight, "not in valid range [0, 100]"
        )


def validate_node_affinity_args(path: str, args: NodeAffinityArgs) -> Iterator[FieldError]:
    """Requires terms that selectors can be made of. Upstream: ValidateNodeAffinityArgs."""
    if args.added_affinity is not None:
        yield from validate_node_affinity(child(path, "addedAffinity"), args.added_affinity)


def validate_node_resources_balanced_allocation_args(
    path: str, args: NodeResourcesBalancedAllocationArgs
) -> Iterator[FieldError]:
    """Requires that each resource is there once, with weight 1."""
    names: set[str] = set()
    for index, resource in enumerate(args.resources):
        resource_path = f"{child(path, 'resources')}[{index}]"
        if resource.name in names:
            yield duplicate(child(resource_path, "name"), resource.name)
        names.add(resource.name)
        if resource.weight != 1:
            yield invalid(child(resource_path, "weight"), resource.weight, "must be 1")


def validate_node_resources_fit_args(path: str, args: NodeResourcesFitArgs) -> Iterator[FieldError]:
    """Requires names, weights of 1 to 100, and a shape with the strategy that has one; only when the plugin is made."""
    for index, name in enumerate(args.ignored_resources):
        yield from all_invalid(f"{child(path, 'ignoredResources')}[{index}]", name, label_key_errors(name))
    for index, group in enumerate(args.ignored_resource_groups):
        group_path = f"{child(path, 'ignoredResourceGroups')}[{index}]"
        if "/" in group:
            yield invalid(group_path, group, "resource group name can't contain '/'")
        yield from all_invalid(group_path, group, label_key_errors(group))
    strategy_path = child(path, "scoringStrategy")
    if args.scoring_strategy is None:
        yield required(strategy_path, "ScoringStrategy field is required")
    else:
        yield from _scoring_strategy(strategy_path, args.scoring_strategy)


def validate_pod_topology_spread_args(path: str, args: PodTopologySpreadArgs) -> Iterator[FieldError]:
    """Requires constraints only if they are used, each valid, without a selector, and there once."""
    type_path = child(path, "defaultingType")
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        yield not_supported(type_path, marshalled(args.defaulting_type), (SYSTEM_DEFAULTING, LIST_DEFAULTING))
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        yield invalid(type_path, marshalled(args.defaulting_type), "when .defaultConstraints are not empty")
    pairs: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        constraint_path = f"{child(path, 'defaultConstraints')}[{index}]"
        yield from _constraint(constraint_path, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in pairs:
            yield duplicate(constraint_path, f"{{{pair[0]}, {pair[1]}}}")
        pairs.add(pair)


def validate_volume_binding_args(path: str, args: VolumeBindingArgs, features: FeatureGates) -> Iterator[FieldError]:
    """Requires a timeout from 0, and a valid shape, or none while StorageCapacityScoring is off."""
    if args.bind_timeout_seconds < 0:
        yield invalid(
            child(path, "bindTimeoutSeconds"),
            args.bind_timeout_seconds,
            "invalid BindTimeoutSeconds, should not be a negative value",
        )
    if features.enabled("StorageCapacityScoring"):
        yield from _shape(child(path, "shape"), args.completed(features).shape or ())
    elif args.shape is not None:
        shape_text = marshalled([{"Utilization": point.utilization, "Score": point.score} for point in args.shape])
        yield invalid(
            child(path, "shape"),
            shape_text,
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
        )


def validate_node_affinity(path: str, affinity: NodeAffinity) -> Iterator[FieldError]:
    """Yields the errors of terms; preferred ones of weight 0 are ignored, as upstream."""
    if affinity.required is not None:
        required_path = child(path, "requiredDuringSchedulingIgnoredDuringExecution")
        yield from term_errors(child(required_path, "nodeSelectorTerms"), affinity.required.node_selector_terms)
    preferred = [term.preference if term.weight != 0 else NodeSelectorTerm() for term in affinity.preferred or ()]
    yield from term_errors(child(path, "preferredDuringSchedulingIgnoredDuringExecution"), preferred)


def _scoring_strategy(path: str, strategy: ScoringStrategy) -> Iterator[FieldError]:
    ratio, ratio_path = strategy.requested_to_capacity_ratio, child(path, "requestedToCapacityRatio")
    if strategy.type not in _STRATEGIES:
        yield not_supported(child(path, "type"), marshalled(strategy.type), _STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(f"{child(path, 'resources')}[{index}].weight", resource.weight, detail)
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            yield forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        yield required(ratio_path, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from _shape(child(ratio_path, "shape"), ratio.shape)


def _shape(path: str, shape: Sequence[UtilizationShapePoint]) -> Iterator[FieldError]:
    if not shape:
        yield required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            yield invalid(
                f"{path}[{index}].utilization", shape[index].utilization, "values must be sorted in increasing order"
            )
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(f"{path}[{index}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= MAX_CUSTOM_PRIORITY_SCORE:
            yield invalid(f"{path}[{index}].score", point.score, f"not in valid range [0, {MAX_CUSTOM_PRIORITY_SCORE}]")


def _constraint(path: str, constraint: TopologySpreadConstraint) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        yield invalid(child(path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    if not key:
        yield required(child(path, "topologyKey"), "can not be empty")
    else:
        yield from all_invalid(child(path, "topologyKey"), key, label_key_errors(key))
    if not action:
        yield required(child(path, "whenUnsatisfiable"), "can not be empty")
    elif action not in _ACTIONS:
        yield not_supported(child(path, "whenUnsatisfiable"), marshalled(action), _ACTIONS)
    if constraint.label_selector is not None:
        yield forbidden(
            child(path, "labelSelector"), "constraint must not define a selector, as they deduced for each pod"
        )


_VALIDATE: Final[dict[type, Callable[[str, Any], Iterator[FieldError]]]] = {
    DefaultPreemptionArgs: validate_default_preemption_args,
    InterPodAffinityArgs: validate_inter_pod_affinity_args,
    NodeAffinityArgs: validate_node_affinity_args,
    NodeResourcesBalancedAllocationArgs: validate_node_resources_balanced_allocation_args,
    NodeResourcesFitArgs: validate_node_resources_fit_args,
    PodTopologySpreadArgs: validate_pod_topology_spread_args,
}

# NodeResourcesFit is missing, because upstream has it in this map under a name that no plugin has.
CHECKED_WHEN_LOADED: Final = ARGS_OF.keys() - {"NodeResourcesFit"}
"""Plugins whose arguments are validated with the configuration; those of others only when the plugin is made."""

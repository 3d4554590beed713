"""KubeSchedulerConfiguration as frozen values: read strictly, with v1's defaults, validated in upstream's words,
written as upstream does.

No plugin is known here by more than its name, the extension points it implements and the type of its arguments; who
runs where in the end is worked out by `extender.engine.runtime.profiles`.
"""

from extender.values.config.completion import calling_order as calling_order, complete as complete, written as written
from extender.values.config.configuration import (
    ClientConnection as ClientConnection,
    ConfigErrors as ConfigErrors,
    Configuration as Configuration,
    Extender as Extender,
    ExtenderManagedResource as ExtenderManagedResource,
    ExtenderTLSConfig as ExtenderTLSConfig,
    LeaderElection as LeaderElection,
    PluginConfig as PluginConfig,
    Profile as Profile,
    default_profiles as default_profiles,
)
from extender.values.config.feature_gates import (
    FeatureGates as FeatureGates,
    differences as differences,
    parse_feature_gates as parse_feature_gates,
    parse_version as parse_version,
    remarks as remarks,
)
from extender.values.config.loading import load as load, load_file as load_file
from extender.values.config.plugin_args import (
    DefaultPreemptionArgs as DefaultPreemptionArgs,
    DynamicResourcesArgs as DynamicResourcesArgs,
    EvictionCost as EvictionCost,
    InterPodAffinityArgs as InterPodAffinityArgs,
    NodeAffinityArgs as NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs as NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs as NodeResourcesFitArgs,
    PodTopologySpreadArgs as PodTopologySpreadArgs,
    PreemptionDelay as PreemptionDelay,
    Protection as Protection,
    RequestedToCapacityRatioParam as RequestedToCapacityRatioParam,
    ResourceSpec as ResourceSpec,
    ScoringStrategy as ScoringStrategy,
    UtilizationShapePoint as UtilizationShapePoint,
    VolumeBindingArgs as VolumeBindingArgs,
)
from extender.values.config.plugin_sets import (
    DEFAULT_PLUGINS as DEFAULT_PLUGINS,
    EXTENSION_POINTS as EXTENSION_POINTS,
    IN_TREE_POINTS as IN_TREE_POINTS,
    MULTI_POINT as MULTI_POINT,
    PluginRef as PluginRef,
    Plugins as Plugins,
    PluginSet as PluginSet,
)
from extender.values.config.validation import validate as validate, without_effect as without_effect
from extender.values.golang.durations import Duration as Duration
from extender.values.golang.field_errors import FieldError as FieldError

"""KubeSchedulerConfiguration as frozen values: read strictly, defaulted, validated and written as upstream does.

No plugin is known here by more than its name, the extension points it implements and the type of its arguments; who
runs where in the end is worked out by `extender.engine.runtime.profiles`.
"""

from extender.values.config.completion import calling_order, complete, written
from extender.values.config.configuration import (
    ClientConnection,
    ConfigErrors,
    Configuration,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    LeaderElection,
    PluginConfig,
    Profile,
    default_profiles,
)
from extender.values.config.feature_gates import (
    FeatureGates,
    differences,
    parse_feature_gates,
    parse_version,
    remarks,
)
from extender.values.config.loading import load, load_file
from extender.values.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    EvictionCost,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    PreemptionDelay,
    Protection,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from extender.values.config.plugin_sets import (
    DEFAULT_PLUGINS,
    EXTENSION_POINTS,
    MULTI_POINT,
    PluginRef,
    Plugins,
    PluginSet,
)
from extender.values.config.validation import validate, without_effect
from extender.values.golang.field_errors import FieldError
from extender.values.golang.times import Duration

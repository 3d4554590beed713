"""The contract: everything that a plugin author imports.

    from extender.engine import framework as fwk

    class GpuGeneration(fwk.FilterPlugin): ...

There is no plugin, no queue and no cache in here. Plugins are run by `extender.engine.runtime`.
"""

from extender.engine.framework.api_calls import (
    ApiCall,
    CallConflict,
    CallError,
    CallMerged,
    CallNotFound,
    CallSkipped,
    CallUnknown,
    Dispatcher,
    EventType,
    LiveCluster,
    RecordEvent,
    reference_to,
)
from extender.engine.framework.cycle_state import (
    BINDING_ANNOTATIONS,
    CycleState,
    EvaluationError,
    NotFoundError,
    PodMemo,
    StateKey,
)
from extender.engine.framework.devices import DEVICE_TOTALS, DeviceTotals
from extender.engine.framework.events import (
    ALL_EVENTS,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFn,
    on,
    queue_if,
)
from extender.engine.framework.interface import (
    MAX_NODE_SCORE,
    PLUGIN_METRICS,
    AdvicePlugin,
    BindPlugin,
    EachNodeFilterPlugin,
    EachNodeScorePlugin,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreFlight,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Shortage,
    SignPlugin,
    Suggestion,
    default_normalize_score,
)
from extender.engine.framework.one_function import node_filter, node_score
from extender.engine.framework.pod_calls import (
    BindPod,
    DeletePod,
    PatchPodStatus,
    PodCondition,
)
from extender.engine.framework.pod_groups import (
    GROUP_CYCLE,
    GroupCondition,
    GroupCycle,
    GroupPlacement,
    PatchPodGroupStatus,
    PlacedGroup,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from extender.engine.framework.preemption import (
    Candidate,
    Candidates,
    PodsByBudget,
    PreemptionExtender,
    PreemptionOutcome,
    PreemptionRules,
    ScoreFunction,
)
from extender.engine.framework.status import (
    SKIP,
    SKIP_EQUAL_PODS,
    SUCCESS,
    SUCCESS_EQUAL_PODS,
    Code,
    Diagnosis,
    NodeStatuses,
    NoNodesAvailableError,
    Status,
    Verdicts,
    accept,
    error,
    first_of,
    fit_error_message,
    reject,
    unresolvable,
    unschedulable,
)
from extender.engine.framework.waiting import (
    DEADLINE_EXCEEDED,
    PODS_TO_ACTIVATE,
    WaitingPod,
    WaitingPods,
    poll,
)
from extender.engine.snapshot import (
    Account,
    Attribute,
    NodeInfo,
    PodChanges,
    Rows,
    Snapshot,
)
from extender.values.metrics import PluginMetrics
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.reasons import ExtenderError

"""The contract: everything that a plugin author imports.

    from extender.engine import framework as fwk

    class GpuGeneration(fwk.FilterPlugin): ...

There is no plugin, no queue and no cache in here. Plugins are run by `extender.engine.runtime`.
"""

from extender.engine.framework.advice import (
    AdvicePlugin as AdvicePlugin,
    Shortage as Shortage,
    Suggestion as Suggestion,
)
from extender.engine.framework.api_calls import (
    ApiCall as ApiCall,
    CallConflict as CallConflict,
    CallError as CallError,
    CallNotFound as CallNotFound,
    CallSkipped as CallSkipped,
    CallUnknown as CallUnknown,
    Dispatcher as Dispatcher,
    EventType as EventType,
    LiveCluster as LiveCluster,
    RecordEvent as RecordEvent,
    reference_to as reference_to,
)
from extender.engine.framework.cycle_state import (
    CycleState as CycleState,
    NotFoundError as NotFoundError,
    PodMemo as PodMemo,
    StateKey as StateKey,
)
from extender.engine.framework.devices import DEVICE_TOTALS as DEVICE_TOTALS, DeviceTotals as DeviceTotals
from extender.engine.framework.events import (
    ALL_EVENTS as ALL_EVENTS,
    ActionType as ActionType,
    ClusterEvent as ClusterEvent,
    ClusterEventWithHint as ClusterEventWithHint,
    EventResource as EventResource,
    QueueingHint as QueueingHint,
    QueueingHintFn as QueueingHintFn,
    on as on,
    queue_if as queue_if,
)
from extender.engine.framework.interface import (
    MAX_NODE_SCORE as MAX_NODE_SCORE,
    PLUGIN_METRICS as PLUGIN_METRICS,
    BindPlugin as BindPlugin,
    EachNodeFilterPlugin as EachNodeFilterPlugin,
    EachNodeScorePlugin as EachNodeScorePlugin,
    FilterPlugin as FilterPlugin,
    Handle as Handle,
    LabelScores as LabelScores,
    PermitPlugin as PermitPlugin,
    Plugin as Plugin,
    PostBindPlugin as PostBindPlugin,
    PostFilterPlugin as PostFilterPlugin,
    PostFilterResult as PostFilterResult,
    PreBindPlugin as PreBindPlugin,
    PreEnqueuePlugin as PreEnqueuePlugin,
    PreFilterPlugin as PreFilterPlugin,
    PreFilterResult as PreFilterResult,
    PreFlight as PreFlight,
    PreScorePlugin as PreScorePlugin,
    QueueSortPlugin as QueueSortPlugin,
    ReservePlugin as ReservePlugin,
    ScorePlugin as ScorePlugin,
    SignPlugin as SignPlugin,
    default_normalize_score as default_normalize_score,
)
from extender.engine.framework.one_function import node_filter as node_filter, node_score as node_score
from extender.engine.framework.pod_calls import (
    BindPod as BindPod,
    DeletePod as DeletePod,
    PatchPodStatus as PatchPodStatus,
    PodCondition as PodCondition,
)
from extender.engine.framework.pod_groups import (
    GROUP_CYCLE as GROUP_CYCLE,
    GroupCondition as GroupCondition,
    GroupCycle as GroupCycle,
    GroupPlacement as GroupPlacement,
    PatchPodGroupStatus as PatchPodGroupStatus,
    PlacedGroup as PlacedGroup,
    PlacementGeneratePlugin as PlacementGeneratePlugin,
    PlacementScorePlugin as PlacementScorePlugin,
)
from extender.engine.framework.preemption import (
    Candidate as Candidate,
    Candidates as Candidates,
    PodsByBudget as PodsByBudget,
    PreemptionExtender as PreemptionExtender,
    PreemptionOutcome as PreemptionOutcome,
    PreemptionRules as PreemptionRules,
    ScoreFunction as ScoreFunction,
)
from extender.engine.framework.status import (
    SKIP as SKIP,
    SKIP_EQUAL_PODS as SKIP_EQUAL_PODS,
    SUCCESS as SUCCESS,
    SUCCESS_EQUAL_PODS as SUCCESS_EQUAL_PODS,
    Code as Code,
    Diagnosis as Diagnosis,
    NodeStatuses as NodeStatuses,
    NoNodesAvailableError as NoNodesAvailableError,
    Status as Status,
    Verdicts as Verdicts,
    accept as accept,
    error as error,
    first_of as first_of,
    fit_error_message as fit_error_message,
    reject as reject,
    unresolvable as unresolvable,
    unschedulable as unschedulable,
)
from extender.engine.framework.storage_calls import (
    CLAIM_FINALIZER as CLAIM_FINALIZER,
    CreateResourceClaim as CreateResourceClaim,
    DeallocateResourceClaim as DeallocateResourceClaim,
    DeleteResourceClaim as DeleteResourceClaim,
    PatchPersistentVolume as PatchPersistentVolume,
    PatchPersistentVolumeClaim as PatchPersistentVolumeClaim,
    ProtectResourceClaim as ProtectResourceClaim,
    ReadResourceClaim as ReadResourceClaim,
    ReserveResourceClaim as ReserveResourceClaim,
    UnprotectResourceClaim as UnprotectResourceClaim,
    UnreserveResourceClaim as UnreserveResourceClaim,
)
from extender.engine.framework.waiting import (
    DEADLINE_EXCEEDED as DEADLINE_EXCEEDED,
    PODS_TO_ACTIVATE as PODS_TO_ACTIVATE,
    WaitingPod as WaitingPod,
    WaitingPods as WaitingPods,
    poll as poll,
)
from extender.engine.snapshot import (
    Attribute as Attribute,
    NodeInfo as NodeInfo,
    PodChanges as PodChanges,
    Rows as Rows,
    Snapshot as Snapshot,
)
from extender.values.metrics import PluginMetrics as PluginMetrics
from extender.values.objects.node import Node as Node
from extender.values.objects.pod import Pod as Pod
from extender.values.protocol.verb_results import ExtenderError as ExtenderError

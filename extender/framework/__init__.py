"""The contract: all that a plugin author imports.

    from extender import framework as fwk

    class GpuGeneration(fwk.FilterPlugin): ...

No plugin, no queue and no cache are in here, and nothing that runs a plugin: that is `extender.runtime`.
"""

from extender.framework.api_calls import (
    ApiCall,
    CallConflict,
    CallError,
    CallNotFound,
    CallSkipped,
    CallUnknown,
    Dispatcher,
    LiveCluster,
)
from extender.framework.claim_calls import (
    CLAIM_FINALIZER,
    DeallocateResourceClaim,
    ProtectResourceClaim,
    ReadResourceClaim,
    ReserveResourceClaim,
    UnreserveResourceClaim,
)
from extender.framework.cycle_state import CycleState, NotFoundError, StateKey
from extender.framework.event_calls import EventType, RecordEvent, reference_to
from extender.framework.events import (
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
from extender.framework.extenders import PreemptionExtender
from extender.framework.interface import (
    MAX_NODE_SCORE,
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
)
from extender.framework.normalizing import default_normalize_score
from extender.framework.plugin_metrics import PLUGIN_METRICS
from extender.framework.pod_calls import BindPod, DeletePod, PatchPodStatus, PodCondition
from extender.framework.pod_memo import PodMemo
from extender.framework.polling import DEADLINE_EXCEEDED, poll
from extender.framework.preemption import Candidate, Candidates, PreemptionOutcome
from extender.framework.status import (
    SKIP,
    SUCCESS,
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
from extender.framework.storage_calls import PatchPersistentVolume, PatchPersistentVolumeClaim
from extender.framework.waiting import PODS_TO_ACTIVATE, WaitingPod, WaitingPods
from extender.metrics import PluginMetrics
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.protocol.verb_results import ExtenderError
from extender.snapshot import Attribute, NodeInfo, PodChanges, Rows, Snapshot

__all__ = [
    "ALL_EVENTS",
    "CLAIM_FINALIZER",
    "DEADLINE_EXCEEDED",
    "MAX_NODE_SCORE",
    "PLUGIN_METRICS",
    "PODS_TO_ACTIVATE",
    "SKIP",
    "SUCCESS",
    "ActionType",
    "ApiCall",
    "Attribute",
    "BindPlugin",
    "BindPod",
    "CallConflict",
    "CallError",
    "CallNotFound",
    "CallSkipped",
    "CallUnknown",
    "Candidate",
    "Candidates",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "CycleState",
    "DeallocateResourceClaim",
    "DeletePod",
    "Diagnosis",
    "Dispatcher",
    "EachNodeFilterPlugin",
    "EachNodeScorePlugin",
    "EventResource",
    "EventType",
    "ExtenderError",
    "FilterPlugin",
    "Handle",
    "LiveCluster",
    "NoNodesAvailableError",
    "Node",
    "NodeInfo",
    "NodeStatuses",
    "NotFoundError",
    "PatchPersistentVolume",
    "PatchPersistentVolumeClaim",
    "PatchPodStatus",
    "PermitPlugin",
    "Plugin",
    "PluginMetrics",
    "Pod",
    "PodChanges",
    "PodCondition",
    "PodMemo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreFlight",
    "PreScorePlugin",
    "PreemptionExtender",
    "PreemptionOutcome",
    "ProtectResourceClaim",
    "QueueSortPlugin",
    "QueueingHint",
    "QueueingHintFn",
    "ReadResourceClaim",
    "RecordEvent",
    "ReservePlugin",
    "ReserveResourceClaim",
    "Rows",
    "ScorePlugin",
    "Snapshot",
    "StateKey",
    "Status",
    "UnreserveResourceClaim",
    "Verdicts",
    "WaitingPod",
    "WaitingPods",
    "accept",
    "default_normalize_score",
    "error",
    "first_of",
    "fit_error_message",
    "on",
    "poll",
    "queue_if",
    "reference_to",
    "reject",
    "unresolvable",
    "unschedulable",
]

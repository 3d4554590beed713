"""The contract: all that a plugin author imports.

    from extender import framework as fwk

    class GpuGeneration(fwk.FilterPlugin): ...

No plugin, no queue and no cache are in here, and nothing that runs a plugin: that is `extender.runtime`.
"""

from extender.framework.cycle_state import CycleState, NotFoundError, StateKey
from extender.framework.events import (
    ALL_EVENTS,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFn,
    on,
)
from extender.framework.interface import (
    MAX_NODE_SCORE,
    BindPlugin,
    EachNodeFilterPlugin,
    EachNodeScorePlugin,
    FilterPlugin,
    Handle,
    NodeVictims,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreemptionExtender,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from extender.framework.normalizing import default_normalize_score
from extender.framework.pod_memo import PodMemo
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
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.snapshot import Attribute, NodeInfo, PodChanges, Rows, Snapshot

__all__ = [
    "ALL_EVENTS",
    "MAX_NODE_SCORE",
    "SKIP",
    "SUCCESS",
    "ActionType",
    "Attribute",
    "BindPlugin",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "CycleState",
    "Diagnosis",
    "EachNodeFilterPlugin",
    "EachNodeScorePlugin",
    "EventResource",
    "FilterPlugin",
    "Handle",
    "NoNodesAvailableError",
    "Node",
    "NodeInfo",
    "NodeStatuses",
    "NodeVictims",
    "NotFoundError",
    "PermitPlugin",
    "Plugin",
    "Pod",
    "PodChanges",
    "PodMemo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "PreemptionExtender",
    "QueueSortPlugin",
    "QueueingHint",
    "QueueingHintFn",
    "ReservePlugin",
    "Rows",
    "ScorePlugin",
    "Snapshot",
    "StateKey",
    "Status",
    "Verdicts",
    "accept",
    "default_normalize_score",
    "error",
    "first_of",
    "fit_error_message",
    "on",
    "reject",
    "unresolvable",
    "unschedulable",
]

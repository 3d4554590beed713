"""Who goes first and who may be disturbed: PriorityClasses, PodDisruptionBudgets and evictions. Leases too."""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, map_list, named, omit, zero
from extender.embedded.schema.meta import CONDITION, DELETE_OPTIONS, LABEL_SELECTOR, OBJECT_META
from extender.embedded.schema.types import BOOL, INT32, INT64, INT_OR_STRING, MICRO_TIME, STRING, TIME, MapOf, Struct

PRIORITY_CLASS: Final = Struct(
    "io.k8s.api.scheduling.v1.PriorityClass",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "value": zero(INT32, "The priority that pods of this class get. More goes first."),
        "globalDefault": omit(BOOL, "Pods that name no class are of this one."),
        "description": omit(STRING, "When to use this class."),
        "preemptionPolicy": keep(
            named("v1.PreemptionPolicy", "Never", "PreemptLowerPriority"), "Whether pods of this class may take the room of others."
        ),
    },
    "A name for a priority.",
)

POD_DISRUPTION_BUDGET: Final = Struct(
    "io.k8s.api.policy.v1.PodDisruptionBudget",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.policy.v1.PodDisruptionBudgetSpec",
                {
                    "minAvailable": keep(INT_OR_STRING, "How many pods, or which part of them, must be healthy after an eviction."),
                    "selector": keep(
                        LABEL_SELECTOR, "Which pods are protected. Empty: all of the namespace; absent: none.", patch_strategy="replace"
                    ),
                    "maxUnavailable": keep(
                        INT_OR_STRING, "How many pods, or which part of them, may be lacking after an eviction. Not with minAvailable."
                    ),
                    "unhealthyPodEvictionPolicy": keep(
                        named("v1.UnhealthyPodEvictionPolicyType", "AlwaysAllow", "IfHealthyBudget"),
                        "When pods that run but are not ready may be evicted.",
                    ),
                },
                "How much must stay.",
            )
        ),
        "status": zero(
            Struct(
                "io.k8s.api.policy.v1.PodDisruptionBudgetStatus",
                {
                    "observedGeneration": omit(INT64, "The generation that the controller saw last."),
                    "disruptedPods": omit(MapOf(TIME), "Pods that were evicted a moment ago and may still be there, and when."),
                    "disruptionsAllowed": zero(INT32, "How many pods may be evicted now."),
                    "currentHealthy": zero(INT32, "Healthy pods."),
                    "desiredHealthy": zero(INT32, "How many pods must be healthy."),
                    "expectedPods": zero(INT32, "How many pods there should be."),
                    "conditions": omit(map_list(CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                },
                "How much may go at present.",
            )
        ),
    },
    "Limits how many pods may be evicted at a time.",
)

EVICTION: Final = Struct(
    "io.k8s.api.policy.v1.Eviction",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META, "Names the pod."),
        "deleteOptions": keep(DELETE_OPTIONS, "How the pod is deleted if it may be."),
    },
    "Deletes a pod unless a PodDisruptionBudget objects.",
)

LEASE: Final = Struct(
    "io.k8s.api.coordination.v1.Lease",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.coordination.v1.LeaseSpec",
                {
                    "holderIdentity": keep(STRING, "Who holds it."),
                    "leaseDurationSeconds": keep(INT32, "How long others wait after renewTime before they take it."),
                    "acquireTime": keep(MICRO_TIME, "Since when the holder has it."),
                    "renewTime": keep(MICRO_TIME, "When the holder was heard of last."),
                    "leaseTransitions": keep(INT32, "How often the holder changed."),
                    "strategy": keep(named("v1.CoordinatedLeaseStrategy"), "How the leader is chosen if somebody else chooses."),
                    "preferredHolder": keep(STRING, "Who had better hold it."),
                },
            )
        ),
    },
    "Says who leads, or who is alive.",
)

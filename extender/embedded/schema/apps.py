"""ReplicaSets, Deployments and StatefulSets, and the Scale through which all of them are resized."""

from typing import Final

from extender.embedded.schema.claims import PERSISTENT_VOLUME_CLAIM
from extender.embedded.schema.declaring import TYPE_META, keep, map_list, named, null, omit, zero
from extender.embedded.schema.meta import LABEL_SELECTOR, OBJECT_META
from extender.embedded.schema.pods import POD_TEMPLATE_SPEC
from extender.embedded.schema.types import BOOL, INT32, INT64, INT_OR_STRING, STRING, TIME, ListOf, Struct

_CONDITION_STATUS: Final = named("v1.ConditionStatus")
_RETAIN_OR_DELETE: Final = named("v1.PersistentVolumeClaimRetentionPolicyType")

_REPLICAS: Final = keep(INT32, "The number of pods wanted; one if not said.")
_SELECTOR: Final = null(LABEL_SELECTOR, "Which pods count. The labels of the template must match it.", required=True)
_MIN_READY: Final = omit(INT32, "For how many seconds a new pod must have been ready before it counts as available.")
_HISTORY: Final = keep(INT32, "How many former revisions are remembered to go back to.")
_COLLISIONS: Final = keep(INT32, "How often a name made from a hash was taken already; part of the next hash.")
_OBSERVED: Final = omit(INT64, "The generation that the controller saw last.")

REPLICA_SET_CONDITION: Final = Struct(
    "io.k8s.api.apps.v1.ReplicaSetCondition",
    {
        "type": zero(named("v1.ReplicaSetConditionType"), required=True),
        "status": zero(_CONDITION_STATUS, "True, False or Unknown.", required=True),
        "lastTransitionTime": null(TIME, "When the status changed last."),
        "reason": omit(STRING, "A single word for the cause."),
        "message": omit(STRING, "The cause, for people."),
    },
    "What is known of a ReplicaSet in one respect.",
)

REPLICA_SET: Final = Struct(
    "io.k8s.api.apps.v1.ReplicaSet",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.apps.v1.ReplicaSetSpec",
                {
                    "replicas": _REPLICAS,
                    "minReadySeconds": _MIN_READY,
                    "selector": _SELECTOR,
                    "template": zero(POD_TEMPLATE_SPEC, "What new pods are made from."),
                },
                "Which pods should exist.",
            )
        ),
        "status": zero(
            Struct(
                "io.k8s.api.apps.v1.ReplicaSetStatus",
                {
                    "replicas": zero(INT32, "Pods there are, terminating ones aside.", required=True),
                    "fullyLabeledReplicas": omit(INT32, "Pods that carry every label of the template."),
                    "readyReplicas": omit(INT32, "Pods that are ready."),
                    "availableReplicas": omit(INT32, "Pods that have been ready for long enough."),
                    "terminatingReplicas": keep(INT32, "Pods that are going away."),
                    "observedGeneration": _OBSERVED,
                    "conditions": omit(map_list(REPLICA_SET_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                },
                "How far the controller has got.",
            )
        ),
    },
    "Keeps a number of equal pods running.",
)

DEPLOYMENT_STRATEGY: Final = Struct(
    "io.k8s.api.apps.v1.DeploymentStrategy",
    {
        "type": omit(named("v1.DeploymentStrategyType", "Recreate", "RollingUpdate"), "Old pods first, or step by step."),
        "rollingUpdate": keep(
            Struct(
                "io.k8s.api.apps.v1.RollingUpdateDeployment",
                {
                    "maxUnavailable": keep(INT_OR_STRING, "By how many pods, or by which part of them, a rollout may fall short."),
                    "maxSurge": keep(INT_OR_STRING, "How many pods, or which part of them, may exist on top during a rollout."),
                },
                "The pace of a rollout.",
            ),
            "Only for the type RollingUpdate.",
        ),
    },
    "How pods of an old template give way to new ones.",
)

DEPLOYMENT_CONDITION: Final = Struct(
    "io.k8s.api.apps.v1.DeploymentCondition",
    {
        "type": zero(named("v1.DeploymentConditionType"), "Available, Progressing or ReplicaFailure.", required=True),
        "status": zero(_CONDITION_STATUS, "True, False or Unknown.", required=True),
        "lastUpdateTime": null(TIME, "When anything in here changed last."),
        "lastTransitionTime": null(TIME, "When the status changed last."),
        "reason": omit(STRING, "A single word for the cause."),
        "message": omit(STRING, "The cause, for people."),
    },
    "What is known of a Deployment in one respect.",
)

DEPLOYMENT: Final = Struct(
    "io.k8s.api.apps.v1.Deployment",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.apps.v1.DeploymentSpec",
                {
                    "replicas": _REPLICAS,
                    "selector": _SELECTOR,
                    "template": zero(POD_TEMPLATE_SPEC, "What new pods are made from. A change starts a rollout.", required=True),
                    "strategy": zero(DEPLOYMENT_STRATEGY, patch_strategy="retainKeys"),
                    "minReadySeconds": _MIN_READY,
                    "revisionHistoryLimit": _HISTORY,
                    "paused": omit(BOOL, "No rollout starts or goes on."),
                    "progressDeadlineSeconds": keep(INT32, "A rollout without progress for so long is called failed."),
                },
                "Which pods should exist, and how they are replaced.",
            )
        ),
        "status": zero(
            Struct(
                "io.k8s.api.apps.v1.DeploymentStatus",
                {
                    "observedGeneration": _OBSERVED,
                    "replicas": omit(INT32, "Pods there are, terminating ones aside."),
                    "updatedReplicas": omit(INT32, "Pods of the present template."),
                    "readyReplicas": omit(INT32, "Pods that are ready."),
                    "availableReplicas": omit(INT32, "Pods that have been ready for long enough."),
                    "unavailableReplicas": omit(INT32, "Pods that are lacking until all that are wanted are available."),
                    "terminatingReplicas": keep(INT32, "Pods that are going away."),
                    "conditions": omit(map_list(DEPLOYMENT_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                    "collisionCount": _COLLISIONS,
                },
                "How far the rollout has got.",
            )
        ),
    },
    "Rolls templates of pods out, one ReplicaSet for each.",
)

STATEFUL_SET_CONDITION: Final = Struct(
    "io.k8s.api.apps.v1.StatefulSetCondition",
    {
        "type": zero(named("v1.StatefulSetConditionType"), required=True),
        "status": zero(_CONDITION_STATUS, "True, False or Unknown.", required=True),
        "lastTransitionTime": null(TIME, "When the status changed last."),
        "reason": omit(STRING, "A single word for the cause."),
        "message": omit(STRING, "The cause, for people."),
    },
    "What is known of a StatefulSet in one respect.",
)

STATEFUL_SET_UPDATE_STRATEGY: Final = Struct(
    "io.k8s.api.apps.v1.StatefulSetUpdateStrategy",
    {
        "type": omit(named("v1.StatefulSetUpdateStrategyType", "OnDelete", "RollingUpdate"), "When somebody deletes a pod, or by itself."),
        "rollingUpdate": keep(
            Struct(
                "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy",
                {
                    "partition": keep(INT32, "Pods with a lower ordinal keep the old template."),
                    "maxUnavailable": keep(INT_OR_STRING, "How many pods, or which part of them, may be replaced at a time."),
                },
                "The pace of a rollout.",
            ),
            "Only for the type RollingUpdate.",
        ),
    },
    "How pods of an old template give way to new ones.",
)

STATEFUL_SET: Final = Struct(
    "io.k8s.api.apps.v1.StatefulSet",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.apps.v1.StatefulSetSpec",
                {
                    "replicas": _REPLICAS,
                    "selector": _SELECTOR,
                    "template": zero(POD_TEMPLATE_SPEC, "What new pods are made from, but for name and claims.", required=True),
                    "volumeClaimTemplates": omit(ListOf(PERSISTENT_VOLUME_CLAIM), "Of each of these every pod gets a claim."),
                    "serviceName": zero(STRING, "The service that gives the pods names in DNS."),
                    "podManagementPolicy": omit(
                        named("v1.PodManagementPolicyType", "OrderedReady", "Parallel"), "One pod after the other, or all at once."
                    ),
                    "updateStrategy": zero(STATEFUL_SET_UPDATE_STRATEGY),
                    "revisionHistoryLimit": _HISTORY,
                    "minReadySeconds": _MIN_READY,
                    "persistentVolumeClaimRetentionPolicy": keep(
                        Struct(
                            "io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
                            {
                                "whenDeleted": omit(_RETAIN_OR_DELETE, "Retain or Delete: if the StatefulSet goes."),
                                "whenScaled": omit(_RETAIN_OR_DELETE, "Retain or Delete: if the pod is one too many."),
                            },
                            "What becomes of claims whose pod is not coming back.",
                        )
                    ),
                    "ordinals": keep(
                        Struct("io.k8s.api.apps.v1.StatefulSetOrdinals", {"start": zero(INT32, "The number of the first pod.")}),
                        "How the pods are numbered.",
                    ),
                },
                "Which pods should exist, by number, and with which claims.",
            )
        ),
        "status": zero(
            Struct(
                "io.k8s.api.apps.v1.StatefulSetStatus",
                {
                    "observedGeneration": _OBSERVED,
                    "replicas": zero(INT32, "Pods there are.", required=True),
                    "readyReplicas": omit(INT32, "Pods that are ready."),
                    "currentReplicas": omit(INT32, "Pods of `currentRevision`."),
                    "updatedReplicas": omit(INT32, "Pods of `updateRevision`."),
                    "currentRevision": omit(STRING, "The template that is being left."),
                    "updateRevision": omit(STRING, "The template that is being rolled out."),
                    "collisionCount": _COLLISIONS,
                    "conditions": omit(map_list(STATEFUL_SET_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                    "availableReplicas": zero(INT32, "Pods that have been ready for long enough."),
                },
                "How far the controller has got.",
            )
        ),
    },
    "Keeps numbered pods running, each with a name and claims of its own.",
)

SCALE: Final = Struct(
    "io.k8s.api.autoscaling.v1.Scale",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(Struct("io.k8s.api.autoscaling.v1.ScaleSpec", {"replicas": omit(INT32, "The number of pods wanted.", default=0)})),
        "status": zero(
            Struct(
                "io.k8s.api.autoscaling.v1.ScaleStatus",
                {
                    "replicas": zero(INT32, "Pods there are.", required=True),
                    "selector": omit(STRING, "Which pods count, in the notation of a query."),
                },
            )
        ),
    },
    "The size of something that has replicas.",
)

"""What keeps pods running, scales them and protects them from disruption."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.metadata import WITH_STATUS

_CONDITION: Final = numbered(type=1, status=2, reason=4, message=5, lastTransitionTime=3)
_REPLICATOR: Final = numbered(replicas=1, minReadySeconds=4, selector=2, template=3)
_REPLICATED: Final = {
    "replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 4, "availableReplicas": 5, "observedGeneration": 3, "conditions": 6,
}  # fmt: skip

WORKLOADS: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    ReplicationController=WITH_STATUS,
    ReplicationControllerSpec=_REPLICATOR,
    ReplicationControllerStatus=numbered(**_REPLICATED),
    ReplicationControllerCondition=_CONDITION,
) | in_package(
    "io.k8s.api.apps.v1",
    ReplicaSet=WITH_STATUS,
    ReplicaSetSpec=_REPLICATOR,
    ReplicaSetStatus=numbered(**_REPLICATED, terminatingReplicas=7),
    ReplicaSetCondition=_CONDITION,
    Deployment=WITH_STATUS,
    # 8 was the revision to go back to.
    DeploymentSpec=numbered(
        replicas=1, selector=2, template=3, strategy=4, minReadySeconds=5, progressDeadlineSeconds=9, revisionHistoryLimit=6, paused=7
    ),
    DeploymentStrategy=numbered(type=1, rollingUpdate=2),
    RollingUpdateDeployment=numbered(maxUnavailable=1, maxSurge=2),
    DeploymentStatus=numbered(
        observedGeneration=1, replicas=2, updatedReplicas=3, readyReplicas=7, availableReplicas=4, unavailableReplicas=5,
        terminatingReplicas=9, conditions=6, collisionCount=8,
    ),
    DeploymentCondition=numbered(type=1, status=2, reason=4, message=5, lastUpdateTime=6, lastTransitionTime=7),
    StatefulSet=WITH_STATUS,
    StatefulSetSpec=numbered(
        replicas=1, selector=2, template=3, volumeClaimTemplates=4, serviceName=5, podManagementPolicy=6, updateStrategy=7,
        revisionHistoryLimit=8, minReadySeconds=9, persistentVolumeClaimRetentionPolicy=10, ordinals=11,
    ),
    StatefulSetUpdateStrategy=numbered(type=1, rollingUpdate=2),
    RollingUpdateStatefulSetStrategy=numbered(partition=1, maxUnavailable=2),
    StatefulSetPersistentVolumeClaimRetentionPolicy=numbered(whenDeleted=1, whenScaled=2),
    StatefulSetOrdinals=numbered(start=1),
    StatefulSetStatus=numbered(
        observedGeneration=1, replicas=2, readyReplicas=3, currentReplicas=4, updatedReplicas=5, availableReplicas=11,
        currentRevision=6, updateRevision=7, collisionCount=9, conditions=10,
    ),
    StatefulSetCondition=_CONDITION,
) | in_package(
    "io.k8s.api.autoscaling.v1",
    Scale=WITH_STATUS,
    ScaleSpec=numbered(replicas=1),
    ScaleStatus=numbered(replicas=1, selector=2),
) | in_package(
    "io.k8s.api.policy.v1",
    PodDisruptionBudget=WITH_STATUS,
    PodDisruptionBudgetSpec=numbered(minAvailable=1, maxUnavailable=3, selector=2, unhealthyPodEvictionPolicy=4),
    PodDisruptionBudgetStatus=numbered(
        observedGeneration=1, disruptedPods=2, disruptionsAllowed=3, currentHealthy=4, desiredHealthy=5, expectedPods=6, conditions=7
    ),
)  # fmt: skip

"""What every object says of itself, and how objects refer to each other."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered

WITH_SPEC: Final = numbered(metadata=1, spec=2)
WITH_STATUS: Final = numbered(metadata=1, spec=2, status=3)
"""Most objects are made like one of these."""

_REQUIREMENT: Final = numbered(key=1, operator=2, values=3)

METADATA: Final[dict[str, Numbers]] = in_package(
    "io.k8s.apimachinery.pkg.apis.meta.v1",
    # 15 and 16 were the name of the cluster and initializers.
    ObjectMeta=numbered(
        name=1, generateName=2, namespace=3, uid=5, resourceVersion=6, generation=7, selfLink=4,
        creationTimestamp=8, deletionTimestamp=9, deletionGracePeriodSeconds=10,
        labels=11, annotations=12, ownerReferences=13, finalizers=14, managedFields=17,
    ),
    OwnerReference=numbered(apiVersion=5, kind=1, name=3, uid=4, controller=6, blockOwnerDeletion=7),
    ManagedFieldsEntry=numbered(manager=1, operation=2, subresource=8, apiVersion=3, time=4, fieldsType=6, fieldsV1=7),
    DeleteOptions=numbered(
        gracePeriodSeconds=1, preconditions=2, orphanDependents=3, propagationPolicy=4, dryRun=5,
        ignoreStoreReadErrorWithClusterBreakingPotential=6,
    ),
    Preconditions=numbered(uid=1, resourceVersion=2),
    LabelSelector=numbered(matchLabels=1, matchExpressions=2),
    LabelSelectorRequirement=_REQUIREMENT,
    FieldSelectorRequirement=_REQUIREMENT,
    Condition=numbered(type=1, status=2, reason=5, message=6, observedGeneration=3, lastTransitionTime=4),
) | in_package(
    "io.k8s.api.core.v1",
    ObjectReference=numbered(apiVersion=5, kind=1, namespace=2, name=3, uid=4, resourceVersion=6, fieldPath=7),
    LocalObjectReference=numbered(name=1),
    TypedLocalObjectReference=numbered(apiGroup=1, kind=2, name=3),
    TypedObjectReference=numbered(apiGroup=1, kind=2, name=3, namespace=4),
    SecretReference=numbered(name=1, namespace=2),
    Namespace=WITH_STATUS,
    NamespaceSpec=numbered(finalizers=1),
    NamespaceStatus=numbered(phase=1, conditions=2),
    NamespaceCondition=numbered(type=1, status=2, reason=5, message=6, lastTransitionTime=4),
)  # fmt: skip

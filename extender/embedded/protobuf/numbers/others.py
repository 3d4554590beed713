"""Leases, and questions about who may do what."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.metadata import WITH_SPEC, WITH_STATUS

_SELECTOR: Final = numbered(rawSelector=1, requirements=2)

OTHERS: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.coordination.v1",
    Lease=WITH_SPEC,
    LeaseSpec=numbered(
        holderIdentity=1, leaseDurationSeconds=2, acquireTime=3, renewTime=4, leaseTransitions=5, strategy=6, preferredHolder=7
    ),
) | in_package(
    "io.k8s.api.authentication.v1",
    TokenReview=WITH_STATUS,
    TokenReviewSpec=numbered(token=1, audiences=2),
    TokenReviewStatus=numbered(authenticated=1, user=2, audiences=4, error=3),
    UserInfo=numbered(username=1, uid=2, groups=3, extra=4),
) | in_package(
    "io.k8s.api.authorization.v1",
    SelfSubjectAccessReview=WITH_STATUS,
    SelfSubjectAccessReviewSpec=numbered(resourceAttributes=1, nonResourceAttributes=2),
    SubjectAccessReview=WITH_STATUS,
    SubjectAccessReviewSpec=numbered(resourceAttributes=1, nonResourceAttributes=2, user=3, groups=4, extra=5, uid=6),
    SubjectAccessReviewStatus=numbered(allowed=1, denied=4, reason=2, evaluationError=3),
    ResourceAttributes=numbered(
        verb=2, group=3, version=4, resource=5, subresource=6, namespace=1, name=7, fieldSelector=8, labelSelector=9
    ),
    NonResourceAttributes=numbered(path=1, verb=2),
    FieldSelectorAttributes=_SELECTOR,
    LabelSelectorAttributes=_SELECTOR,
)  # fmt: skip

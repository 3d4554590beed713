"""PodDisruptionBudget."""

import msgspec

from extender.objects.meta import ApiObject, Int32, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(ApiObject, frozen=True, gc=False, rename="camel"):
    """policyv1.PodDisruptionBudgetSpec."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiObject, frozen=True, gc=False, rename="camel"):
    """policyv1.PodDisruptionBudgetStatus."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(ApiObject, frozen=True, gc=False, rename="camel"):
    """policyv1.PodDisruptionBudget."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)

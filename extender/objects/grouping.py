"""The objects that group pods, by namespace or by labels: namespaces, services, controllers and disruption budgets."""

import msgspec

from extender.objects.meta import ApiObject, Int32, LabelSelector, ObjectMeta


class Namespace(ApiObject, frozen=True):
    """v1.Namespace: only its labels matter."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class MapSelectorSpec(ApiObject, frozen=True):
    """The spec of v1.Service and v1.ReplicationController: a plain map of labels. None selects nothing."""

    selector: dict[str, str] | None = None


class Service(ApiObject, frozen=True):
    """v1.Service."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class ReplicationController(ApiObject, frozen=True):
    """v1.ReplicationController."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class LabelSelectorSpec(ApiObject, frozen=True):
    """The spec of apps/v1 ReplicaSet and StatefulSet."""

    selector: LabelSelector | None = None


class ReplicaSet(ApiObject, frozen=True):
    """appsv1.ReplicaSet."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


class StatefulSet(ApiObject, frozen=True):
    """appsv1.StatefulSet."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


class PodDisruptionBudgetSpec(ApiObject, frozen=True):
    """policyv1.PodDisruptionBudgetSpec."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiObject, frozen=True):
    """policyv1.PodDisruptionBudgetStatus."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(ApiObject, frozen=True):
    """policyv1.PodDisruptionBudget."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)

"""The objects that group pods, by namespace or by labels: namespaces, services, controllers and disruption budgets."""

import msgspec

from extender.objects.meta import ApiObject, HasMetadata, Int32, LabelSelector


class Namespace(HasMetadata, frozen=True):
    """v1.Namespace: only its labels matter."""


class MapSelectorSpec(ApiObject, frozen=True):
    """The spec of v1.Service and v1.ReplicationController: a plain map of labels. None selects nothing."""

    selector: dict[str, str] | None = None


class Service(HasMetadata, frozen=True):
    """v1.Service."""

    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class ReplicationController(HasMetadata, frozen=True):
    """v1.ReplicationController."""

    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class LabelSelectorSpec(ApiObject, frozen=True):
    """The spec of apps/v1 ReplicaSet and StatefulSet."""

    selector: LabelSelector | None = None


class ReplicaSet(HasMetadata, frozen=True):
    """appsv1.ReplicaSet."""

    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


class StatefulSet(HasMetadata, frozen=True):
    """appsv1.StatefulSet."""

    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


class PodDisruptionBudgetSpec(ApiObject, frozen=True):
    """policyv1.PodDisruptionBudgetSpec."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiObject, frozen=True):
    """policyv1.PodDisruptionBudgetStatus."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(HasMetadata, frozen=True):
    """policyv1.PodDisruptionBudget."""

    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)

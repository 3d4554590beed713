"""The objects that group pods, by namespace or by labels: namespaces, services, controllers and disruption budgets."""

from typing import Final

import msgspec

from extender.values.objects.label_selectors import NOTHING, Selector, SelectorError, selector_of
from extender.values.objects.meta import ApiObject, HasMetadata, Int32, LabelSelector


class Namespace(HasMetadata, frozen=True):
    """v1.Namespace: only its labels matter."""


class MapSelectorSpec(ApiObject, frozen=True):
    """The spec of v1.Service and v1.ReplicationController: a plain map of labels. None selects nothing."""

    selector: dict[str, str] | None = None


class Service(HasMetadata, frozen=True):
    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class ReplicationController(HasMetadata, frozen=True):
    spec: MapSelectorSpec = msgspec.field(default_factory=MapSelectorSpec)


class LabelSelectorSpec(ApiObject, frozen=True):
    """The spec of apps/v1 ReplicaSet and StatefulSet."""

    selector: LabelSelector | None = None


class ReplicaSet(HasMetadata, frozen=True):
    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


class StatefulSet(HasMetadata, frozen=True):
    spec: LabelSelectorSpec = msgspec.field(default_factory=LabelSelectorSpec)


_PARSED: Final = "parsed"


class PodDisruptionBudgetSpec(ApiObject, frozen=True, gc=True, dict=True):
    selector: LabelSelector | None = None

    @property
    def parsed_selector(self) -> Selector:
        """The selector, which is kept; one that is missing or cannot be parsed selects nothing."""
        parsed: Selector | None = self.__dict__.get(_PARSED)
        if parsed is None:
            try:
                parsed = selector_of(self.selector)
            except SelectorError:
                # Upstream ignores such a budget, too. The API server would not have accepted it.
                parsed = NOTHING
            self.__dict__[_PARSED] = parsed
        return parsed

    @property
    def is_parsed(self) -> bool:
        """True once the selector was asked for."""
        return _PARSED in self.__dict__

    def take_over(self, earlier: "PodDisruptionBudgetSpec") -> None:
        """Takes the parsed selector from the spec of an earlier version, if it is the same."""
        if earlier.is_parsed and earlier == self:
            self.__dict__[_PARSED] = earlier.parsed_selector


class PodDisruptionBudgetStatus(ApiObject, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(HasMetadata, frozen=True):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)

"""CycleState: what plugins keep during one scheduling cycle. It is dropped at the cycle's end."""

from typing import Any, Generic, TypeVar, final

from extender.framework.status import Verdicts
from extender.snapshot import Rows, Snapshot

T = TypeVar("T")


class NotFoundError(LookupError):
    """Nothing was written under the key in this cycle. Upstream: fwk.ErrNotFound."""


@final
class StateKey(Generic[T]):
    """A key and the type of the value kept under it. A plugin makes its keys once, at module level."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class CycleState:
    """What plugins computed for this pod in PreFilter and PreScore, read back in Filter, Score and later points.

    A cycle of a framework is a CycleState, too (`extender.runtime.cycle.Cycle`): it has the snapshot, and runs the profile's Filters. A
    plain CycleState is enough to call a plugin's PreFilter, Filter and Score by hand.

    Upstream: pkg/scheduler/framework/cycle_state.go (v1.36.2). There is no Clone, because hypotheses live in `Rows`.
    """

    __slots__ = ("_values", "pod_signature")

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        self.pod_signature = b""
        """Equal for pods with equal spec, labels, annotations and namespace. Empty where it was not needed."""

    @property
    def snapshot(self) -> Snapshot:
        """The cluster that this cycle decides over.

        Raises:
            RuntimeError: the state belongs to no cycle of a framework.
        """
        raise RuntimeError("this state belongs to no cycle of a framework")

    def run_filters_with_nominated_pods(self, rows: Rows, *, again: bool = False) -> Verdicts:
        """Returns the verdicts of all Filters of the profile on the cycle's pod; nominated pods of equal or higher priority count.

        Arguments:
            rows: R hypothetical nodes over the cycle's snapshot.
            again: the rows differ from rows that were just filtered only in which pods are on them, so that Filters which look at no
                pods need not run again.

        Raises:
            PluginError: a plugin failed.
            RuntimeError: the state belongs to no cycle of a framework.

        Upstream: framework/runtime/framework.go, RunFilterPluginsWithNominatedPods.
        """
        raise RuntimeError("this state belongs to no cycle of a framework")

    def write(self, key: StateKey[T], value: T) -> None:
        """Keep a value for the rest of the cycle."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T:
        """Return the value kept under the key.

        Raises:
            NotFoundError: nothing was written under it.
        """
        try:
            value: T = self._values[key]
        except KeyError:
            raise NotFoundError("not found") from None
        return value

    def find(self, key: StateKey[T]) -> T | None:
        """Return the value kept under the key, None if there is none."""
        value: T | None = self._values.get(key)
        return value

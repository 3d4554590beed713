"""The state of plugins during one scheduling cycle (CycleState), and their memos for equal pods (PodMemo)."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, final

from extender.engine.framework.status import Verdicts
from extender.engine.snapshot import Rows, Snapshot

T = TypeVar("T")


class EvaluationError(Exception):
    """A plugin could not say whether a pod may go to a node, or how good that is. It fails the pod's attempt only."""


class NotFoundError(LookupError):
    """No value was written under the key in this cycle. Upstream: fwk.ErrNotFound."""


@final
@dataclass(slots=True, eq=False)
class StateKey(Generic[T]):
    """A key and the type of the values under it. A plugin creates its keys once, at module level."""

    name: str


class CycleState:
    """The values that plugins write in PreFilter and PreScore, and read in Filter, Score and later points.

    The cycle of a framework is a CycleState, too (`extender.engine.runtime.cycle.Cycle`): it has the snapshot, and runs
    the profile's Filters. A plain CycleState is enough to call a plugin's PreFilter, Filter and Score by hand.

    Upstream: pkg/scheduler/framework/cycle_state.go. There is no Clone, because hypotheses live in `Rows`.
    """

    __slots__ = ("_values", "depends_on_devices", "pod_signature", "skip_filter_plugins", "skip_score_plugins")

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        self.pod_signature = b""
        """Equal for pods with equal spec, labels, annotations and namespace; empty if it was not computed."""
        self.depends_on_devices = False
        """Set by a PreFilter where results of plugins that look only at a node follow from device classes and devices
        as well, for this pod: nothing is remembered for equal pods then. Upstream: SignPod of NodeResourcesFit.
        """
        self.skip_filter_plugins: frozenset[str] = frozenset()
        """Plugins whose PreFilter answered Skip: their Filter does not run."""
        self.skip_score_plugins: frozenset[str] = frozenset()
        """Plugins whose PreScore answered Skip: their Score does not run."""

    @property
    def snapshot(self) -> Snapshot:
        """The cluster that this cycle decides over. Raises RuntimeError outside the cycle of a framework."""
        raise RuntimeError("this state belongs to no cycle of a framework")

    def run_filters_with_nominated_pods(self, rows: Rows, *, only_pods_changed: bool = False) -> Verdicts:
        """Returns the verdicts of all Filters of the profile on R hypothetical nodes over the cycle's snapshot.

        Nominated pods of equal or higher priority count. With `only_pods_changed`, rows that were filtered before
        differ only in the pods on them: Filters that do not look at pods are not run again.

        Raises PluginError if a plugin failed, RuntimeError outside the cycle of a framework.

        Upstream: framework/runtime/framework.go, RunFilterPluginsWithNominatedPods.
        """
        raise RuntimeError("this state belongs to no cycle of a framework")

    def with_nominated_pods(self, rows: Rows) -> Rows:
        """Returns the rows with the nominated pods that count for this one; outside of a cycle there are none."""
        return rows

    def write(self, key: StateKey[T], value: T) -> None:
        """Keeps a value until the end of the cycle."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T:
        """Returns the value under the key. Raises NotFoundError if none was written."""
        try:
            value: T = self._values[key]
        except KeyError:
            raise NotFoundError("not found") from None
        return value

    def find(self, key: StateKey[T]) -> T | None:
        """Returns the value under the key; None if no value was written."""
        value: T | None = self._values.get(key)
        return value


BINDING_ANNOTATIONS: Final = StateKey[Mapping[str, str]]("BindingAnnotations")
"""What Reserve or PreBind adds to the pod's annotations, written with its binding; an assumed pod has those of Reserve.

Upstream: pkg/registry/core/pod/storage/storage.go, assignPod, copies the annotations of a Binding.
"""

KEPT = 256
"""Values that a PodMemo keeps; the oldest one is dropped first."""


@final
@dataclass(slots=True, eq=False)
class PodMemo(Generic[T]):
    """A plugin's memo by pod signature, which spares it computing the same value for each of many equal pods.

    A value may depend only on the pod's spec, labels, annotations and namespace, and on what is passed as `also`.
    """

    _kept: OrderedDict[tuple[bytes, Hashable], T] = field(default_factory=OrderedDict)

    def of(self, state: CycleState, compute: Callable[[], T], also: Hashable = None) -> T:
        """Returns the value for the pod of this cycle. It is computed each time when the cycle has no pod signature."""
        if not state.pod_signature:
            return compute()
        key = state.pod_signature, also
        value = self._kept.get(key)
        if value is None:
            value = self._kept[key] = compute()
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return value

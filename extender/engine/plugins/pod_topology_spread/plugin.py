"""PodTopologySpread: the plugin."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

from extender.engine import framework as fwk
from extender.engine.plugins.pod_topology_spread import advice, filtering, hints, scoring
from extender.engine.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    CompiledConstraint,
    compiled,
    with_selector,
)
from extender.engine.plugins.pod_topology_spread.default_constraints import SYSTEM_DEFAULTS, default_selector
from extender.engine.snapshot.axes import Int64s, Mask
from extender.values.config.plugin_args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.label_selectors import SelectorError

_MEASURED: Final = fwk.StateKey[Sequence[filtering.Domains]]("PreFilterPodTopologySpread")
_SCORES: Final = fwk.StateKey[scoring.TopologyScores]("PreScorePodTopologySpread")
_NO_OBJECTS: Final = ClusterObjects()
_IGNORED: Final = fwk.StateKey[Mask]("ScorePodTopologySpread")


@final
class PodTopologySpread(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin, fwk.AdvicePlugin):
    """Refuses nodes that would exceed the skew (DoNotSchedule), and prefers domains with few matching pods
    (ScheduleAnyway).

    State: an index of the services, for pods without constraints of their own.

    Upstream: framework/plugins/podtopologyspread/plugin.go (v1.36.2).
    """

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        args = arguments if isinstance(arguments, PodTopologySpreadArgs) else PodTopologySpreadArgs()
        self._is_system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_DEFAULTS if self._is_system_defaulted else args.default_constraints
        self._default_actions = frozenset(constraint.when_unsatisfiable for constraint in self._defaults)
        self._matches_keys = self.feature_gates.enabled("MatchLabelKeysInPodTopologySpread")
        self._compares = self.feature_gates.enabled("TaintTolerationComparisonOperators")
        self._own = fwk.PodMemo[tuple[CompiledConstraint, ...]]()

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        action = fwk.ActionType
        pods = action.ADD | action.UPDATE_POD_LABEL | action.UPDATE_POD_TOLERATION | action.DELETE
        nodes = action.ADD | action.DELETE | action.UPDATE_NODE_LABEL | action.UPDATE_NODE_TAINT
        return [
            fwk.on(fwk.EventResource.POD, pods, self._after_pod_change),
            fwk.on(fwk.EventResource.NODE, nodes, self._after_node_change),
        ]

    def _after_pod_change(self, pod: fwk.Pod, old: fwk.Pod | None, new: fwk.Pod | None) -> fwk.QueueingHint:
        """Raises SelectorError if a constraint is invalid."""
        if not hints.is_involved(pod, old, new):
            return fwk.QueueingHint.QUEUE_SKIP
        return hints.after_pod_change(pod, self._hard_constraints(pod), old, new)

    def _after_node_change(self, pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node | None) -> fwk.QueueingHint:
        """Raises SelectorError if a constraint is invalid."""
        return hints.after_node_change(self._hard_constraints(pod), old, new)

    def _hard_constraints(self, pod: fwk.Pod) -> tuple[CompiledConstraint, ...]:
        try:
            return self._constraints(fwk.CycleState(), pod, self.handle.objects, DO_NOT_SCHEDULE)
        except SelectorError as exc:
            raise SelectorError(f"obtaining pod's hard topology spread constraints: {exc}") from exc

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without DoNotSchedule constraints; Error if a selector is invalid."""
        try:
            constraints = self._constraints(state, pod, snapshot.objects, DO_NOT_SCHEDULE)
        except SelectorError as exc:
            return fwk.PreFilterResult(
                fwk.error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {exc}")
            )
        if not constraints:
            return fwk.PreFilterResult(self._skip(pod, DO_NOT_SCHEDULE))
        state.write(_MEASURED, filtering.measure(snapshot, pod, filtering.decisive(snapshot, constraints)))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return filtering.verdicts(pod, rows, state.read(_MEASURED))

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        """Skips pods without ScheduleAnyway constraints; Error if a selector is invalid."""
        try:
            constraints = self._constraints(state, pod, rows.snapshot.objects, SCHEDULE_ANYWAY)
        except SelectorError as exc:
            return fwk.error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {exc}")
        if not constraints:
            return self._skip(pod, SCHEDULE_ANYWAY)
        # The system defaults must spread over hostnames even if no node has a zone.
        all_keys_needed = bool(pod.spec.topology_spread_constraints) or not self._is_system_defaulted
        state.write(_SCORES, scoring.weigh(rows, pod, constraints, all_keys_needed=all_keys_needed))
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) the more matching pods, the higher; see `scoring.raw_scores`."""
        scores_of_pod = state.read(_SCORES)
        if scores_of_pod.ignored is not None:
            state.write(_IGNORED, scores_of_pod.ignored[rows.node])
        return scoring.raw_scores(rows, scores_of_pod)

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        """(R,) the more matching pods, the lower; see `scoring.normalized`."""
        return scoring.normalized(scores, state.find(_IGNORED))

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Looser constraints; see `advice.suggestions`."""
        return advice.suggestions(pod, rows)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """All constraints as mere preferences."""
        return advice.without_requirements(pod)

    def _skip(self, pod: fwk.Pod, action: str) -> fwk.Status:
        """Returns Skip for a pod without constraints of this action. Which default constraints a pod has depends on
        services and owners.
        """
        from_defaults = not pod.spec.topology_spread_constraints and action in self._default_actions
        return fwk.SKIP if from_defaults else fwk.SKIP_EQUAL_PODS

    def _constraints(
        self, state: fwk.CycleState, pod: fwk.Pod, objects: ClusterObjects, action: str
    ) -> tuple[CompiledConstraint, ...]:
        """Returns the pod's own constraints with this action; the default ones if it has none at all."""
        if pod.spec.topology_spread_constraints:
            return self._own.of(state, lambda: self._own_constraints(pod, action), also=action)
        return self._default_constraints(pod, objects, action)

    def _own_constraints(self, pod: fwk.Pod, action: str) -> tuple[CompiledConstraint, ...]:
        labels = pod.labels if self._matches_keys else {}
        return compiled(pod.spec.topology_spread_constraints, labels, action, compares_tolerations=self._compares)

    def _default_constraints(
        self, pod: fwk.Pod, objects: ClusterObjects, action: str
    ) -> tuple[CompiledConstraint, ...]:
        if action not in self._default_actions:
            return ()
        labels = pod.labels if self._matches_keys else {}
        selector = default_selector(pod, objects)
        if selector.is_empty:
            return ()
        defaults = compiled(self._defaults, labels, action, compares_tolerations=self._compares)
        return tuple(with_selector(constraint, selector) for constraint in defaults)

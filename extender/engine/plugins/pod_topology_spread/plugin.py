"""PodTopologySpread: the plugin, its queueing hints and its suggestions."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, final

import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.plugins.pod_topology_spread import filtering, scoring
from extender.engine.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    HONOR,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    CompiledConstraint,
    compiled,
    default_selector,
    tolerated,
)
from extender.engine.plugins.pod_topology_spread.filtering import decisive, measure
from extender.engine.snapshot.axes import Int64s, Mask
from extender.values import limits
from extender.values.config.plugin_args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import replaced
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.pod import TopologySpreadConstraint

_MEASURED: Final = fwk.StateKey[Sequence[filtering.Domains]]("PreFilterPodTopologySpread")
_SCORES: Final = fwk.StateKey[scoring.TopologyScores]("PreScorePodTopologySpread")
_NO_OBJECTS: Final = ClusterObjects()
_IGNORED: Final = fwk.StateKey[Mask]("ScorePodTopologySpread")


@final
class PodTopologySpread(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin, fwk.AdvicePlugin):
    """Refuses nodes that would exceed the skew (DoNotSchedule), and prefers domains with few matching pods
    (ScheduleAnyway).

    State: an index of the services, for pods without constraints of their own. Upstream:
    framework/plugins/podtopologyspread/plugin.go.
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
        if not is_involved(pod, old, new):
            return fwk.QueueingHint.QUEUE_SKIP
        return after_pod_change(pod, self._hard_constraints(pod), old, new)

    def _after_node_change(self, pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node | None) -> fwk.QueueingHint:
        """Raises SelectorError if a constraint is invalid."""
        return after_node_change(self._hard_constraints(pod), old, new)

    def _hard_constraints(self, pod: fwk.Pod) -> tuple[CompiledConstraint, ...]:
        try:
            return self.constraints(fwk.CycleState(), pod, self.handle.objects, DO_NOT_SCHEDULE)
        except SelectorError as exc:
            raise SelectorError(f"obtaining pod's hard topology spread constraints: {exc}") from exc

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without DoNotSchedule constraints; Error if a selector is invalid."""
        try:
            constraints = self.constraints(state, pod, snapshot.objects, DO_NOT_SCHEDULE)
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
            constraints = self.constraints(state, pod, rows.snapshot.objects, SCHEDULE_ANYWAY)
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

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """Each constraint without nodes that have taints, with fewer domains, with the smallest maxSkew that admits one
        of the rows, and as a mere preference.
        """
        measured = _measured(pod, rows.snapshot) if len(rows) else ()
        has_taints = not tolerated(rows.snapshot, pod, compares=self._compares).all()
        for place, (spec_place, constraint) in enumerate(_required(pod)[: limits.SUGGESTED_ONE_BY_ONE]):
            over, domains = constraint.topology_key, measured[place] if measured else None
            if has_taints and constraint.node_taints_policy != HONOR:
                text = f"leave nodes with taints out of the spreading over {over} (nodeTaintsPolicy: {HONOR})"
                yield fwk.Suggestion("spread", text, _spreading(pod, spec_place, node_taints_policy=HONOR))
            number = 0 if domains is None else int(np.count_nonzero(domains.is_domain))
            if domains is not None and domains.is_too_few and number:
                text = f"ask for minDomains {number} over {over} instead of {constraint.min_domains}"
                yield fwk.Suggestion("spread", text, _spreading(pod, spec_place, min_domains=number))
            skew = None if domains is None else _skew_needed(rows, domains)
            if skew is not None and skew > constraint.max_skew:
                text = f"allow a maxSkew of {skew} over {over} instead of {constraint.max_skew}"
                yield fwk.Suggestion("spread", text, _spreading(pod, spec_place, max_skew=skew))
            preferred = _spreading(pod, spec_place, when_unsatisfiable=SCHEDULE_ANYWAY)
            yield fwk.Suggestion("spread", f"only prefer to spread over {over} (ScheduleAnyway)", preferred)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """All constraints as mere preferences."""
        required = _required(pod)
        for place, _ in required:
            pod = _spreading(pod, place, when_unsatisfiable=SCHEDULE_ANYWAY)
        text = f"only prefer to spread over {' and '.join(one.topology_key for _, one in required)} (ScheduleAnyway)"
        return fwk.Suggestion("spread", text, pod) if required else None

    def _skip(self, pod: fwk.Pod, action: str) -> fwk.Status:
        """Returns Skip without constraints of this action; default ones depend on services and owners."""
        from_defaults = not pod.spec.topology_spread_constraints and action in self._default_actions
        return fwk.SKIP if from_defaults else fwk.SKIP_EQUAL_PODS

    def constraints(
        self, state: fwk.CycleState, pod: fwk.Pod, objects: ClusterObjects, action: str
    ) -> tuple[CompiledConstraint, ...]:
        """Returns the pod's own constraints with this action; the default ones if it has none at all."""
        if pod.spec.topology_spread_constraints:
            spread_constraints = pod.spec.topology_spread_constraints
            return self._own.of(state, lambda: self._compiled(spread_constraints, pod, action), also=action)
        if action not in self._default_actions:
            return ()
        selector = default_selector(pod, objects)
        if selector.is_empty:
            return ()
        return tuple(
            replace(constraint, selector=selector) for constraint in self._compiled(self._defaults, pod, action)
        )

    def _compiled(
        self, constraints: Sequence[TopologySpreadConstraint], pod: fwk.Pod, action: str
    ) -> tuple[CompiledConstraint, ...]:
        labels = pod.labels if self._matches_keys else {}
        return compiled(constraints, labels, action, compares_tolerations=self._compares)


def after_pod_change(
    pod: fwk.Pod, constraints: Sequence[CompiledConstraint], old: fwk.Pod | None, new: fwk.Pod | None
) -> fwk.QueueingHint:
    """Queues the pod if a counted pod came, went or has other labels, or if it tolerates more and taints count."""
    if (
        old is not None
        and new is not None
        and new.uid == pod.uid
        and old.spec.tolerations != new.spec.tolerations
        and any(constraint.honors_taints for constraint in constraints)
    ):
        return fwk.QueueingHint.QUEUE
    was_counted, is_counted = (
        [counted_pod is not None and constraint.selector.matches(counted_pod.labels) for constraint in constraints]
        for counted_pod in (old, new)
    )
    return fwk.queue_if(was_counted != is_counted)


def is_involved(pod: fwk.Pod, old: fwk.Pod | None, new: fwk.Pod | None) -> bool:
    """True if the event is about the pod, or one in its namespace that has a node or a nomination."""
    return all(
        other.uid == pod.uid
        or (other.namespace == pod.namespace and bool(other.spec.node_name or other.status.nominated_node_name))
        for other in (old, new)
        if other is not None
    )


def after_node_change(
    constraints: Sequence[CompiledConstraint], old: fwk.Node | None, new: fwk.Node | None
) -> fwk.QueueingHint:
    """Queues the pod if a node joined or left a domain, or its taints changed."""
    was_in, is_in = _is_in_domains(constraints, old), _is_in_domains(constraints, new)
    if was_in != is_in or old is None or new is None:
        return fwk.queue_if(was_in or is_in)
    moved = any(
        old.labels.get(constraint.topology_key) != new.labels.get(constraint.topology_key) for constraint in constraints
    )
    return fwk.queue_if(is_in and (moved or old.spec.taints != new.spec.taints))


def _is_in_domains(constraints: Sequence[CompiledConstraint], node: fwk.Node | None) -> bool:
    return node is not None and all(constraint.topology_key in node.labels for constraint in constraints)


def _required(pod: fwk.Pod) -> list[tuple[int, TopologySpreadConstraint]]:
    """Returns the DoNotSchedule constraints, each with its place."""
    numbered = enumerate(pod.spec.topology_spread_constraints)
    return [(place, constraint) for place, constraint in numbered if constraint.when_unsatisfiable == DO_NOT_SCHEDULE]


def _spreading(pod: fwk.Pod, place: int, **changes: object) -> fwk.Pod:
    """Returns the pod with one spread constraint changed."""
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[place] = replaced(constraints[place], **changes)
    return replaced(pod, spec=replaced(pod.spec, topology_spread_constraints=constraints))


def _measured(pod: fwk.Pod, snapshot: fwk.Snapshot) -> Sequence[filtering.Domains]:
    """Returns the domains of each required constraint; none if they are not the pod's own, or a key is on no node."""
    constraints = compiled(pod.spec.topology_spread_constraints, pod.labels, DO_NOT_SCHEDULE)
    if not constraints or len(decisive(snapshot, constraints)) < len(constraints):
        # A pod without constraints of its own is held to those of the profile, which it cannot relax. And a topology
        # key that no node has leaves no nodes to count.
        return ()
    return measure(snapshot, pod, constraints)


def _skew_needed(rows: fwk.Rows, domains: filtering.Domains) -> int | None:
    """Returns the smallest maxSkew that admits a row; None if the constraint refuses none of them."""
    codes = domains.column.codes[rows.node]
    # The skew of a row is what its domain would have with the pod, less what the emptiest domain has.
    skews = domains.counts[codes[codes >= 0]] + (domains.self_match - (0 if domains.is_too_few else domains.fewest))
    beyond = skews[skews > domains.constraint.max_skew]
    return int(np.min(beyond)) if len(beyond) else None

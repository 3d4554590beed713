"""Cycle: runs the plugins of a profile for one pod over one snapshot, and gives each result its consequence.

A cycle is made for one decision or evaluation, used and dropped. Nothing of it stays in the framework, so that cycles
of different pods cannot disturb each other. PostFilter is in `extender.engine.runtime.findings`, and the points
after a node was chosen are in `extender.engine.runtime.reserve_to_bind`.

Upstream: pkg/scheduler/framework/runtime/framework.go.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.runtime.demands import DEMANDS, refusal_of_demands
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.memory import (
    HASH_BYTES,
    EqualPodsAnswer,
    Filters,
    Memory,
    Remembered,
    Scorers,
    refreshed,
    remembered_fits,
    remembered_sum,
    signature_of,
)
from extender.engine.runtime.plugin_calls import (
    PluginError,
    call_plugin,
    filter_verdicts,
    no_node_left,
    pre_filter_result,
    pre_score_status,
    refuse_unknown_codes,
    scattered,
    scattered_reasons,
)
from extender.engine.runtime.scoring import (
    Part,
    RankedParts,
    Ranking,
    Scores,
    WeightedScorer,
    in_range,
    normalized_scores,
    plugin_scores,
    scores_at,
    scores_by_label,
)
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index, Int64s, Mask, all_of, extremes, read_only
from extender.engine.snapshot.columns import LabelScores
from extender.values.metrics import ObservePlugin
from extender.values.objects.pod import Pod


@final
class PreFilterOutcome(msgspec.Struct, frozen=True):
    """The combined result of the PreFilter plugins."""

    status: fwk.Status
    node_names: frozenset[str] | None = None
    """The nodes still in play, None for all of them."""
    narrowed_by: tuple[str, ...] = ()
    """Sorted names of the plugins that narrowed the search."""


@final
class Nominations(msgspec.Struct, frozen=True):
    """Node name -> (slot, pod) of the pods nominated to it, in order of nomination."""

    by_node: Mapping[str, tuple[tuple[int, Pod], ...]] = msgspec.field(default_factory=dict)
    placed: tuple[Snapshot, int] | None = None
    """The present cluster, and the slot of the pod, if it is on its node already and Reserve runs again."""

    def changes_for(self, pod: Pod, rows: Rows) -> PodChanges | None:
        """Returns a +1 for every nominated pod of at least the priority of `pod`, if any (addGENominatedPods)."""
        if not self.by_node:
            return None
        nodes = rows.snapshot.nodes
        slots_at: dict[int, list[int]] = {}
        for name, nominated in self.by_node.items():
            place = nodes.index.get(name)
            if place is not None:
                slots_at[place] = [
                    slot for slot, other in nominated if other.priority >= pod.priority and other.uid != pod.uid
                ]
        has_nominated = np.zeros(len(nodes), np.bool_)
        has_nominated[[place for place, slots in slots_at.items() if slots]] = True
        # Several rows may be hypotheses over the same node, so the search goes from rows to nodes.
        affected = np.flatnonzero(has_nominated[rows.node])
        added = [(row, slot) for row in affected.tolist() for slot in slots_at[int(rows.node[row])]]
        if not added:
            return None
        changes = np.array(added, np.intp)
        return PodChanges(changes[:, 0], changes[:, 1], np.ones(len(changes), np.int64))


NO_NOMINATIONS = Nominations()
_NOT_PRE_FILTERED: Final = PreFilterOutcome(fwk.SUCCESS)


@final
class Cycle(fwk.CycleState):
    """The state that the plugins of one cycle are given, and the methods that run them."""

    __slots__ = (
        "_parts",
        "_remembered",
        "_snapshot",
        "framework",
        "nominations",
        "observe",
        "placement",
        "pod",
        "pre_filter",
        "within",
    )

    def __init__(
        self,
        framework: Framework,
        snapshot: Snapshot,
        pod: Pod,
        nominations: Nominations = NO_NOMINATIONS,
        *,
        observe: ObservePlugin | None = None,
    ) -> None:
        """Begins a cycle for the pod; `observe`, if the cycle is sampled, receives the duration of each plugin."""
        super().__init__()
        self.framework: Final = framework
        self.pod: Final = pod
        self.nominations = nominations
        self.observe: Final = observe
        self.pre_filter = _NOT_PRE_FILTERED
        """The outcome of PreFilter; Success before it has run."""
        self.placement: Index | None = None
        """(B,) the places, ascending, that a member of a pod group is restricted to; None for all nodes."""
        self.within: Index | None = None
        """(B,) the places that PreFilter left in play, ascending; None for all nodes."""
        self._snapshot = snapshot
        self._remembered: Remembered | None = None
        self._parts: list[Part] = []

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def again(self, framework: Framework, now: Snapshot, slot: int) -> "Cycle":
        """Returns a cycle with this one's results, over its own nodes, for plugins that reserve the same again for the
        pod, which has a slot now.
        """
        other = Cycle(framework, self._snapshot, self.pod, Nominations(placed=(now, slot)))
        other._values.update(self._values)
        other.skip_filter_plugins = self.skip_filter_plugins
        return other

    @property
    def num_in_play(self) -> int:
        return len(self._snapshot.nodes) if self.within is None else len(self.within)

    @property
    def demands_too_much(self) -> bool:
        """True once PreFilter has refused the pod because its demands exceed what plugins look at."""
        return self.pre_filter.status.plugin == DEMANDS

    @property
    def filters_see_only_nodes(self) -> bool:
        """True if all pods with the signature of this one get the same verdicts while the snapshot is the same."""
        if self.depends_on_devices or self.within is not None or self.nominations.by_node:
            return False
        return bool(self.pod_signature) and not self.framework.filter_plan(self.skip_filter_plugins).of_cluster

    # PreFilter.

    def run_pre_filter_plugins(self) -> PreFilterOutcome:
        """Runs every PreFilter, and keeps and returns the combined result; see also `demands`.

        A plugin that answers Unschedulable does not stop the others, because preemption needs their state;
        UnschedulableAndUnresolvable does. Raises PluginError if one raised or answered with a code that PreFilter does
        not have.
        """
        signature, spec = signature_of(self.pod), self.pod.spec
        if len(signature) == HASH_BYTES or spec.volumes or spec.resource_claims:
            refused = refusal_of_demands(self.pod, self._snapshot.objects)
            if refused is not None:
                self.pre_filter = PreFilterOutcome(refused)
                return self.pre_filter
        skipped: set[str] = set()
        self.pod_signature = signature
        self._remembered = self.framework.memory.recall(self.pod_signature, self._snapshot)
        try:
            outcome = self._pre_filtered(skipped)
        finally:
            evaluations = self.framework.evaluations
            self.skip_filter_plugins = evaluations.interned(skipped)
            evaluations.pre_filtered[self.skip_filter_plugins] += 1
        self.pre_filter = outcome
        if outcome.node_names is not None:
            index = self._snapshot.nodes.index
            self.within = np.array(sorted(index[name] for name in outcome.node_names if name in index), np.intp)
        if self.placement is not None:
            self.within = self.placement if self.within is None else np.intersect1d(self.within, self.placement)
        return outcome

    def _pre_filtered(self, skipped: set[str]) -> PreFilterOutcome:
        names: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        refused: fwk.Status | None = None
        answers = None if self._remembered is None else self._remembered.pre_filter(self._snapshot)
        plugins = self.framework.plugins.pre_filter
        for plugin in plugins if answers is None else answers.steps(plugins):
            if isinstance(plugin, EqualPodsAnswer):
                skipped.update(plugin.skipped)
                self._values.update(plugin.state_values)
                continue
            num_kept = len(self._values)
            result = call_plugin(
                self.observe, plugin.name, "PreFilter", pre_filter_result, plugin, self, self.pod, self._snapshot
            )
            status = result.status
            code = status.code
            if answers is not None and status.for_equal_pods and result.node_names is None:
                answers.keep(plugin.name, self._answer_of(plugin.name, status, num_kept))
            if code is fwk.Code.SKIP:
                skipped.add(plugin.name)
                continue
            if code is not fwk.Code.SUCCESS:
                if code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return PreFilterOutcome(status.by(plugin.name))
                if code is not fwk.Code.UNSCHEDULABLE:
                    raise PluginError(plugin.name, "PreFilter", status.message)
                refused = status.by(plugin.name)
                continue
            if result.node_names is not None:
                names = result.node_names if names is None else names & result.node_names
                narrowed_by.add(plugin.name)
                if not names:
                    return PreFilterOutcome(no_node_left(sorted(narrowed_by)), names, tuple(sorted(narrowed_by)))
        return PreFilterOutcome(fwk.SUCCESS if refused is None else refused, names, tuple(sorted(narrowed_by)))

    def _answer_of(self, plugin: str, status: fwk.Status, num_kept: int) -> EqualPodsAnswer:
        """Returns the answer for equal pods, given the number of values in the state before the plugin ran."""
        if status.is_skip:
            return EqualPodsAnswer((plugin,), {})
        return EqualPodsAnswer((), dict(islice(self._values.items(), num_kept, None)))

    # Filter.

    def run_filter_plugins(self, rows: Rows, *, only_pods_changed: bool = False) -> fwk.Verdicts:
        """Returns the verdicts of all Filters, each on the rows that have passed those before it.

        Raises PluginError if one raised, or did not return verdicts on these rows. See
        `run_filters_with_nominated_pods`.
        """
        num_rows = len(rows)
        codes = np.zeros(num_rows, np.int8)
        reasons: list[tuple[str, Mask]] = []
        refused_by: list[tuple[str, Mask]] = []
        standing: Index | None = None  # the rows of `rows` that have passed so far; None for all of them
        for name, plugin in self.framework.plugins.filter:
            if name in self.skip_filter_plugins or (only_pods_changed and not plugin.looks_at_pods):
                continue
            verdicts = self.run_filter_plugin(name, plugin, rows)
            if verdicts.all_ok:
                continue
            refused = ~verdicts.ok
            codes[refused if standing is None else standing[refused]] = verdicts.codes[refused]
            reasons += scattered_reasons(verdicts.reasons, standing, num_rows)
            refused_by.append((name, scattered(refused, standing, num_rows)))
            passed_rows = np.flatnonzero(~refused)
            standing = passed_rows if standing is None else standing[passed_rows]
            if not len(passed_rows):
                break
            rows = rows.take(passed_rows)
        return fwk.Verdicts(codes, tuple(reasons), tuple(refused_by))

    def run_filters_with_nominated_pods(self, rows: Rows, *, only_pods_changed: bool = False) -> fwk.Verdicts:
        # The nominated pods may never come, and the pod may need them (affinity) as well as conflict with them. So a
        # row that has any must pass with them and without them.
        nominated = self.nominations.changes_for(self.pod, rows)
        if nominated is None:
            return self.run_filter_plugins(rows, only_pods_changed=only_pods_changed)
        first = self.run_filter_plugins(rows.changed(nominated), only_pods_changed=only_pods_changed)
        has_nominated = np.zeros(len(rows), np.bool_)
        has_nominated[nominated.row] = True
        retried = np.flatnonzero(has_nominated & first.ok)
        if not len(retried):
            return first
        second = self.run_filter_plugins(rows.take(retried), only_pods_changed=only_pods_changed)
        codes = first.codes.copy()
        codes[retried] = second.codes
        reasons = (*first.reasons, *scattered_reasons(second.reasons, retried, len(rows)))
        refused_by = first.refused_by + tuple(
            (name, scattered(mask, retried, len(rows))) for name, mask in second.refused_by
        )
        return fwk.Verdicts(codes, reasons, refused_by)

    def with_nominated_pods(self, rows: Rows) -> Rows:
        if self.nominations.placed is not None:
            now, slot = self.nominations.placed
            if not now.nodes.index.keys() >= set(rows.names):
                return rows
            rows = Rows.of(now, np.array([now.nodes.index[name] for name in rows.names], np.intp))
            row = np.flatnonzero(rows.node == now.pods.node[slot])
            return rows.changed(PodChanges(row, np.full(len(row), slot), np.full(len(row), -1), rows_are_distinct=True))
        nominated = self.nominations.changes_for(self.pod, rows)
        return rows if nominated is None else rows.changed(nominated)

    def run_filter_plugin(self, name: str, plugin: fwk.FilterPlugin, rows: Rows) -> fwk.Verdicts:
        """Returns one Filter's verdicts on these rows. Raises as `run_filter_plugins`."""
        verdicts = call_plugin(self.observe, name, "Filter", filter_verdicts, plugin, self, self.pod, rows)
        if not verdicts.all_ok:
            refuse_unknown_codes(name, verdicts)
        return verdicts

    def feasible_rows(self) -> Rows:
        """Returns the nodes in play that all Filters let pass, nominated pods counted; equal pods share results.

        Why others do not pass is for `run_filters_with_nominated_pods`. Raises PluginError.
        """
        try:
            return self._shared_feasible_rows()
        except PluginError:
            # What equal pods share is of all nodes, and a Filter is asked there about some that one before it, or a
            # nominated pod, keeps from it.
            rows = Rows.of(self._snapshot, self.within)
            return rows.take(self.run_filters_with_nominated_pods(rows).ok)

    def _shared_feasible_rows(self) -> Rows:
        framework, snapshot, places = self.framework, self._snapshot, self.within
        remembered = None if self.depends_on_devices else self._remembered
        if remembered is None:
            memory = Memory() if self.depends_on_devices else framework.memory
            remembered = self._remembered = memory.recall(self.pod_signature, snapshot)
        framework.evaluations.filtered[self.skip_filter_plugins] += 1
        plan = framework.filter_plan(self.skip_filter_plugins)
        fits = remembered_fits(remembered, plan, self._passing, snapshot, self.pod)
        rows = Rows.of(snapshot, places)
        if places is not None:
            fits = fits[places]
        if not all_of(fits):
            rows = rows.take(fits) if places is not None else Rows.masked(snapshot, fits)
        if plan.of_cluster and len(rows):
            passed = self._passing(plan.of_cluster, rows)
            if not all_of(passed):
                rows = Rows.masked(snapshot, passed) if rows.is_all else rows.take(passed)
        nominated = self.nominations.changes_for(self.pod, rows)
        if nominated is not None:
            # The rows have passed without the nominated pods above. What is left is the check with them.
            rows = rows.take(self.run_filter_plugins(rows.changed(nominated)).ok)
        return rows

    def _passing(self, filters: Filters, rows: Rows) -> Mask:
        """Returns (R,) the rows that these Filters let pass, without reasons."""
        num_rows = len(rows)
        passing: Mask | None = None
        standing: Index | None = None  # the rows of `rows` that have passed so far; None for all of them
        for name, plugin in filters:
            verdicts = call_plugin(self.observe, name, "Filter", filter_verdicts, plugin, self, self.pod, rows)
            if verdicts.all_ok:
                continue
            refuse_unknown_codes(name, verdicts)
            ok = verdicts.ok
            if passing is None or standing is None:
                passing = ok
            else:
                passing[standing] = ok
            if name == filters[-1][0] or not ok.any():
                break
            passed_rows = ok.nonzero()[0]
            standing = passed_rows if standing is None else standing[passed_rows]
            rows = rows.take(passed_rows)
        return ~np.zeros(num_rows, np.bool_) if passing is None else passing

    # PreScore and Score.

    def run_pre_score_plugins(self, rows: Rows) -> None:
        """Runs every PreScore on the feasible rows. Raises PluginError for other answers than Success and Skip."""
        skipped: set[str] = set()
        answers = None if self._remembered is None else self._remembered.pre_score
        plugins = self.framework.plugins.pre_score
        for plugin in plugins if answers is None else answers.steps(plugins):
            if isinstance(plugin, EqualPodsAnswer):
                skipped.update(plugin.skipped)
                self._values.update(plugin.state_values)
                continue
            num_kept = len(self._values)
            status = call_plugin(self.observe, plugin.name, "PreScore", pre_score_status, plugin, self, self.pod, rows)
            if answers is not None and status.for_equal_pods:
                answers.keep(plugin.name, self._answer_of(plugin.name, status, num_kept))
            if status.is_skip:
                skipped.add(plugin.name)
            elif not status.is_success:
                raise PluginError(plugin.name, "PreScore", status.message)
        evaluations = self.framework.evaluations
        self.skip_score_plugins = evaluations.interned(skipped)
        evaluations.scored[self.skip_score_plugins] += 1

    def run_score_plugins(self, rows: Rows) -> Scores:
        """Returns the scores of every Score plugin that PreScore did not skip.

        Raises PluginError if one raised, or a score is no integer or outside 0..100 after normalising.
        """
        parts: list[tuple[WeightedScorer, Int64s, Int64s]] = []
        for scorer in self.framework.plugins.score:
            if scorer.name not in self.skip_score_plugins:
                scores = self._raw_scores(scorer, rows)
                parts.append((scorer, scores, self._normalized_scores(scorer, scores) * scorer.weight))
        return Scores.of(parts, len(rows))

    def ranking(self, rows: Rows) -> Ranking:
        """Returns the weighted sums of scores for rows that `feasible_rows` returned, after `run_pre_score_plugins`.

        Raises PluginError; RuntimeError if `feasible_rows` was not called in this cycle.
        """
        remembered, snapshot = self._remembered, self._snapshot
        if remembered is None:
            raise RuntimeError("feasible_rows comes before ranking")
        plan = self.framework.score_plan(self.skip_score_plugins)
        local_total, common = remembered_sum(remembered, plan, self._raw_scores, snapshot, self.pod)
        ranked = RankedParts(plan.kind, common)
        for local in plan.normalized:
            (scorer,) = local.runs
            raw = refreshed(remembered, local, np.int64, self._only_raw_scores, snapshot, self.pod)
            are_alike = scorer.plugin.normalizes_by_extremes and raw.are_alike
            of_rows = raw.values[:1] if are_alike else rows.of_nodes(raw.values)
            are_kept = are_alike or rows.is_all
            weighted = raw.weighted if are_kept else None
            if weighted is None:
                weighted = self._normalized_scores(scorer, of_rows) * scorer.weight
                if are_kept:
                    raw.weighted = weighted
            if are_alike:
                ranked.add_common(scorer, int(of_rows[0]), int(weighted[0]))
            else:
                ranked.add(scorer, of_rows, weighted)
        for scorer in plan.of_cluster:
            is_skipped = scorer.plugin.scores_nothing_when_skipped and scorer.name in self.skip_filter_plugins
            if is_skipped:
                ranked.add_common(scorer, 0, 0)
                continue
            scores = call_plugin(
                self.observe, scorer.name, "Score", scores_by_label, scorer.plugin, self, self.pod, rows
            )
            if isinstance(scores, LabelScores):
                # One pass over the nodes instead of four.
                of_nodes, by_value = scores.column.of_nodes, np.zeros(len(scores.by_value), ranked.kind)
                by_value[of_nodes] = self._normalized_scores(scorer, scores.by_value[of_nodes]) * scorer.weight
                at_nodes = remembered.at_nodes(scorer.name, scores.column, by_value)
                ranked.add_by_label(scorer, scores, by_value, at_nodes)
                continue
            by_extremes = scorer.plugin.normalizes_by_extremes and len(rows) > 0
            lowest, highest = extremes(scores) if by_extremes else (0, 0)
            if not by_extremes or highest - lowest >= len(rows):
                ranked.add(scorer, scores, self._normalized_scores(scorer, scores) * scorer.weight)
                continue
            # Each possible score is normalised once, so that fewer arrays of the length of the rows are made.
            weighted = self._normalized_scores(scorer, np.arange(lowest, highest + 1)) * scorer.weight
            if lowest == highest:
                ranked.add_common(scorer, lowest, int(weighted[0]))
                continue
            # Small scores index the result as they are, which saves one more such array.
            first = 0 if lowest >= 0 and highest < len(rows) else lowest
            by_score = np.zeros(highest + 1 - first, ranked.kind)
            by_score[lowest - first :] = weighted
            ranked.add(scorer, scores, by_score.take(scores - first if first else scores))
        self._parts = ranked.parts
        return ranked.ranking(rows, local_total)

    def scores_at(self, rows: Rows, places: Index) -> Scores:
        """Returns each plugin's part in the `ranking` of some rows; see `scoring.scores_at`."""
        plan = self.framework.score_plan(self.skip_score_plugins)
        return scores_at(self, self.pod, rows, self._parts, (*plan.of_nodes.runs, *plan.of_pods.runs), places)

    def _raw_scores(self, scorer: WeightedScorer, rows: Rows) -> Int64s:
        return call_plugin(self.observe, scorer.name, "Score", plugin_scores, scorer.plugin, self, self.pod, rows)

    def _only_raw_scores(self, scorers: Scorers, rows: Rows) -> Int64s:
        (scorer,) = scorers
        return self._raw_scores(scorer, rows)

    def _normalized_scores(self, scorer: WeightedScorer, scores: Int64s) -> Int64s:
        if not scorer.normalizes:
            return in_range(scorer, scores)
        # Raw scores are shown and remembered, so a plugin that normalises in place must fail.
        raw, point = read_only(scores), "ScoreExtensionNormalize"
        normalized = call_plugin(
            self.observe, scorer.name, point, normalized_scores, scorer.plugin, self, self.pod, raw
        )
        return in_range(scorer, normalized)

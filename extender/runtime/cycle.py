"""Cycle: one pod meets the plugins of its profile over one snapshot, and what each result means for it.

A cycle is made for one decision or evaluation, used and dropped. Nothing of it stays in the framework, so that cycles of different pods
cannot disturb each other. The points after a node was chosen are in `extender.runtime.reserve_to_bind`.

Upstream: pkg/scheduler/framework/runtime/framework.go (v1.36.2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.metrics import ObservePlugin
from extender.objects.pod import Pod
from extender.runtime.framework import Framework
from extender.runtime.memory import Filters, Remembered, remembered_fits, remembered_raw_scores, remembered_sum, signature_of
from extender.runtime.nominations import NO_NOMINATIONS, Nominations, rows_with_changes
from extender.runtime.plugin_calls import PluginError, call_plugin, call_plugin_async
from extender.runtime.scoring import Scores, WeightedScorer, checked_scores, in_range
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Index, Int64s, Mask

_NOT_RUN: Final = fwk.SUCCESS
_ERROR: Final = int(fwk.Code.ERROR)


@final
@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """The combined result of the PreFilter plugins."""

    status: fwk.Status
    node_names: frozenset[str] | None = None
    """The nodes still in play, None for all of them."""
    narrowed_by: tuple[str, ...] = ()
    """Sorted names of the plugins that narrowed the search."""


@final
class Cycle(fwk.CycleState):
    """The state that the plugins of one cycle are given, and the methods that run them."""

    __slots__ = (
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
        """Begins a cycle for the pod.

        Arguments:
            nominations: pods that are nominated to nodes of the snapshot.
            observe: receives how long each plugin took; None in a cycle that is not sampled.
        """
        super().__init__()
        self.framework: Final = framework
        self.pod: Final = pod
        self.nominations: Final = nominations
        self.observe: Final = observe
        self.pre_filter = PreFilterOutcome(_NOT_RUN)
        """The outcome of PreFilter; Success before it has run."""
        self.placement: Index | None = None
        """(B,) the places that a member of a pod group is restricted to, ascending; None, as in every other cycle, for all nodes."""
        self.within: Index | None = None
        """(B,) the places that PreFilter left in play, ascending; None for all nodes."""
        self._snapshot = snapshot
        self._remembered: Remembered | None = None

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def num_in_play(self) -> int:
        """The number of nodes that PreFilter left in play."""
        return len(self._snapshot.nodes) if self.within is None else len(self.within)

    # PreFilter.

    def run_pre_filter_plugins(self) -> PreFilterOutcome:
        """Runs every PreFilter, and keeps and returns the combined result.

        A plugin that answers Unschedulable does not stop the others, because preemption needs their state; UnschedulableAndUnresolvable
        does.

        Raises:
            PluginError: a plugin raised or answered with a code that PreFilter does not have.
        """
        skipped: set[str] = set()
        if self.pod_signature:
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
        known = self._remembered
        # A sampled cycle asks all plugins, so that each has its time.
        spared = known.skip_pre_filter if known is not None and self.observe is None else frozenset()
        for plugin in self.framework.plugins.pre_filter:
            if plugin.name in spared:
                skipped.add(plugin.name)
                continue
            result = call_plugin(self.observe, plugin.name, "PreFilter", _pre_filter_result, plugin, self, self.pod, self._snapshot)
            status = result.status
            code = status.code
            if code is fwk.Code.SKIP:
                skipped.add(plugin.name)
                if status.for_equal_pods and known is not None:
                    known.skip_pre_filter |= {plugin.name}
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
                    return PreFilterOutcome(_no_node_left(sorted(narrowed_by)), names, tuple(sorted(narrowed_by)))
        return PreFilterOutcome(fwk.SUCCESS if refused is None else refused, names, tuple(sorted(narrowed_by)))

    # Filter.

    def run_filter_plugins(self, rows: Rows, *, only_pods_changed: bool = False) -> fwk.Verdicts:
        """Returns the verdicts of all Filters. Each Filter only gets the rows that have passed those before it.

        Arguments:
            only_pods_changed: see `run_filters_with_nominated_pods`.

        Raises:
            PluginError: a plugin raised, or did not return verdicts on these rows.
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
            refused = verdicts.codes != fwk.Code.SUCCESS
            codes[refused if standing is None else standing[refused]] = verdicts.codes[refused]
            reasons += _scattered_reasons(verdicts.reasons, standing, num_rows)
            refused_by.append((name, _scattered(refused, standing, num_rows)))
            kept = np.flatnonzero(~refused)
            standing = kept if standing is None else standing[kept]
            if not len(kept):
                break
            rows = rows.take(kept)
        return fwk.Verdicts(codes, tuple(reasons), tuple(refused_by))

    def run_filters_with_nominated_pods(self, rows: Rows, *, only_pods_changed: bool = False) -> fwk.Verdicts:
        # The nominated pods may never come, and the pod may need them (affinity) as well as conflict with them. So a row that has any
        # must pass with them and without them.
        nominated = self.nominations.changes_for(self.pod, rows)
        if nominated is None:
            return self.run_filter_plugins(rows, only_pods_changed=only_pods_changed)
        first = self.run_filter_plugins(rows.changed(nominated), only_pods_changed=only_pods_changed)
        retried = np.flatnonzero(rows_with_changes(nominated, len(rows)) & first.ok)
        if not len(retried):
            return first
        second = self.run_filter_plugins(rows.take(retried), only_pods_changed=only_pods_changed)
        codes = first.codes.copy()
        codes[retried] = second.codes
        reasons = (*first.reasons, *_scattered_reasons(second.reasons, retried, len(rows)))
        refused_by = first.refused_by + tuple((name, _scattered(mask, retried, len(rows))) for name, mask in second.refused_by)
        return fwk.Verdicts(codes, reasons, refused_by)

    def run_filter_plugin(self, name: str, plugin: fwk.FilterPlugin, rows: Rows) -> fwk.Verdicts:
        """Returns one Filter's verdicts on these rows.

        Raises:
            PluginError: it raised, or did not return verdicts on these rows.
        """
        verdicts = call_plugin(self.observe, name, "Filter", _verdicts, plugin, self, self.pod, rows)
        if not verdicts.all_ok:
            _refuse_unknown_codes(name, verdicts)
        return verdicts

    def feasible_rows(self) -> Rows:
        """Returns the nodes in play that all Filters let pass, nominated pods counted. Results remembered for equal pods are reused.

        Why other nodes do not pass is not found out here; see `run_filters_with_nominated_pods`.

        Raises:
            PluginError: a plugin failed.
        """
        framework, snapshot, within = self.framework, self._snapshot, self.within
        known = None if self.depends_on_devices else self._remembered
        if known is None:
            known = Remembered(snapshot) if self.depends_on_devices else framework.memory.recall(signature_of(self.pod), snapshot)
            self._remembered = known
        framework.evaluations.filtered[self.skip_filter_plugins] += 1
        plan = framework.filter_plan(self.skip_filter_plugins)
        fits = remembered_fits(known, plan, self._passing, snapshot)
        rows = Rows.of(snapshot, within)
        if within is not None:
            fits = fits[within]
        if np.count_nonzero(fits) < len(fits):
            rows = rows.take(fits)
        if plan.others and len(rows):
            passed = self._passing(plan.others, rows)
            if not passed.all():
                rows = rows.take(passed)
        nominated = self.nominations.changes_for(self.pod, rows)
        if nominated is not None:
            # The rows have passed without the nominated pods above. What is left is the check with them.
            rows = rows.take(self.run_filter_plugins(rows.changed(nominated)).ok)
        return rows

    def _passing(self, filters: Filters, rows: Rows) -> Mask:
        """Returns (R,) the rows that these Filters let pass, without reasons."""
        passing = np.ones(len(rows), np.bool_)
        standing: Index | None = None
        for name, plugin in filters:
            verdicts = self.run_filter_plugin(name, plugin, rows)
            if verdicts.all_ok:
                continue
            ok = verdicts.ok
            passing[~ok if standing is None else standing[~ok]] = False
            kept = np.flatnonzero(ok)
            standing = kept if standing is None else standing[kept]
            if not len(kept):
                break
            rows = rows.take(kept)
        return passing

    # PostFilter.

    async def run_post_filter_plugins(self, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        """Runs the PostFilter plugins until one succeeds or answers that the pod cannot be helped.

        Arguments:
            statuses: why each node refused the pod.

        Returns:
            The result of the plugin that succeeded; else the combined refusals, or an Error status.

        Raises:
            PluginError: a plugin raised.
        """
        reasons: list[str] = []
        refuser = ""
        nominated_node: str | None = None
        preemption: fwk.PreemptionOutcome | None = None
        retry_after = math.inf
        for plugin in self.framework.plugins.post_filter:
            try:
                call = partial(_post_filter_result, plugin, self, self.pod, statuses)
                answer = await call_plugin_async(self.observe, plugin.name, "PostFilter", call)
            except PluginError as exc:
                # A plugin whose PreFilter did not run finds no state. Upstream's returns an Error status then, which ends the chain.
                if isinstance(exc.__cause__, fwk.NotFoundError):
                    return fwk.PostFilterResult(fwk.error(exc.why).by(plugin.name), preemption=preemption)
                raise
            status, preemption = answer.status, answer.preemption or preemption
            retry_after = min(retry_after, answer.retry_after)
            if status.is_success:
                return replace(answer, preemption=preemption, plugin=plugin.name)
            if status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return fwk.PostFilterResult(status.by(plugin.name), answer.nominated_node, preemption=preemption)
            if not status.is_rejected:
                failed = fwk.Status(fwk.Code.ERROR, status.reasons, plugin.name)
                return fwk.PostFilterResult(failed, preemption=preemption)
            if answer.nominated_node is not None:
                nominated_node = answer.nominated_node
            reasons += status.reasons
            refuser = refuser or plugin.name
        refused = fwk.Status(fwk.Code.UNSCHEDULABLE, tuple(reasons), refuser)
        return fwk.PostFilterResult(refused, nominated_node, preemption=preemption, retry_after=retry_after)

    # PreScore and Score.

    def run_pre_score_plugins(self, rows: Rows) -> None:
        """Runs every PreScore on the feasible rows.

        Raises:
            PluginError: a plugin raised or answered anything but Success and Skip.
        """
        skipped: set[str] = set()
        known = self._remembered
        spared = known.skip_pre_score if known is not None and self.observe is None else frozenset()
        for plugin in self.framework.plugins.pre_score:
            if plugin.name in spared:
                skipped.add(plugin.name)
                continue
            status = call_plugin(self.observe, plugin.name, "PreScore", _pre_score_status, plugin, self, self.pod, rows)
            if status.is_skip:
                skipped.add(plugin.name)
                if status.for_equal_pods and known is not None:
                    known.skip_pre_score |= {plugin.name}
            elif not status.is_success:
                raise PluginError(plugin.name, "PreScore", status.message)
        evaluations = self.framework.evaluations
        self.skip_score_plugins = evaluations.interned(skipped)
        evaluations.scored[self.skip_score_plugins] += 1

    def run_score_plugins(self, rows: Rows) -> Scores:
        """Returns the scores of every Score plugin that PreScore did not skip.

        Raises:
            PluginError: a plugin raised, or a score is no integer or outside 0..100 after normalising.
        """
        raw: dict[str, Int64s] = {}
        weighted: dict[str, Int64s] = {}
        total = np.zeros(len(rows), np.int64)
        for scorer in self.framework.plugins.score:
            if scorer.name in self.skip_score_plugins:
                continue
            raw[scorer.name] = scores = self._raw_scores(scorer, rows)
            weighted[scorer.name] = self._normalized_scores(scorer, scores) * scorer.weight
            total += weighted[scorer.name]
        return Scores(raw, weighted, total)

    def total_scores(self, rows: Rows) -> Int64s:
        """Returns (R,) the weighted sum of scores for rows that `feasible_rows` returned, after `run_pre_score_plugins`.

        Raises:
            PluginError: a plugin failed.
            RuntimeError: `feasible_rows` was not called in this cycle.
        """
        known, snapshot = self._remembered, self._snapshot
        if known is None:
            raise RuntimeError("feasible_rows comes before total_scores")
        plan = self.framework.score_plan(self.skip_score_plugins)
        total = rows.of_nodes(remembered_sum(known, plan, self._scores_in_range, snapshot))
        for scorer in plan.normalized:
            raw = remembered_raw_scores(known, scorer, partial(self._raw_scores, scorer), snapshot)
            weighted = raw.weighted if rows.is_all and self.observe is None else None
            if weighted is None:
                weighted = self._normalized_scores(scorer, rows.of_nodes(raw.values)) * scorer.weight
                if rows.is_all:
                    raw.weighted = weighted
            total += weighted
        for scorer in plan.others:
            total += self._normalized_scores(scorer, self._raw_scores(scorer, rows)) * scorer.weight
        return total

    def _raw_scores(self, scorer: WeightedScorer, rows: Rows) -> Int64s:
        """Returns (R,) one plugin's scores before normalising."""
        return call_plugin(self.observe, scorer.name, "Score", _scores, scorer.plugin, self, self.pod, rows)

    def _scores_in_range(self, scorer: WeightedScorer, rows: Rows) -> Int64s:
        return in_range(scorer, self._raw_scores(scorer, rows))

    def _normalized_scores(self, scorer: WeightedScorer, scores: Int64s) -> Int64s:
        """Returns (R,) one plugin's scores on the scale 0..100."""
        if not scorer.normalizes:
            return in_range(scorer, scores)
        # Raw scores are shown and remembered, so a plugin that normalises in place must fail.
        raw = scores.view()
        raw.flags.writeable = False
        normalized = call_plugin(self.observe, scorer.name, "ScoreExtensionNormalize", _normalized, scorer.plugin, self, self.pod, raw)
        return in_range(scorer, normalized)


# Results of plugins are checked before they are used, because out-of-tree plugins may not have been checked by mypy. None is Success, as a
# nil status is upstream.


def _pre_filter_result(plugin: fwk.PreFilterPlugin, cycle: Cycle, pod: Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
    result: fwk.PreFilterResult | None = plugin.pre_filter(cycle, pod, snapshot)
    if isinstance(result, fwk.PreFilterResult) and isinstance(result.status, fwk.Status) and result.node_names is None:
        return result  # nearly always; the rest finds the words for what is wrong
    if result is None:
        return fwk.PreFilterResult(fwk.SUCCESS)
    _check_kind(result, fwk.PreFilterResult)
    _check_kind(result.status, fwk.Status)
    if result.node_names is not None:
        _check_kind(result.node_names, frozenset)
    return result


def _verdicts(plugin: fwk.FilterPlugin, cycle: Cycle, pod: Pod, rows: Rows) -> fwk.Verdicts:
    verdicts: fwk.Verdicts | None = plugin.filter(cycle, pod, rows)
    if verdicts is None:
        return fwk.accept(len(rows))
    _check_kind(verdicts, fwk.Verdicts)
    _check_array(verdicts.codes, len(rows), "integers")
    for _, mask in verdicts.reasons:
        _check_array(mask, len(rows), "booleans")
    return verdicts


async def _post_filter_result(plugin: fwk.PostFilterPlugin, cycle: Cycle, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
    result: fwk.PostFilterResult | None = await plugin.post_filter(cycle, pod, statuses)
    if result is None:
        return fwk.PostFilterResult(fwk.SUCCESS)
    _check_kind(result, fwk.PostFilterResult)
    return result


def _pre_score_status(plugin: fwk.PreScorePlugin, cycle: Cycle, pod: Pod, rows: Rows) -> fwk.Status:
    status: fwk.Status | None = plugin.pre_score(cycle, pod, rows)
    if status is None:
        return fwk.SUCCESS
    _check_kind(status, fwk.Status)
    return status


def _scores(plugin: fwk.ScorePlugin, cycle: Cycle, pod: Pod, rows: Rows) -> Int64s:
    return checked_scores(plugin.score(cycle, pod, rows), len(rows))


def _normalized(plugin: fwk.ScorePlugin, cycle: Cycle, pod: Pod, scores: Int64s) -> Int64s:
    normalized: Int64s | None = plugin.normalize_score(cycle, pod, scores)
    return scores if normalized is None else checked_scores(normalized, len(scores))


def _check_kind(answer: object, kind: type) -> None:
    if not isinstance(answer, kind):
        raise TypeError(f"it returned {type(answer).__name__}, not {kind.__name__}")


def _check_array(answer: object, num_rows: int, of: str) -> None:
    wanted = {"integers": "iu", "booleans": "b"}[of]
    if not isinstance(answer, np.ndarray) or answer.shape != (num_rows,) or answer.dtype.kind not in wanted:
        raise TypeError(f"it returned no array of {num_rows} {of}, one a row")


def _scattered_reasons(reasons: Sequence[tuple[str, Mask]], at: Index | None, num_rows: int) -> Sequence[tuple[str, Mask]]:
    """Returns reasons for the rows `at` as reasons for all rows. Reasons that share a mask still do: there may be thousands of them."""
    if at is None:
        return reasons
    masks = {id(mask): mask for _, mask in reasons}
    scattered = {which: _scattered(mask, at, num_rows) for which, mask in masks.items()}
    return [(reason, scattered[id(mask)]) for reason, mask in reasons]


def _scattered(mask: Mask, at: Index | None, num_rows: int) -> Mask:
    """Returns (num_rows,) a mask over the rows `at` as a mask over all rows; `at` is None for all of them."""
    if at is None:
        return mask
    scattered = np.zeros(num_rows, np.bool_)
    scattered[at[mask]] = True
    return scattered


def _refuse_unknown_codes(name: str, verdicts: fwk.Verdicts) -> None:
    """Raises PluginError if a row has a code that a Filter may not return."""
    codes = verdicts.codes
    if codes.dtype == np.int8 and codes.view(np.uint8).max() <= fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE and not (codes == _ERROR).any():
        return  # nearly always: Success and the two refusals are the lowest codes but for Error
    rejected = (codes == fwk.Code.UNSCHEDULABLE) | (codes == fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE) | (codes == fwk.Code.PENDING)
    wrong = np.flatnonzero(~rejected & (codes != fwk.Code.SUCCESS))
    if len(wrong):
        why = ", ".join(verdicts.reasons_of(int(wrong[0]))) or f"it answered code {int(codes[wrong[0]])}"
        raise PluginError(name, "Filter", why)


def _no_node_left(plugins: list[str]) -> fwk.Status:
    if len(plugins) == 1:
        return fwk.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return fwk.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")

"""Framework: the plugins of one profile, in order, and what each answer means for the pod.

Upstream: pkg/scheduler/framework/runtime/framework.go (v1.36.2).
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar, final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.errors import PluginError
from extender.runtime.evaluations import Evaluations
from extender.runtime.memory import REMEMBERED, Memory, remembered_fits, remembered_raw_scores, remembered_sum, signature_of
from extender.runtime.nominations import NO_NOMINATIONS, Nominations, rows_with_changes
from extender.runtime.plans import FilterPlan, Filters, ScorePlan, filter_plan, score_plan
from extender.runtime.scoring import Scores, WeightedScorer, normalized_scores, raw_scores, run_score_plugins
from extender.runtime.timing import timed, timed_wait
from extender.runtime.waiting_pods import WAITING_PODS, WaitingPods
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Index, Int64s, Mask

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class PluginsByPoint:
    """The plugins of a profile at each extension point, in order of execution."""

    queue_sort: fwk.QueueSortPlugin
    pre_enqueue: tuple[fwk.PreEnqueuePlugin, ...] = ()
    pre_filter: tuple[fwk.PreFilterPlugin, ...] = ()
    filter: tuple[tuple[str, fwk.FilterPlugin], ...] = ()
    post_filter: tuple[fwk.PostFilterPlugin, ...] = ()
    pre_score: tuple[fwk.PreScorePlugin, ...] = ()
    score: tuple[WeightedScorer, ...] = ()
    reserve: tuple[fwk.ReservePlugin, ...] = ()
    permit: tuple[fwk.PermitPlugin, ...] = ()
    pre_bind: tuple[fwk.PreBindPlugin, ...] = ()
    bind: tuple[fwk.BindPlugin, ...] = ()
    post_bind: tuple[fwk.PostBindPlugin, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What the PreFilter plugins said together."""

    status: fwk.Status
    node_names: frozenset[str] | None
    """The nodes still in play, None for all of them."""
    narrowed_by: tuple[str, ...]
    """Sorted names of the plugins that narrowed the search."""


@final
class Framework:
    """One profile at work. Its only state is the cycle's view of the cluster, set by `begin_cycle`."""

    def __init__(
        self,
        profile_name: str,
        make_plugins: Callable[[fwk.Handle], PluginsByPoint],
        rng: random.Random,
        *,
        percentage_of_nodes_to_score: int | None = None,
        extenders: Sequence[fwk.PreemptionExtender] = (),
        dispatcher: fwk.Dispatcher | None = None,
        live: fwk.LiveCluster | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        shared: dict[fwk.StateKey[Any], Any] | None = None,
    ) -> None:
        self.profile_name = profile_name
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self._random = rng
        self._extenders = tuple(extenders)
        self._dispatcher = dispatcher
        self._live = live
        self._now = now
        self._shared = {} if shared is None else shared
        self._snapshot: Snapshot | None = None
        self._nominations = NO_NOMINATIONS
        self._memory = Memory()
        self._filter_plans: dict[frozenset[str], FilterPlan] = {}
        self._score_plans: dict[frozenset[str], ScorePlan] = {}
        self._evaluations = Evaluations()
        self.plugins = make_plugins(self)
        self.highest_total = fwk.MAX_NODE_SCORE * sum(abs(scorer.weight) for scorer in self.plugins.score)
        """No weighted sum of scores is above it, or below its negative."""

    # The Handle.

    @property
    def snapshot(self) -> Snapshot:
        """The cluster of this cycle."""
        if self._snapshot is None:
            raise RuntimeError("no cycle has begun")
        return self._snapshot

    @property
    def random(self) -> random.Random:
        """Chance, so that ties can be replayed."""
        return self._random

    @property
    def extenders(self) -> Sequence[fwk.PreemptionExtender]:
        """The HTTP extenders that take part in preemption."""
        return self._extenders

    @property
    def dispatcher(self) -> fwk.Dispatcher | None:
        """Who writes to the API server; None where there is none."""
        return self._dispatcher

    @property
    def live(self) -> fwk.LiveCluster | None:
        """The cluster as it is known now; None where nobody keeps it up to date."""
        return self._live

    @property
    def waiting_pods(self) -> WaitingPods:
        """Pods that are held at Permit, of all profiles."""
        return self.shared(WAITING_PODS, WaitingPods)

    def shared(self, key: fwk.StateKey[T], make: Callable[[], T]) -> T:
        """What the plugins of all profiles have in common."""
        if key not in self._shared:
            self._shared[key] = make()
        value: T = self._shared[key]
        return value

    def now(self) -> datetime:
        """What the clock on the wall says."""
        return self._now()

    def record_event(self, pod: Pod, event_type: fwk.EventType, reason: str, action: str, note: str) -> None:
        """Tell people about the pod, in the name of this profile."""
        if self._dispatcher is not None:
            self._dispatcher.submit(fwk.RecordEvent(fwk.reference_to(pod), event_type, reason, action, note, self.profile_name))

    def begin_cycle(self, snapshot: Snapshot, nominations: Nominations = NO_NOMINATIONS) -> fwk.CycleState:
        """Decide over this snapshot from now on."""
        self._snapshot = snapshot
        self._nominations = nominations
        return fwk.CycleState()

    # PreFilter and Filter.

    def run_pre_filter_plugins(self, state: fwk.CycleState, pod: Pod) -> PreFilterOutcome:
        """Let every PreFilter look at the pod; merge what they say.

        A plugin that says unschedulable does not stop the others (preemption wants to see their state), one that says unresolvable does.

        Raises:
            PluginError: a plugin raised or answered with a code that PreFilter does not know.
        """
        names: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        skipped: set[str] = set()
        refused: fwk.Status | None = None
        observe = state.observe_plugin
        try:
            for plugin in self.plugins.pre_filter:
                try:
                    if observe is None:
                        result = _pre_filtered(plugin, state, pod, self.snapshot)
                    else:
                        result = timed(observe, plugin.name, "PreFilter", _pre_filtered, plugin, state, pod, self.snapshot)
                except Exception as exc:
                    raise PluginError(plugin.name, f'running PreFilter plugin "{plugin.name}": {exc}') from exc
                status = result.status
                if status.is_skip:
                    skipped.add(plugin.name)
                    continue
                if not status.is_success:
                    if status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                        return PreFilterOutcome(status.by(plugin.name), None, ())
                    if status.code is not fwk.Code.UNSCHEDULABLE:
                        raise PluginError(plugin.name, f'running PreFilter plugin "{plugin.name}": {status.message}')
                    refused = status.by(plugin.name)
                    continue
                if result.node_names is not None:
                    names = result.node_names if names is None else names & result.node_names
                    narrowed_by.add(plugin.name)
                    if not names:
                        return PreFilterOutcome(_nothing_left(sorted(narrowed_by)), names, tuple(sorted(narrowed_by)))
        finally:
            state.skip_filter_plugins = self._evaluations.known(skipped)
            self._evaluations.pre_filtered[state.skip_filter_plugins] += 1
        return PreFilterOutcome(fwk.SUCCESS if refused is None else refused, names, tuple(sorted(narrowed_by)))

    def run_filter_plugins(
        self,
        state: fwk.CycleState,
        pod: Pod,
        rows: Rows,
        *,
        again: bool = False,
    ) -> fwk.Verdicts:
        """Narrow the rows plugin by plugin: each sees only the rows that still stand.

        Arguments:
            again: only Filters that look at pods need to run; see `Handle.run_filters_with_nominated_pods`.

        Raises:
            PluginError: a plugin raised, or answered something that is no verdict on these rows.
        """
        codes = np.zeros(len(rows), np.int8)
        reasons: list[tuple[str, Mask]] = []
        refused_by: list[tuple[str, Mask]] = []
        standing: Index | None = None  # which rows still stand; None for all
        left = rows
        for name, plugin in self.plugins.filter:
            if name in state.skip_filter_plugins or (again and not plugin.looks_at_pods):
                continue
            verdicts = self.run_filter_plugin(name, plugin, state, pod, left)
            if verdicts.all_ok:
                continue
            refused = verdicts.codes != fwk.Code.SUCCESS
            codes[refused if standing is None else standing[refused]] = verdicts.codes[refused]
            reasons += [(reason, _scattered(mask, standing, len(rows))) for reason, mask in verdicts.reasons]
            refused_by.append((name, _scattered(refused, standing, len(rows))))
            kept = np.flatnonzero(~refused)
            standing = kept if standing is None else standing[kept]
            if not len(standing):
                break
            left = left.take(kept)
        return fwk.Verdicts(codes, tuple(reasons), tuple(refused_by))

    def run_filters_with_nominated_pods(self, state: fwk.CycleState, pod: Pod, rows: Rows, *, again: bool = False) -> fwk.Verdicts:
        """All Filters, with nominated pods of equal or higher priority on their nodes; such rows must pass without them, too.

        Nothing says that those pods will really come, and a pod may need them (affinity) as well as mind them.

        Upstream: pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods (v1.36.2).
        """
        nominated = self._nominations.changes_for(pod, rows)
        if nominated is None:
            return self.run_filter_plugins(state, pod, rows, again=again)
        first = self.run_filter_plugins(state, pod, rows.changed(nominated), again=again)
        ask_again = np.flatnonzero(rows_with_changes(nominated, len(rows)) & first.ok)
        if not len(ask_again):
            return first
        second = self.run_filter_plugins(state, pod, rows.take(ask_again), again=again)
        codes = first.codes.copy()
        codes[ask_again] = second.codes
        reasons = first.reasons + tuple((reason, _scattered(mask, ask_again, len(rows))) for reason, mask in second.reasons)
        refused_by = first.refused_by + tuple((name, _scattered(mask, ask_again, len(rows))) for name, mask in second.refused_by)
        return fwk.Verdicts(codes, reasons, refused_by)

    def run_filter_plugin(self, name: str, plugin: fwk.FilterPlugin, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Verdicts:
        """One Filter's verdicts on these rows, checked."""
        observe = state.observe_plugin
        try:
            if observe is None:
                verdicts = _filtered(plugin, state, pod, rows)
            else:
                verdicts = timed(observe, name, "Filter", _filtered, plugin, state, pod, rows)
        except Exception as exc:
            raise PluginError(name, f'running "{name}" filter plugin: {exc}') from exc
        if not verdicts.all_ok:
            _refuse_unknown_codes(name, verdicts)
        return verdicts

    def feasible_rows(self, state: fwk.CycleState, pod: Pod, within: Index | None) -> Rows:
        """The nodes that all Filters let pass, nominated pods counted; what is known about equal pods is not asked again.

        Says nothing about why the others do not: ask `run_filters_with_nominated_pods` for that.

        Arguments:
            within: (B,) the places PreFilter left in play, ascending; None for all nodes.

        Raises:
            PluginError: a plugin failed.
        """
        snapshot = self.snapshot
        known = self._memory.recall(state.pod_signature or signature_of(pod), snapshot)
        self._evaluations.filtered[state.skip_filter_plugins] += 1
        plan = self._filter_plans.get(state.skip_filter_plugins)
        if plan is None:
            plan = self._filter_plans[state.skip_filter_plugins] = filter_plan(self.plugins.filter, state.skip_filter_plugins)
        fits = remembered_fits(known, plan, lambda some, stale: self._passing(some, state, pod, stale), snapshot)
        state.write(REMEMBERED, known)
        rows = Rows.of(snapshot, within)
        if within is not None:
            fits = fits[within]
        if not fits.all():
            rows = rows.take(fits)
        if plan.others and len(rows):
            passed = self._passing(plan.others, state, pod, rows)
            if not passed.all():
                rows = rows.take(passed)
        nominated = self._nominations.changes_for(pod, rows)
        if nominated is not None:
            rows = rows.take(self.run_filter_plugins(state, pod, rows.changed(nominated)).ok)
        return rows

    def _passing(self, filters: Filters, state: fwk.CycleState, pod: Pod, rows: Rows) -> Mask:
        """(R,) the rows that these Filters let pass, each asked only about rows that still stand."""
        passing = np.ones(len(rows), np.bool_)
        standing: Index | None = None
        for name, plugin in filters:
            verdicts = self.run_filter_plugin(name, plugin, state, pod, rows)
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

    async def run_post_filter_plugins(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        """Try to make room, plugin by plugin, until one succeeds or says that it cannot be done.

        Returns:
            The result of the plugin that succeeded; else the refusals together, or an Error status.
        """
        reasons: list[str] = []
        refuser = ""
        result: fwk.PostFilterResult | None = None
        for plugin in self.plugins.post_filter:
            try:
                answer = await timed_wait(
                    state.observe_plugin, plugin.name, "PostFilter", partial(plugin.post_filter, state, pod, statuses)
                )
                _check_kind(answer, fwk.PostFilterResult)
                status = answer.status
            except fwk.NotFoundError as exc:
                return fwk.PostFilterResult(fwk.error(str(exc)).by(plugin.name))
            except PluginError:
                raise
            except Exception as exc:
                raise PluginError(plugin.name, f'running PostFilter plugin "{plugin.name}": {exc}') from exc
            if status.is_success:
                return answer
            if status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return fwk.PostFilterResult(status.by(plugin.name), answer.nominated_node)
            if not status.is_rejected:
                return fwk.PostFilterResult(fwk.Status(fwk.Code.ERROR, status.reasons, plugin.name))
            if answer.nominated_node is not None:
                result = answer
            reasons += status.reasons
            refuser = refuser or plugin.name
        refused = fwk.Status(fwk.Code.UNSCHEDULABLE, tuple(reasons), refuser)
        return fwk.PostFilterResult(refused, result.nominated_node if result is not None else None)

    # Scoring.

    def run_pre_score_plugins(self, state: fwk.CycleState, pod: Pod, rows: Rows) -> None:
        """Let every PreScore look at the pod and the feasible rows.

        Raises:
            PluginError: a plugin raised or answered anything but Success and Skip.
        """
        skipped: set[str] = set()
        observe = state.observe_plugin
        for plugin in self.plugins.pre_score:
            try:
                if observe is None:
                    status = _pre_scored(plugin, state, pod, rows)
                else:
                    status = timed(observe, plugin.name, "PreScore", _pre_scored, plugin, state, pod, rows)
            except Exception as exc:
                raise PluginError(plugin.name, f'running PreScore plugin "{plugin.name}": {exc}') from exc
            if status.is_skip:
                skipped.add(plugin.name)
            elif not status.is_success:
                raise PluginError(plugin.name, f'running PreScore plugin "{plugin.name}": {status.message}')
        state.skip_score_plugins = self._evaluations.known(skipped)
        self._evaluations.scored[state.skip_score_plugins] += 1

    def total_scores(self, state: fwk.CycleState, pod: Pod, rows: Rows) -> Int64s:
        """(R,) the weighted sum for rows that `feasible_rows` gave for this pod, in this cycle; `run_pre_score_plugins` comes before.

        Raises:
            PluginError: a plugin failed.
        """
        known, snapshot = state.read(REMEMBERED), self.snapshot
        plan = self._score_plans.get(state.skip_score_plugins)
        if plan is None:
            plan = self._score_plans[state.skip_score_plugins] = score_plan(self.plugins.score, state.skip_score_plugins)
        total = rows.of_nodes(remembered_sum(known, plan.summed, state, pod, snapshot)).copy()
        for scorer in plan.normalized:
            raw = rows.of_nodes(remembered_raw_scores(known, scorer, state, pod, snapshot))
            total += normalized_scores(scorer, state, pod, raw) * scorer.weight
        for scorer in plan.others:
            total += normalized_scores(scorer, state, pod, raw_scores(scorer, state, pod, rows)) * scorer.weight
        return total

    def evaluations(self) -> Counter[tuple[str, str]]:
        """(plugin, extension point) -> in how many attempts it had a say; see `Evaluations`."""
        plugins = self.plugins
        return self._evaluations.by_plugin(
            [plugin.name for plugin in plugins.pre_filter],
            [name for name, _ in plugins.filter],
            [plugin.name for plugin in plugins.pre_score],
            [scorer.name for scorer in plugins.score],
        )

    def run_score_plugins(self, state: fwk.CycleState, pod: Pod, rows: Rows) -> Scores:
        """Score the feasible rows; see `scoring.run_score_plugins`."""
        return run_score_plugins(self.plugins.score, state, pod, rows)


# What plugins answer, looked at before it is used: a stranger's plugin was not checked by mypy.


def _pre_filtered(plugin: fwk.PreFilterPlugin, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
    result = plugin.pre_filter(state, pod, snapshot)
    _check_kind(result, fwk.PreFilterResult)
    _check_kind(result.status, fwk.Status)
    if result.node_names is not None:
        _check_kind(result.node_names, frozenset)
    return result


def _filtered(plugin: fwk.FilterPlugin, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Verdicts:
    verdicts = plugin.filter(state, pod, rows)
    _check_kind(verdicts, fwk.Verdicts)
    _check_array(verdicts.codes, len(rows), "integers")
    for _, mask in verdicts.reasons:
        _check_array(mask, len(rows), "booleans")
    return verdicts


def _pre_scored(plugin: fwk.PreScorePlugin, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Status:
    status = plugin.pre_score(state, pod, rows)
    _check_kind(status, fwk.Status)
    return status


def _check_kind(answer: object, kind: type) -> None:
    if not isinstance(answer, kind):
        raise TypeError(f"it returned {type(answer).__name__}, not {kind.__name__}")


def _check_array(answer: object, num_rows: int, of: str) -> None:
    wanted = {"integers": "iu", "booleans": "b"}[of]
    if not isinstance(answer, np.ndarray) or answer.shape != (num_rows,) or answer.dtype.kind not in wanted:
        raise TypeError(f"it returned no array of {num_rows} {of}, one a row")


def _scattered(mask: Mask, at: Index | None, num_rows: int) -> Mask:
    """A mask over some rows as a mask over all of them."""
    if at is None:
        return mask
    scattered = np.zeros(num_rows, np.bool_)
    scattered[at[mask]] = True
    return scattered


def _refuse_unknown_codes(name: str, verdicts: fwk.Verdicts) -> None:
    codes = verdicts.codes
    rejected = (codes == fwk.Code.UNSCHEDULABLE) | (codes == fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE) | (codes == fwk.Code.PENDING)
    wrong = np.flatnonzero(~rejected & (codes != fwk.Code.SUCCESS))
    if len(wrong):
        message = ", ".join(verdicts.reasons_of(int(wrong[0]))) or f"it answered code {int(codes[wrong[0]])}"
        raise PluginError(name, f'running "{name}" filter plugin: {message}')


def _nothing_left(plugins: list[str]) -> fwk.Status:
    if len(plugins) == 1:
        return fwk.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return fwk.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")


def statuses_by_node(verdicts: fwk.Verdicts, names: Sequence[str], absent: fwk.Status) -> fwk.NodeStatuses:
    """The refused rows by node name, and what holds for all other nodes."""
    refused = np.flatnonzero(verdicts.codes != fwk.Code.SUCCESS)
    told = zip(refused.tolist(), verdicts.statuses_of(refused), strict=True)
    return fwk.NodeStatuses({names[row]: status for row, status in told}, absent)

"""Framework: the plugins of one profile and the state they share between cycles.

`Evaluations` counts in how many attempts each plugin ran (metric plugin_evaluation_total). It counts the sets of
plugins that were skipped, because there are few of them, so that an attempt costs next to nothing.

Upstream: pkg/scheduler/framework/runtime/framework.go, frameworkImpl; framework/runtime/instrumented_plugins.go. The
plugins are run by `extender.engine.runtime.cycle`.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar, final

from extender.engine import framework as fwk
from extender.engine.runtime.memory import FilterPlan, Memory, ScorePlan, filter_plan, score_plan
from extender.engine.runtime.quarantine import unguard
from extender.engine.runtime.scoring import WeightedScorer
from extender.engine.runtime.waiting_pods import WAITING_PODS, WaitingPodsMap
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.grouping import GroupKey, group_of
from extender.values.objects.pod import Pod

UTC_NOW: Final = partial(datetime.now, UTC)


@final
class Evaluations:
    """The number of attempts by the plugins that were skipped at PreFilter and Filter, and at PreScore and Score."""

    def __init__(self) -> None:
        self.pre_filtered: Counter[frozenset[str]] = Counter()
        self.filtered: Counter[frozenset[str]] = Counter()
        self.scored: Counter[frozenset[str]] = Counter()
        self._interned: dict[frozenset[str], frozenset[str]] = {}

    def interned(self, skipped: set[str]) -> frozenset[str]:
        """Returns one object for equal sets of names, so that lookups compare by identity."""
        names = frozenset(skipped)
        return self._interned.setdefault(names, names)


T = TypeVar("T")

_NO_OBJECTS: Final = ClusterObjects()


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
    placement_generate: tuple[fwk.PlacementGeneratePlugin, ...] = ()
    placement_score: tuple[tuple[fwk.PlacementScorePlugin, int], ...] = ()
    advice: Mapping[str, fwk.AdvicePlugin] = field(default_factory=dict)
    """Plugin name -> the plugin, of those that give advice."""
    every: tuple[fwk.Plugin, ...] = ()
    """All of these plugins, each once."""


@final
class Framework:
    """The plugins of one profile, and their Handle. State: the memory of equal pods, and `evaluations`."""

    def __init__(
        self,
        profile_name: str,
        make_plugins: Callable[[fwk.Handle], PluginsByPoint],
        rng: random.Random,
        *,
        percentage_of_nodes_to_score: int | None = None,
        is_exhaustive: bool = False,
        feature_gates: FeatureGates = DEFAULT_FEATURES,
        extenders: Sequence[fwk.PreemptionExtender] = (),
        dispatcher: fwk.Dispatcher | None = None,
        live: fwk.LiveCluster | None = None,
        now: Callable[[], datetime] = UTC_NOW,
        shared: dict[fwk.StateKey[Any], Any] | None = None,
    ) -> None:
        self.profile_name: Final = profile_name
        self.percentage_of_nodes_to_score: Final = percentage_of_nodes_to_score
        self.is_exhaustive: Final = is_exhaustive
        self.feature_gates: Final = feature_gates
        self.memory: Final = Memory()
        self.evaluations: Final = Evaluations()
        # The Handle; see `extender.engine.framework.interface.Handle`.
        self.random: Final = rng
        self.extenders: Final = tuple(extenders)
        self.dispatcher: Final = dispatcher
        self.live = live
        self.now: Final = now
        self._shared = {} if shared is None else shared
        self._has_groups = feature_gates.enabled("GenericWorkload")
        self._filter_plans: dict[frozenset[str], FilterPlan] = {}
        self._score_plans: dict[frozenset[str], ScorePlan] = {}
        self.plugins = make_plugins(self)

    @property
    def objects(self) -> ClusterObjects:
        return _NO_OBJECTS if self.live is None else self.live.objects

    @property
    def waiting_pods(self) -> WaitingPodsMap:
        return self.shared(WAITING_PODS, WaitingPodsMap)

    def shared(self, key: fwk.StateKey[T], make: Callable[[], T]) -> T:
        if key not in self._shared:
            self._shared[key] = make()
        value: T = self._shared[key]
        return value

    def group_of(self, pod: Pod) -> GroupKey | None:
        """Returns the group with which the pod is scheduled; None if it is scheduled by itself."""
        return group_of(pod) if self._has_groups else None

    def record_event(self, pod: Pod, event_type: fwk.EventType, reason: str, action: str, note: str) -> None:
        if self.dispatcher is not None:
            self.dispatcher.submit(
                fwk.RecordEvent(fwk.reference_to(pod), event_type, reason, action, note, self.profile_name)
            )

    def close(self) -> None:
        """Releases plugins and cluster at the end of a question: plugins and their framework refer to each other, so
        that only the garbage collector would free them.
        """
        plugins = self.plugins
        for plugin in (
            *plugins.every,
            *(plugin for _, plugin in plugins.filter),
            *(scorer.plugin for scorer in plugins.score),
        ):
            unguard(plugin)
        del self.plugins
        self._filter_plans.clear()
        self._score_plans.clear()
        self.live = None
        self._shared.clear()
        self.memory.forget()

    # For cycles.

    def filter_plan(self, skipped: frozenset[str]) -> FilterPlan:
        plan = self._filter_plans.get(skipped)
        if plan is None:
            plan = self._filter_plans[skipped] = filter_plan(self.plugins.filter, skipped)
        return plan

    def score_plan(self, skipped: frozenset[str]) -> ScorePlan:
        plan = self._score_plans.get(skipped)
        if plan is None:
            plan = self._score_plans[skipped] = score_plan(self.plugins.score, skipped)
        return plan

    def evaluation_counts(self) -> Counter[tuple[str, str]]:
        """Returns (plugin, extension point) -> the number of attempts in which the plugin was evaluated.

        A PreFilter that comes after one that refused a pod for good is counted, though it did not run.
        """
        plugins, evaluations = self.plugins, self.evaluations
        counts: Counter[tuple[str, str]] = Counter()
        for point, names, attempts in (
            ("PreFilter", [plugin.name for plugin in plugins.pre_filter], evaluations.pre_filtered),
            ("Filter", [name for name, _ in plugins.filter], evaluations.filtered),
            ("PreScore", [plugin.name for plugin in plugins.pre_score], evaluations.scored),
            ("Score", [scorer.name for scorer in plugins.score], evaluations.scored),
        ):
            for skipped, times in attempts.items():
                for name in names:
                    if name not in skipped:
                        counts[name, point] += times
        return counts


@contextmanager
def closed_at_the_end(frameworks: Mapping[str, Framework]) -> Iterator[None]:
    try:
        yield
    finally:
        for framework in frameworks.values():
            framework.close()

"""Frameworks of just the plugins under test, the verbs over a cluster, and the answers of one plugin."""

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.framework import (
    CycleState,
    EachNodeFilterPlugin,
    EachNodeScorePlugin,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from extender.engine.plugins import IN_TREE
from extender.engine.plugins.queueing import PrioritySort
from extender.engine.reporter import NO_REPORTER, Reporter
from extender.engine.runtime.each_node import EachNodeFilter, EachNodeScore
from extender.engine.runtime.framework import Framework, PluginsByPoint
from extender.engine.runtime.registry import Registry
from extender.engine.runtime.scoring import WeightedScorer
from extender.engine.snapshot import Rows, Snapshot
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.objects.cluster import ClusterState
from extender.values.objects.pod import Pod
from extender.verbs import Verbs

P = TypeVar("P", bound=fwk.Plugin)


def make_framework(
    *plugins: fwk.Plugin | Callable[[Any, fwk.Handle], fwk.Plugin],
    weights: Mapping[str, int] | None = None,
    seed: int = 0,
    percentage_of_nodes_to_score: int | None = None,
    extenders: Sequence[fwk.PreemptionExtender] = (),
    dispatcher: fwk.Dispatcher | None = None,
    live: fwk.LiveCluster | None = None,
    now: Callable[[], datetime] = lambda: datetime(2026, 1, 1, tzinfo=UTC),
    shared: dict[fwk.StateKey[Any], Any] | None = None,
    features: FeatureGates | Mapping[str, bool] | None = None,
) -> Framework:
    """Returns a profile with these plugins in this order, each at every extension point that it implements.

    A class (or a function that makes a plugin) is called with no arguments and the framework as its handle; an object
    is taken as it is. Weights are by name of the Score plugin, 1 if missing; `dispatcher` and `live` are for plugins
    that write; `features` are gates that have other values than by default.
    """

    # The framework is the plugins' handle, so that they are made by its constructor.
    def make_plugins(handle: fwk.Handle) -> PluginsByPoint:
        instances = [plugin if isinstance(plugin, fwk.Plugin) else plugin(None, handle) for plugin in plugins]
        return _by_point(instances, weights or {})

    return Framework(
        "default-scheduler",
        make_plugins,
        random.Random(seed),
        feature_gates=features if isinstance(features, FeatureGates) else FeatureGates.of(features or {}),
        percentage_of_nodes_to_score=percentage_of_nodes_to_score,
        extenders=extenders,
        dispatcher=dispatcher,
        live=live,
        now=now,
        shared=shared,
    )


def _by_point(plugins: Sequence[fwk.Plugin], weights: Mapping[str, int]) -> PluginsByPoint:
    """Returns each plugin at every extension point whose contract it fulfils."""

    def at(kind: type[P]) -> tuple[P, ...]:
        return tuple(plugin for plugin in plugins if isinstance(plugin, kind))

    filters: list[tuple[str, fwk.FilterPlugin]] = []
    scorers: list[WeightedScorer] = []
    for plugin in plugins:
        # Plugins that look at one node at a time are wrapped, as the Registry does it.
        if isinstance(plugin, fwk.FilterPlugin):
            filters.append((plugin.name, plugin))
        elif isinstance(plugin, fwk.EachNodeFilterPlugin):
            filters.append((plugin.name, EachNodeFilter(plugin)))
        if isinstance(plugin, fwk.ScorePlugin):
            scorers.append(WeightedScorer(plugin.name, plugin, weights.get(plugin.name, 1)))
        elif isinstance(plugin, fwk.EachNodeScorePlugin):
            scorers.append(WeightedScorer(plugin.name, EachNodeScore(plugin), weights.get(plugin.name, 1)))
    return PluginsByPoint(
        queue_sort=next(iter(at(fwk.QueueSortPlugin)), PrioritySort()),
        pre_enqueue=at(fwk.PreEnqueuePlugin),
        pre_filter=at(fwk.PreFilterPlugin),
        filter=tuple(filters),
        post_filter=at(fwk.PostFilterPlugin),
        pre_score=at(fwk.PreScorePlugin),
        score=tuple(scorers),
        reserve=at(fwk.ReservePlugin),
        permit=at(fwk.PermitPlugin),
        pre_bind=at(fwk.PreBindPlugin),
        bind=at(fwk.BindPlugin),
        post_bind=at(fwk.PostBindPlugin),
        advice={plugin.name: plugin for plugin in at(fwk.AdvicePlugin)},
        every=tuple(plugins),
    )


def make_verbs(
    cluster: Cluster | ClusterState,
    configuration: Configuration | None = None,
    *,
    dispatcher: fwk.Dispatcher | None = None,
    reporter: Reporter = NO_REPORTER,
) -> Verbs:
    """Returns the verbs over a cluster, as kube-scheduler calls them, with in-tree plugins."""
    target = cluster if isinstance(cluster, Cluster) else Cluster.of(cluster)
    frameworks = Registry(IN_TREE).make_frameworks(
        configuration or Configuration(), random.Random(), dispatcher=dispatcher, live=target.cache
    )
    return Verbs(frameworks, target, dispatcher=dispatcher, reporter=reporter)


def filter_nodes(plugin: FilterPlugin | EachNodeFilterPlugin, snapshot: Snapshot, pod: Pod) -> dict[str, Status]:
    """Returns node -> the Filter's status, or the status of its PreFilter where that skips or refuses."""
    state = CycleState()
    if isinstance(plugin, PreFilterPlugin):
        status = plugin.pre_filter(state, pod, snapshot).status
        if not status.is_success:
            return dict.fromkeys(snapshot.nodes.index, status)
    rows = Rows.of(snapshot)
    on_rows = EachNodeFilter(plugin) if isinstance(plugin, EachNodeFilterPlugin) else plugin
    verdicts = on_rows.filter(state, pod, rows)
    return {name: verdicts.status_of(row) for row, name in enumerate(rows.names)}


def refusals(plugin: FilterPlugin | EachNodeFilterPlugin, snapshot: Snapshot, pod: Pod) -> dict[str, str]:
    """Returns node -> why the Filter refuses it; nodes that pass are left out."""
    return {name: status.message for name, status in filter_nodes(plugin, snapshot, pod).items() if status.is_rejected}


def score_nodes(plugin: ScorePlugin | EachNodeScorePlugin, snapshot: Snapshot, pod: Pod) -> dict[str, int]:
    """Returns node -> its score from 0 to 100, not weighted; nothing when PreScore skips the pod."""
    state, rows = CycleState(), Rows.of(snapshot)
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(state, pod, rows)
        if status is not None and status.is_skip:
            return {}
        if status is not None and not status.is_success:
            raise AssertionError(f"PreScore of {plugin.name}: {status.code} [{status.message}]")
    on_rows = EachNodeScore(plugin) if isinstance(plugin, EachNodeScorePlugin) else plugin
    scores = on_rows.normalize_score(state, pod, on_rows.score(state, pod, rows))
    return dict(zip(rows.names, scores.tolist(), strict=True))

"""Plugins from outside the tree that fail or overrun again and again are not called for a while."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.framework.devices import LongWork
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.quarantine import MOST_FAILURES, QUARANTINES, Quarantines
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.testing import make_node, make_pod, make_snapshot
from extender.values import limits
from extender.values.config.loading import load
from extender.values.objects.cluster import ClusterState
from tests.kit.tables import cases

SNAPSHOT = make_snapshot(*(make_node(name).capacity(cpu=8, pods=110) for name in "ab"))
POD = make_pod("p").obj()
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Unreliable(fwk.FilterPlugin, fwk.ScorePlugin):
    """Does what it is told by `behaviour`."""

    behaviour: Callable[[], Any] = staticmethod(lambda: None)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: Rows) -> fwk.Verdicts:
        type(self).behaviour()
        return fwk.accept(len(rows))

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: Rows) -> Int64s:
        return np.full(len(rows), 7, np.int64)


class Slow(fwk.EachNodeFilterPlugin):
    """Waits at each node."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> fwk.Status:
        time.sleep(0.3)
        return fwk.unschedulable("slowly refused") if node.name == "a" else fwk.SUCCESS


def raises() -> None:
    raise ValueError("no service")


def framework_of(
    plugin: type[fwk.Plugin], now: Callable[[], datetime] = lambda: BEGIN, *, may_defer: bool = False
) -> Framework:
    enabled = f"{{enabled: [{{name: {plugin.__name__}}}]}}"
    point = "postFilter" if issubclass(plugin, fwk.PostFilterPlugin) else "filter"
    configuration = load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        f"- plugins: {{{point}: {enabled}, {f'score: {enabled}' if issubclass(plugin, fwk.ScorePlugin) else ''}}}\n"
    )
    registry = Registry(IN_TREE, [], also={plugin.__name__: plugin})
    live = Cluster.of(ClusterState()).cache
    (framework,) = registry.make_frameworks(
        configuration, random.Random(0), live=live, now=now, may_defer=may_defer
    ).values()
    return framework


def filtered(framework: Framework) -> str:
    """The outcome of the profile's Filters: the error, or nothing."""
    try:
        cycle = Cycle(framework, SNAPSHOT, POD)
        cycle.run_pre_filter_plugins()
        cycle.run_filter_plugins(Rows.of(SNAPSHOT))
    except PluginError as exc:
        return str(exc)
    return ""


def quarantines(framework: Framework) -> Quarantines:
    return framework.shared(QUARANTINES, lambda: Quarantines(framework.now))


@pytest.fixture
def behaviour(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    return lambda value: monkeypatch.setattr(Unreliable, "behaviour", staticmethod(value))


@cases(
    "bad, seconds, last",
    ("it raises", raises, 600.0, "filter: no service"),
    ("it overruns", lambda: time.sleep(0.05), 0.02, "s, more than 0.02 s"),
)
def test_a_plugin_that_fails_again_and_again_is_not_called(
    behaviour: Callable[[Callable[[], Any]], None],
    monkeypatch: pytest.MonkeyPatch,
    bad: Callable[[], Any],
    seconds: float,
    last: str,
) -> None:
    """Attempts fail while it is not called, since a pod must not be placed where the plugin might refuse it."""
    monkeypatch.setattr(limits, "PLUGIN_SECONDS", seconds)
    framework = framework_of(Unreliable)
    behaviour(bad)
    for _ in range(MOST_FAILURES):
        filtered(framework)

    behaviour(lambda: pytest.fail("it is called"))

    assert filtered(framework).startswith(
        'running "Unreliable" filter plugin: the plugin is quarantined until 00:00:10, because 5 calls in a row'
    )
    assert quarantines(framework).reasons()[0].startswith("Unreliable: the plugin is quarantined until 00:00:10")
    assert last in quarantines(framework).of("Unreliable").last_failure


def test_failures_of_decisions_that_ask_for_no_reasons_count(behaviour: Callable[[Callable[[], Any]], None]) -> None:
    framework = framework_of(Unreliable)
    behaviour(raises)

    for _ in range(MOST_FAILURES):
        cycle = Cycle(framework, SNAPSHOT, POD)
        cycle.run_pre_filter_plugins()
        with pytest.raises(PluginError):
            cycle.feasible_rows()

    assert quarantines(framework).reasons()[0].startswith("Unreliable: the plugin is quarantined until 00:00:10")


def test_its_scores_are_left_out(behaviour: Callable[[Callable[[], Any]], None]) -> None:
    framework = framework_of(Unreliable)
    scorer = next(scorer for scorer in framework.plugins.score if scorer.name == "Unreliable").plugin
    rows, state = Rows.of(SNAPSHOT), fwk.CycleState()
    assert scorer.score(state, POD, rows).tolist() == [7, 7]
    behaviour(raises)

    for _ in range(MOST_FAILURES):
        filtered(framework)

    assert scorer.score(state, POD, rows).tolist() == [0, 0]


def test_pauses_double_until_a_call_succeeds(behaviour: Callable[[Callable[[], Any]], None]) -> None:
    """After a pause one call is tried. If it fails, the next pause is twice as long; if it succeeds, all is as at the
    beginning.
    """
    now = [BEGIN]
    framework = framework_of(Unreliable, lambda: now[0])
    behaviour(raises)
    for _ in range(MOST_FAILURES):
        filtered(framework)

    now[0] += timedelta(seconds=10)
    assert filtered(framework).startswith('running "Unreliable" filter plugin: no service (ValueError, ')
    now[0] += timedelta(seconds=19)
    assert "quarantined" in filtered(framework)
    now[0] += timedelta(seconds=1)
    behaviour(lambda: None)
    assert filtered(framework) == ""
    behaviour(raises)
    assert filtered(framework).startswith('running "Unreliable" filter plugin: no service (ValueError, ')
    assert quarantines(framework).reasons() == []
    assert quarantines(framework).of("Unreliable").times == 2


def test_a_success_between_failures_keeps_it_in(behaviour: Callable[[Callable[[], Any]], None]) -> None:
    """A tenant whose pods make a plugin fail cannot have it quarantined while it works for the pods of others."""
    framework = framework_of(Unreliable)
    for _ in range(3 * MOST_FAILURES):
        behaviour(raises)
        filtered(framework)
        behaviour(lambda: None)
        assert filtered(framework) == ""


def test_in_tree_plugins_are_never_quarantined() -> None:
    assert set(quarantines(framework_of(Unreliable)).by_plugin) == {"Unreliable"}


class Thorough(fwk.PostFilterPlugin):
    """Always has long work to do."""

    async def post_filter(
        self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses
    ) -> fwk.PostFilterResult:
        raise LongWork(lambda is_wanted: None)


def test_a_plugin_may_put_off_what_it_does_for_a_pod_that_fits_nowhere() -> None:
    framework = framework_of(Thorough, may_defer=True)

    for _ in range(MOST_FAILURES):
        cycle = Cycle(framework, SNAPSHOT, POD)
        cycle.run_pre_filter_plugins()
        with pytest.raises(LongWork):
            asyncio.run(run_post_filter_plugins(cycle, fwk.NodeStatuses(absent=fwk.unresolvable("no"))))

    assert not quarantines(framework).reasons()


def test_a_plugin_that_looks_at_one_node_at_a_time_is_stopped_between_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take a millisecond a node beside the time of any other plugin."""
    monkeypatch.setattr(limits, "PLUGIN_SECONDS", 0.1)

    message = "it took longer than 0.102 s for 2 nodes, at node a"
    assert filtered(framework_of(Slow)) == f'running "Slow" filter plugin: {message}'


class Promising(fwk.EachNodeFilterPlugin):
    """Promises what the contract had once."""

    blocking = True
    deadline = 7.0

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> fwk.Status:
        return fwk.SUCCESS


def test_promises_that_the_contract_no_longer_has_are_ignored_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        outcomes = [filtered(framework_of(Promising)) for _ in range(2)]

    assert outcomes == ["", ""]
    assert caplog.text.count("Ignoring promises that the contract of plugins no longer has") == 1
    assert 'plugin="Promising" promises=["deadline","blocking"]' in caplog.text

"""What one plugin answers for every node of a snapshot, by node name: for tests that read like tables."""

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
from extender.engine.runtime.each_node import EachNodeFilter, EachNodeScore
from extender.engine.snapshot import Rows, Snapshot
from extender.values.objects.pod import Pod


def filter_nodes(plugin: FilterPlugin | EachNodeFilterPlugin, snapshot: Snapshot, pod: Pod) -> dict[str, Status]:
    """Returns node -> the Filter's status, after its PreFilter. Where PreFilter skips or refuses, its status is that of
    every node.
    """
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
    """Returns node -> its score from 0 to 100, not weighted; nothing when PreScore skips the pod.

    Raises:
        AssertionError: PreScore failed.
    """
    state, rows = CycleState(), Rows.of(snapshot)
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(state, pod, rows)
        if status.is_skip:
            return {}
        if not status.is_success:
            raise AssertionError(f"PreScore of {plugin.name}: {status.code} [{status.message}]")
    on_rows = EachNodeScore(plugin) if isinstance(plugin, EachNodeScorePlugin) else plugin
    scores = on_rows.normalize_score(state, pod, on_rows.score(state, pod, rows))
    return dict(zip(rows.names, scores.tolist(), strict=True))

"""Which plugins run for a pod, sorted by what they look at: worked out once for each set of plugins that a pod lets skip."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from extender import framework as fwk
from extender.runtime.scoring import WeightedScorer

Filters = tuple[tuple[str, fwk.FilterPlugin], ...]
Scorers = tuple[WeightedScorer, ...]


@final
@dataclass(frozen=True, slots=True)
class FilterPlan:
    """The Filters of a pod."""

    of_nodes: Filters
    """Those that look only at a node, and at none of its pods."""
    of_pods: Filters
    """Those that look only at a node and its pods."""
    others: Filters
    """Those that look further."""


@final
@dataclass(frozen=True, slots=True)
class ScorePlan:
    """The Score plugins of a pod."""

    summed: Scorers
    """Those that look only at a node, and whose scores need no normalising."""
    normalized: Scorers
    """Those that look only at a node, and whose scores are normalised over the feasible nodes."""
    others: Scorers
    """Those that look further."""


def filter_plan(filters: Filters, skipped: frozenset[str]) -> FilterPlan:
    """Sort the Filters that are not skipped."""
    running = [(name, plugin) for name, plugin in filters if name not in skipped]
    return FilterPlan(
        of_nodes=tuple((name, plugin) for name, plugin in running if plugin.looks_only_at_node and not plugin.looks_at_pods),
        of_pods=tuple((name, plugin) for name, plugin in running if plugin.looks_only_at_node and plugin.looks_at_pods),
        others=tuple((name, plugin) for name, plugin in running if not plugin.looks_only_at_node),
    )


def score_plan(scorers: Sequence[WeightedScorer], skipped: frozenset[str]) -> ScorePlan:
    """Sort the Score plugins that are not skipped."""
    running = [scorer for scorer in scorers if scorer.name not in skipped]
    local = [scorer for scorer in running if scorer.plugin.looks_only_at_node]
    return ScorePlan(
        summed=tuple(scorer for scorer in local if not scorer.normalizes),
        normalized=tuple(scorer for scorer in local if scorer.normalizes),
        others=tuple(scorer for scorer in running if not scorer.plugin.looks_only_at_node),
    )

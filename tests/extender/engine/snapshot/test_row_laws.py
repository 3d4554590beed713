"""Every in-tree Filter keeps the laws of `FilterPlugin`, and the check finds a Filter that breaks them."""

import random
from typing import final

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.testing import check_filter, make_node, make_pod, make_snapshot, random_cluster
from tests.kit.examples import examples
from tests.kit.random_storage import random_cluster_with_volumes

FILTERS = {name: plugin for name, plugin in IN_TREE.items() if issubclass(plugin, fwk.FilterPlugin)}


@pytest.mark.parametrize("name", FILTERS)
@settings(deadline=None, max_examples=examples(60))
@given(chance=st.randoms(use_true_random=False))
def test_in_tree_filters_keep_the_laws(name: str, chance: random.Random) -> None:
    """A row is an honest hypothesis, rows do not talk, and what is said without reasons is what is said with them."""
    plugin, cluster = FILTERS[name](), random_cluster(chance)
    assert isinstance(plugin, fwk.FilterPlugin)

    check_filter(plugin, cluster.snapshot(), cluster.pod, chance, arrivals=cluster.arrivals)


@pytest.mark.parametrize("name", ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"])
@settings(deadline=None, max_examples=examples(100))
@given(seed=st.integers(0, 2**32))
def test_filters_of_volumes_keep_the_laws_where_there_are_volumes(name: str, seed: int) -> None:
    """Upstream counts on no two running pods having one ReadWriteOncePod claim; where two have, its hypotheses are not
    quite honest.
    """
    chance = random.Random(seed)
    plugin, cluster = FILTERS[name](), random_cluster_with_volumes(chance)
    assert isinstance(plugin, fwk.FilterPlugin)

    check_filter(plugin, cluster.snapshot(), cluster.pod, chance, arrivals=cluster.arrivals)


@final
class ReadsTheSnapshot(fwk.FilterPlugin):
    """Counts the pods of the snapshot, where it should count those of the row."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.snapshot.nodes.pod_count[rows.node] > 0, "crowded")


@final
class CountsRows(fwk.FilterPlugin):
    """Refuses whoever comes first."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(np.arange(len(rows)) == 0, "first")


@final
class PromisesTooMuch(fwk.FilterPlugin):
    """Says that it does not look at pods, but does."""

    looks_at_pods = False

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.pod_count > 0, "crowded")


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (ReadsTheSnapshot(), "law 1, a row is an honest hypothesis"),
        (CountsRows(), "law 2, rows do not talk"),
        (PromisesTooMuch(), "looks_at_pods is False"),
    ],
)
def test_a_filter_that_breaks_a_law_is_found_out(plugin: fwk.FilterPlugin, law: str) -> None:
    snapshot = make_snapshot(make_node("n1"), make_node("n2"), pods=[make_pod("r").node("n1")])

    with pytest.raises(AssertionError, match=law):
        for seed in range(50):
            check_filter(plugin, snapshot, make_pod().obj(), random.Random(seed), arrivals=[make_pod("a").obj()])

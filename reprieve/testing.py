"""The test kit of plugin authors: builders for objects and snapshots, random clusters, and the laws of Filters."""

from extender.testing.builders import (
    NodeBuilder,
    PodBuilder,
    label_term,
    make_cache,
    make_node,
    make_pod,
    make_pod_group,
    make_snapshot,
    name_term,
)
from extender.testing.frameworks import filter_nodes, make_framework, make_verbs, refusals, score_nodes
from extender.testing.laws import RandomCluster, check_filter, random_cluster
from extender.values.concurrency import virtual_time

__all__ = [
    "NodeBuilder", "PodBuilder", "RandomCluster", "check_filter", "filter_nodes", "label_term", "make_cache",
    "make_framework", "make_node", "make_pod", "make_pod_group", "make_snapshot", "make_verbs", "name_term",
    "random_cluster", "refusals", "score_nodes", "virtual_time",
]  # fmt: skip

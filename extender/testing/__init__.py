"""The test kit: builders for objects and snapshots, random clusters, and the laws of Filters.

It serves this project's tests and those of plugin authors; the engine does not import it. Nothing is mocked in here:
clusters are built through the real `Cache`.
"""

from extender.testing.builders import (
    NodeBuilder as NodeBuilder,
    PodBuilder as PodBuilder,
    label_term as label_term,
    make_cache as make_cache,
    make_node as make_node,
    make_pod as make_pod,
    make_pod_group as make_pod_group,
    make_snapshot as make_snapshot,
    name_term as name_term,
)
from extender.testing.frameworks import (
    filter_nodes as filter_nodes,
    make_framework as make_framework,
    make_verbs as make_verbs,
    refusals as refusals,
    score_nodes as score_nodes,
)
from extender.testing.laws import check_filter as check_filter
from extender.testing.random_clusters import (
    RandomCluster as RandomCluster,
    random_cluster as random_cluster,
    random_cluster_with_volumes as random_cluster_with_volumes,
)
from extender.values.concurrency import virtual_time as virtual_time

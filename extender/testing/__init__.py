"""The test kit: builders for objects and snapshots, random clusters, and the laws of Filters.

It serves this project's tests and those of plugin authors; the engine does not import it. Nothing is mocked in here:
clusters are built through the real `Cache`.
"""

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
from extender.testing.frameworks import (
    filter_nodes,
    make_framework,
    make_verbs,
    refusals,
    score_nodes,
)
from extender.testing.laws import RandomCluster, check_filter, random_cluster
from extender.values.concurrency import virtual_time

"""Clusters without anybody at work in them: an API server's registry, and what the engine has of one."""

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from extender.engine.cache.cluster import Cluster
from extender.rules.api_resources import NAMESPACES
from extender.testing import NodeBuilder, PodBuilder
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.objects.cluster import ClusterState
from extender.values.objects.pod import Pod
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.store.object_store import ObjectStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_registry(
    *namespaces: str,
    store: ObjectStore | None = None,
    now: Callable[[], datetime] = lambda: NOW,
    seed: int = 1,
    features: FeatureGates = DEFAULT_FEATURES,
) -> ObjectRegistry:
    """An API server's registry with these namespaces, where time stands still and no controller is at work."""
    registry = ObjectRegistry(store or ObjectStore(), now=now, rng=random.Random(seed), features=features)
    for name in namespaces:
        registry.create(NAMESPACES, "", {"metadata": {"name": name}})
    return registry


def cluster_of(*nodes: NodeBuilder, pods: Iterable[PodBuilder | Pod] = (), **other_lists: Any) -> Cluster:
    """What the engine has of a cluster with these nodes and pods; `other_lists` are lists of other kinds."""
    pod_objects = [pod.obj() if isinstance(pod, PodBuilder) else pod for pod in pods]
    return Cluster.of(ClusterState(nodes=[node.obj() for node in nodes], pods=pod_objects, **other_lists))

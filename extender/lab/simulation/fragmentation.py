"""Fragmentation: how much of what is free the pods of a workload cannot use.

It is the measure of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), for every resource: what is free on a
node is a fragment for a pod that the node refuses, and for a pod that requests none of it; shapes of pods count by how
often they arrive. The paper looks at each GPU of a node by itself; here a node has one amount of a resource, as the
scheduler sees it. A node refuses what the real Filters refuse.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from extender.engine.cache import Cache
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Mask
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import requested_amounts
from extender.values.objects.resource_names import EPHEMERAL_STORAGE

SHAPES: Final = 128
"""The number of shapes that are looked at: those that arrive most often."""


def fragmentation(
    frameworks: Mapping[str, Framework], cache: Cache, shapes: Iterable[tuple[Pod, int]]
) -> dict[str, float]:
    """Returns resource -> the part of what is free that an average pod cannot use. Resources of which nothing is free
    are left out.

    Arguments:
        frameworks: by scheduler name; those of the scheduler remember results for its own decisions, so that others are
            passed here.
        shapes: a pod of each shape, and how often it arrives.
    """
    snapshot = cache.update_snapshot()
    # (N, K): a node may be overcommitted by pods that were bound to it before.
    free = np.maximum(snapshot.nodes.allocatable - snapshot.nodes.requested, 0)
    total = free.sum(axis=0).astype(np.float64)
    wasted = np.zeros_like(total)
    pods = 0
    for pod, count in shapes:
        usable = free[_nodes_that_take(frameworks, snapshot, pod)].sum(axis=0)
        asked = requested_amounts(pod)
        asks = np.fromiter((asked.get(name, 0) > 0 for name in snapshot.resources), np.bool_, len(snapshot.resources))[
            : len(total)
        ]
        wasted += count * np.where(asks, total - usable, total)
        pods += count
    if not pods:
        return {}
    names = list(snapshot.resources)[: len(total)]
    return {
        name: float(wasted[place] / pods / total[place])
        for place, name in enumerate(names)
        if total[place] and name != EPHEMERAL_STORAGE
    }


def _nodes_that_take(frameworks: Mapping[str, Framework], snapshot: Snapshot, pod: Pod) -> Mask:
    """(N,) the nodes that all Filters let pass; none if the pod cannot be judged."""
    takes = np.zeros(len(snapshot.nodes), np.bool_)
    framework = frameworks.get(pod.scheduler_name)
    if framework is None:
        return takes
    cycle = Cycle(framework, snapshot, pod)
    try:
        if cycle.run_pre_filter_plugins().status.is_success:
            takes[cycle.feasible_rows().node] = True
    except PluginError:
        takes[:] = False  # the scheduler refuses such a pod, too
    return takes

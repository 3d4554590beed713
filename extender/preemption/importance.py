"""Which pods matter more: the order in which victims are reprieved and listed.

Upstream: pkg/scheduler/util/utils.go, MoreImportantPod (v1.36): higher priority first, then the one that started earlier; a pod without a
start time started "now". Full ties stay in the order of the node's pods.
"""

import numpy as np

from extender.snapshot import Snapshot
from extender.snapshot.axes import Index


def by_importance(snapshot: Snapshot, slots: Index, group: Index) -> Index:
    """(C,) the order that sorts pods by group, and inside a group most important first.

    Arguments:
        slots: (C,) pod slots.
        group: (C,) a number per pod, such as its row.
    """
    pods = snapshot.pods
    return np.lexsort((pods.position[slots], pods.start_time[slots], -pods.priority[slots], group))

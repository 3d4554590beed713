"""Which pods go first when there are too many: those that are missed least.

Upstream: pkg/controller/controller_utils.go, ActivePodsWithRanks; pkg/controller/replicaset/replica_set.go, getPodsToDelete (v1.36.2).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from extender.embedded.controllers.conditions import condition, seconds_since
from extender.embedded.controllers.seen import SeenPod
from extender.workloads.scale_down import DELETION_COST, deletion_rank

_NEVER: Final = -1


def pods_to_delete(pods: Iterable[SeenPod], related: Iterable[SeenPod], count: int, now: datetime) -> Sequence[SeenPod]:
    """The `count` pods to delete.

    Arguments:
        pods: active pods of the controller.
        related: active pods of it and of its siblings under the same Deployment: crowded nodes are thinned out first.
    """
    candidates = list(pods)
    if count >= len(candidates):
        return candidates
    crowd = Counter(pod.node for pod in related if pod.node)
    candidates.sort(key=lambda pod: _rank(pod, crowd[pod.node], now))
    return candidates[:count]


def _rank(pod: SeenPod, neighbours: int, now: datetime) -> tuple[Any, ...]:
    """Smaller goes first."""
    content = pod.content()
    status = content.get("status") or {}
    ready = condition(status.get("conditions"), "Ready") if pod.is_ready else None
    restarts = max((each.get("restartCount") or 0 for each in status.get("containerStatuses") or ()), default=0)
    cost = (content["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    return (
        *deletion_rank(node=pod.node, phase=pod.phase, is_ready=pod.is_ready, cost=cost, neighbours=neighbours),
        _age_class(None if ready is None else ready.get("lastTransitionTime"), now),
        -restarts,
        _age_class(pod.created, now),
        pod.uid,
    )


def _age_class(since: str | None, now: datetime) -> int:
    """The order of magnitude of an age, by powers of two, so that not always the youngest go. Upstream: logarithmicRankDiff."""
    seconds = seconds_since(since, now)
    if seconds is None:
        return _NEVER
    return 0 if seconds < 1e-9 else max(0, int(math.log2(seconds * 1e9)))

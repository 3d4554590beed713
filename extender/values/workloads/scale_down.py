"""Which pods go first when a controller has too many.

Upstream: pkg/controller/controller_utils.go, ActivePodsWithRanks; pkg/controller/replicaset/replica_set.go,
getPodsToDelete (v1.36.2).
"""

from typing import Final

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def deletion_rank(
    *, node: str, phase: str, is_ready: bool, cost: str, neighbours: int
) -> tuple[bool, int, bool, int, int]:
    """Returns a sort key: pods with a smaller one go first. Ages and restarts, which upstream compares last, are left
    to the caller.

    Arguments:
        node: where the pod is; empty if it has no node.
        cost: the value of the annotation DELETION_COST; one that is not a number counts as 0.
        neighbours: how many pods of the controller and of its siblings are on the node: crowded nodes are thinned out
            first.
    """
    return bool(node), _PHASES.get(phase, 0), is_ready, _number(cost), -neighbours


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0

"""How many pods of a workload may be missing, or be there too many, by the arithmetic of maxSurge, maxUnavailable and
minAvailable; and which pods go first when there are too many.

Upstream: apimachinery/pkg/util/intstr; pkg/controller, deployment/util/deployment_util.go, disruption/disruption.go,
controller_utils.go, ActivePodsWithRanks, replicaset/replica_set.go, getPodsToDelete (v1.36.2).
"""

from typing import Final

from extender.values.objects.meta import Object

_DEFAULT_SHARE: Final = "25%"


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """Returns a number, or a percentage's share of the total (GetScaledValueFromIntOrPercent). Raises ValueError."""
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid type: string is not a percentage")
    exact = int(value[:-1]) * total
    return -(-exact // 100) if round_up else exact // 100


def fenceposts(spec: Object) -> tuple[int, int]:
    """Returns how many pods of a rolling Deployment may be too many, and missing (ResolveFenceposts)."""
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    replicas = spec.get("replicas", 1)
    surge = scaled_value(rolling.get("maxSurge", _DEFAULT_SHARE), replicas, round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", _DEFAULT_SHARE), replicas, round_up=False)
    if not surge and not unavailable:
        # Both may be 0 by rounding; then one pod at a time may be missing, or nothing would ever move.
        unavailable = 1
    return surge, min(unavailable, replicas)


def needs_scale(budget_spec: Object) -> bool:
    """Returns whether a budget depends on how many pods there should be, not only on how many there are."""
    return budget_spec.get("maxUnavailable") is not None or isinstance(budget_spec.get("minAvailable"), str)


def desired_healthy(budget_spec: Object, expected: int) -> int:
    """Returns how many of the expected pods a budget wants healthy (getExpectedPodCount). Raises ValueError."""
    if budget_spec.get("maxUnavailable") is not None:
        return max(expected - scaled_value(budget_spec["maxUnavailable"], expected, round_up=True), 0)
    if budget_spec.get("minAvailable") is not None:
        return scaled_value(budget_spec["minAvailable"], expected, round_up=True)
    return 0


DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def deletion_rank(
    *, node: str, phase: str, is_ready: bool, cost: str, neighbours: int
) -> tuple[bool, int, bool, int, int]:
    """Returns a sort key: pods with a smaller one go first. Ages and restarts, which come last, are left to the caller.

    `node` is empty without one; `cost` is the annotation DELETION_COST, 0 if it is no number; `neighbours` are the pods
    of the controller and its siblings on the node: crowded nodes are thinned out first.
    """
    return bool(node), _PHASES.get(phase, 0), is_ready, _number(cost), -neighbours


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0

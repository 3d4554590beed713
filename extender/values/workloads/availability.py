"""How many pods of a workload may be missing, or be there too many: the arithmetic of maxSurge, maxUnavailable and
minAvailable.

Upstream: apimachinery/pkg/util/intstr; pkg/controller, deployment/util/deployment_util.go, disruption/disruption.go
(v1.36.2).
"""

from typing import Final

from extender.values.objects.meta import Object

_DEFAULT_SHARE: Final = "25%"


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """Returns a number as it is, and a percentage as its share of the total. Upstream: GetScaledValueFromIntOrPercent.

    Raises:
        ValueError: the value is neither a number nor a percentage.
    """
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid type: string is not a percentage")
    exact = int(value[:-1]) * total
    return -(-exact // 100) if round_up else exact // 100


def fenceposts(spec: Object) -> tuple[int, int]:
    """Returns (how many pods there may be too many, how many may be missing) while a Deployment rolls. Upstream:
    ResolveFenceposts.
    """
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
    """Returns whether a PodDisruptionBudget depends on how many pods there should be, and not only on how many there
    are.
    """
    return budget_spec.get("maxUnavailable") is not None or isinstance(budget_spec.get("minAvailable"), str)


def desired_healthy(budget_spec: Object, expected: int) -> int:
    """Returns how many of the expected pods have to be healthy for a PodDisruptionBudget. Upstream:
    getExpectedPodCount.

    Raises:
        ValueError: a percentage cannot be read.
    """
    if budget_spec.get("maxUnavailable") is not None:
        return max(expected - scaled_value(budget_spec["maxUnavailable"], expected, round_up=True), 0)
    if budget_spec.get("minAvailable") is not None:
        return scaled_value(budget_spec["minAvailable"], expected, round_up=True)
    return 0

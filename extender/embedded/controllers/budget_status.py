"""What a PodDisruptionBudget says of itself: how many of its pods are healthy and how many may be disrupted.

Upstream: pkg/controller/disruption/disruption.go; component-helpers/apps/poddisruptionbudget/helpers.go (v1.36.2).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from extender.embedded.controllers.conditions import condition, parsed_time, with_condition
from extender.embedded.controllers.seen import SeenPod
from extender.embedded.resources import Object
from extender.workloads.availability import desired_healthy

DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""How long a pod that was promised to an eviction counts as gone. Upstream: DeletionTimeout."""
_DISRUPTION_ALLOWED: Final = "DisruptionAllowed"


def is_healthy(pod: SeenPod) -> bool:
    """Whether the pod counts as one that is there."""
    return pod.is_ready and not pod.deleted


def budget_status(
    budget: Object, *, expected: int, healthy: int, named: Mapping[str, SeenPod], now: datetime
) -> tuple[Object, float | None]:
    """The status, and after how many seconds a promised eviction expires.

    Arguments:
        expected: how many pods there should be, or are, whichever counts.
        healthy: how many of them are healthy; promised evictions included.
        named: those that `status.disruptedPods` names, by name, as far as they exist.

    Raises:
        ValueError: a percentage that is none.
    """
    spec, old = budget["spec"], budget.get("status") or {}
    disrupted, again = {}, None
    for name, at in (old.get("disruptedPods") or {}).items():
        pod, since = named.get(name), parsed_time(at)
        if pod is None or pod.deleted or since is None or since + DELETION_TIMEOUT < now:
            continue
        disrupted[name] = at
        left = (since + DELETION_TIMEOUT - now).total_seconds()
        again = left if again is None else min(again, left)
        healthy -= is_healthy(pod) and left > 0
    desired = desired_healthy(spec, expected)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    status: Object = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        **({"disruptedPods": disrupted} if disrupted else {}),
        **({"observedGeneration": generation} if generation else {}),
    }
    wanted: Object = {
        "type": _DISRUPTION_ALLOWED,
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        **({"observedGeneration": generation} if generation else {}),
    }
    status["conditions"] = _kept(old.get("conditions") or [], wanted, now)
    # A condition that is a moment late is written again, and then for ever: half a second more than enough.
    return status, None if again is None else again + 0.5


def failed_status(budget: Object, message: str, now: datetime) -> Object:
    """The status when it cannot be calculated: nothing may be disrupted. Upstream: failSafe."""
    status = dict(budget.get("status") or {})
    status["disruptionsAllowed"] = 0
    observed = status.get("observedGeneration")
    wanted: Object = {
        "type": _DISRUPTION_ALLOWED,
        "status": "False",
        "reason": "SyncFailed",
        "message": message,
        **({"observedGeneration": observed} if observed else {}),
    }
    status["conditions"] = _kept(status.get("conditions") or [], wanted, now)
    for name in ("currentHealthy", "desiredHealthy", "expectedPods"):
        status.setdefault(name, 0)
    return status


def _kept(conditions: list[Object], wanted: Object, now: datetime) -> list[Object]:
    known = condition(conditions, wanted["type"])
    if known is not None and all(known.get(name) == value for name, value in wanted.items()):
        return conditions
    return with_condition(conditions, wanted, now)

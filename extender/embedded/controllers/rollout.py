"""How a Deployment gets from what runs to what is wanted: numbers of replicas in, numbers of replicas out.

Upstream: pkg/controller/deployment, rolling.go, recreate.go, sync.go; util/deployment_util.go (v1.36.2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from extender.embedded.resources import Object

DEFAULT_SHARE: Final = "25%"


@final
@dataclass(frozen=True, slots=True)
class Revision:
    """One of a Deployment's ReplicaSets.

    Attributes:
        wanted: replicas in its spec.
        available: replicas that have been ready for long enough, by its status.
    """

    name: str
    wanted: int
    available: int


def share(value: int | str, total: int, *, round_up: bool) -> int:
    """A number, or a percentage of the total. Upstream: apimachinery/pkg/util/intstr, GetScaledValueFromIntOrPercent.

    Raises:
        ValueError: neither.
    """
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid type: string is not a percentage")
    exact = int(value[:-1]) * total
    return -(-exact // 100) if round_up else exact // 100


def fenceposts(spec: Object) -> tuple[int, int]:
    """(how many pods there may be too many, how many may be missing) while a Deployment rolls. Upstream: ResolveFenceposts."""
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    replicas = spec.get("replicas", 1)
    surge = share(rolling.get("maxSurge", DEFAULT_SHARE), replicas, round_up=True)
    unavailable = share(rolling.get("maxUnavailable", DEFAULT_SHARE), replicas, round_up=False)
    if not surge and not unavailable:
        # Both may be 0 by rounding; then one pod at a time may be missing, or nothing would ever move.
        unavailable = 1
    return surge, min(unavailable, replicas)


def rolled(replicas: int, surge: int, unavailable: int, new: Revision, old: Sequence[Revision]) -> Mapping[str, int]:
    """The replicas that each ReplicaSet shall have next; those that stay as they are are left out.

    First the new one grows as far as the surge allows; only when it cannot, the old ones shrink: what is not available first, oldest
    first, and then what the available ones can spare.

    Arguments:
        old: oldest first.
    """
    total = new.wanted + sum(each.wanted for each in old)
    if new.wanted > replicas:
        return {new.name: replicas}
    if new.wanted < replicas and total < replicas + surge:
        return {new.name: new.wanted + min(replicas + surge - total, replicas - new.wanted)}
    return _shrunk(replicas - unavailable, new, old, total)


def _shrunk(min_available: int, new: Revision, old: Sequence[Revision], total: int) -> Mapping[str, int]:
    spare = total - min_available - max(new.wanted - new.available, 0)
    wanted = {each.name: each.wanted for each in old}
    if spare <= 0:
        return {}
    for each in old:
        unhealthy = min(spare, wanted[each.name] - each.available)
        if unhealthy > 0:
            wanted[each.name] -= unhealthy
            spare -= unhealthy
    dispensable = new.available + sum(min(each.available, wanted[each.name]) for each in old) - min_available
    for each in old:
        taken = min(max(dispensable, 0), wanted[each.name])
        wanted[each.name] -= taken
        dispensable -= taken
    return {each.name: wanted[each.name] for each in old if wanted[each.name] != each.wanted}


def scaled(replicas: int, surge: int, revisions: Sequence[Revision]) -> Mapping[str, int]:
    """How a Deployment that was scaled in the midst of a rollout spreads its replicas: in proportion to what each ReplicaSet had.

    Arguments:
        revisions: those with replicas; the newest last.

    Upstream: sync.go, scale.
    """
    allowed = replicas + surge if replicas else 0
    total = sum(each.wanted for each in revisions)
    if not total or allowed == total:
        return {}
    left = allowed - total
    wanted: dict[str, int] = {}
    # The biggest first when growing; and the leftover of rounding goes to the biggest.
    order = sorted(revisions, key=lambda each: -each.wanted)
    for each in order:
        portion = math.trunc((each.wanted * allowed / total) - each.wanted)
        portion = min(portion, left) if left > 0 else max(portion, left)
        wanted[each.name] = each.wanted + portion
        left -= portion
    wanted[order[0].name] = max(wanted[order[0].name] + left, 0)
    return {each.name: wanted[each.name] for each in revisions if wanted[each.name] != each.wanted}

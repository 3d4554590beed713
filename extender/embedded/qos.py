"""The quality of service class of a pod, from its JSON.

Upstream: pkg/apis/core/helper/qos/qos.go, ComputePodQOS (v1.36.2).
"""

from collections.abc import Mapping
from typing import Any, Final

from extender.objects.quantity import Quantity, quantity_of

_COMPUTE: Final = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any]) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`. The quantities must be readable."""
    if spec.get("resources"):
        parts = [spec["resources"]]
    else:
        parts = [each.get("resources") or {} for name in ("containers", "initContainers") for each in spec.get(name) or ()]
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for part in parts:
        _add(requests, part.get("requests"))
        guaranteed = _add(limits, part.get("limits")) == len(_COMPUTE) and guaranteed
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add(total: dict[str, Quantity], amounts: Mapping[str, Any] | None) -> int:
    """How many of the compute resources were added; nothing of something does not count."""
    num_added = 0
    for name in _COMPUTE:
        amount = quantity_of((amounts or {}).get(name, 0))
        if amount.sign > 0:
            total[name] = total[name] + amount if name in total else amount
            num_added += 1
    return num_added

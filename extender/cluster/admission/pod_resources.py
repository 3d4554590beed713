"""Totals over the containers of a pod, and its quality of service class.

Upstream: component-helpers/resource/helpers.go, AggregateContainerRequests; core/helper/qos/qos.go (v1.36.2).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from extender.values.objects.quantity import Quantity, quantity_of

Totals = dict[str, Quantity]


def container_totals(spec: Mapping[str, Any], part: Literal["requests", "limits"]) -> Totals:
    """Returns what containers and sidecars need in sum, or an init container with the sidecars before it, if more."""
    total: Totals = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, part))
    sidecars: Totals = {}
    highest: Totals = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, part)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            _add(amounts, sidecars)
        _raise(highest, amounts)
    _raise(total, highest)
    return total


def _amounts(container: Mapping[str, Any], part: str) -> Totals:
    return {name: quantity_of(amount) for name, amount in ((container.get("resources") or {}).get(part) or {}).items()}


def _add(total: Totals, amounts: Totals) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: Totals, amounts: Totals) -> None:
    for name, amount in amounts.items():
        if name not in total or amount > total[name]:
            total[name] = amount


_COMPUTE: Final = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Returns `Guaranteed`, `Burstable` or `BestEffort`. The quantities must be readable. Upstream: ComputePodQOS."""
    if spec.get("resources"):
        parts = [spec["resources"]]
    else:
        parts = [
            each.get("resources") or {} for name in ("containers", "initContainers") for each in spec.get(name) or ()
        ]
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for part in parts:
        _add_compute(requests, part.get("requests"))
        guaranteed = _add_compute(limits, part.get("limits")) == len(_COMPUTE) and guaranteed
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_compute(total: dict[str, Quantity], amounts: Mapping[str, Any] | None) -> int:
    """Returns how many of the compute resources were added; zero amounts do not count."""
    num_added = 0
    for name in _COMPUTE:
        amount = quantity_of((amounts or {}).get(name, 0))
        if amount.sign > 0:
            total[name] = total[name] + amount if name in total else amount
            num_added += 1
    return num_added

"""What the containers of a pod ask for together, from its JSON.

Upstream: component-helpers/resource/helpers.go, AggregateContainerRequests, AggregateContainerLimits (v1.36.2).
"""

from collections.abc import Mapping
from typing import Any, Literal

from extender.objects.quantity import Quantity, quantity_of

Totals = dict[str, Quantity]


def container_totals(spec: Mapping[str, Any], part: Literal["requests", "limits"]) -> Totals:
    """The sum over containers and sidecars, or what an init container needs with the sidecars before it, if that is more."""
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

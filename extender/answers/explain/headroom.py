"""How much of each resource nodes have left for a pod: amounts as NodeResourcesFit compares them, and as Kubernetes writes them."""

from typing import Final, final

import numpy as np

from extender.answers.types import Lack
from extender.objects.pod import Pod
from extender.objects.quantity import BINARY_SI, DECIMAL_SI, MILLI, Quantity
from extender.objects.resource_amounts import filter_requests
from extender.objects.resource_names import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, PODS
from extender.plugins.node_resources.fit import TOO_MANY_PODS
from extender.runtime.nominations import Nominations
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Floats, Int64s

_INSUFFICIENT: Final = "Insufficient "


def resource_of(reason: str) -> str:
    """Returns the resource that a reason of NodeResourcesFit is about; empty if it is about something else."""
    if reason == TOO_MANY_PODS:
        return PODS
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else ""


@final
class Headroom:
    """What a pod requests of every node, and what the nodes have left for it: base units, millicores for cpu."""

    def __init__(self, snapshot: Snapshot, pod: Pod, nominations: Nominations) -> None:
        """What pods are nominated for that go before this one is not left for it.

        Raises:
            QuantityError: a request cannot be read.
        """
        rows = Rows.of(snapshot)
        nominated = nominations.changes_for(pod, rows)
        self._rows = rows if nominated is None else rows.changed(nominated)
        self._requested = requested_amounts(pod)
        self._free: dict[str, Int64s] = {}

    def requested(self, resource: str) -> int:
        """Returns how much the pod requests."""
        return self._requested.get(resource, 0)

    def free(self, resource: str) -> Int64s:
        """Returns (N,) what is left on each node; below zero where more is requested already than there is."""
        known = self._free.get(resource)
        if known is None:
            known = self._free[resource] = self._left(resource)
        return known

    def share_missing(self, resource: str) -> Floats:
        """Returns (N,) which share of the request is missing; above 1 on overcommitted nodes."""
        requested = self.requested(resource)
        missing: Floats = np.maximum(requested - self.free(resource), 0) / max(requested, 1)
        return missing

    def lack(self, resource: str, place: int) -> Lack:
        """Returns how much of the resource the node at this place lacks."""
        asks, free = self.requested(resource), int(self.free(resource)[place])
        asks_text, free_text, short_text = (as_quantity(resource, amount) for amount in (asks, free, max(asks - free, 0)))
        return Lack(resource=resource, asks=asks_text, free=free_text, short=short_text)

    def _left(self, resource: str) -> Int64s:
        rows = self._rows
        if resource == PODS:
            return rows.allowed_pods - rows.pod_count
        return rows.allocatable_of(resource) - rows.requested_of(resource)


def requested_amounts(pod: Pod) -> dict[str, int]:
    """Returns resource -> what the pod requests, its own place among the pods included: base units, millicores for cpu.

    Raises:
        QuantityError: a request cannot be read.
    """
    requests = filter_requests(pod)
    native = {CPU: requests.milli_cpu, MEMORY: requests.memory, EPHEMERAL_STORAGE: requests.ephemeral_storage, PODS: 1}
    return {**native, **requests.scalar}


def as_quantity(resource: str, amount: int) -> str:
    """Returns the amount of a resource as a quantity in its canonical form: `500m`, `64Gi`, `2`.

    Arguments:
        amount: base units, millicores for cpu.
    """
    if resource == CPU:
        return Quantity(amount, MILLI, format=DECIMAL_SI).canonical()
    in_bytes = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGEPAGES_PREFIX)
    return Quantity(amount, format=BINARY_SI if in_bytes else DECIMAL_SI).canonical()

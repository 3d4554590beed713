"""What nodes are short of for a pod: amounts as NodeResourcesFit compares them, and as Kubernetes writes them."""

from typing import Final, final

import numpy as np

from extender.answers.types import Lack
from extender.objects.pod import Pod
from extender.objects.quantity import BINARY_SI, DECIMAL_SI, MILLI, Quantity
from extender.objects.resource_names import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, PODS
from extender.objects.resources import filter_requests
from extender.plugins.node_resources.fit import TOO_MANY_PODS
from extender.runtime.nominations import Nominations
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Floats, Int64s

_INSUFFICIENT: Final = "Insufficient "


def resource_of(reason: str) -> str:
    """The resource that a reason of NodeResourcesFit is about; empty if it is about something else."""
    if reason == TOO_MANY_PODS:
        return PODS
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else ""


@final
class Room:
    """What a pod asks of every node, and what the nodes have left for it: base units, millicores for cpu."""

    def __init__(self, snapshot: Snapshot, pod: Pod, nominations: Nominations) -> None:
        """Room that was promised to pods which go before this one is taken.

        Raises:
            QuantityError: a request cannot be read.
        """
        rows = Rows.of(snapshot)
        promised = nominations.changes_for(pod, rows)
        self._rows = rows if promised is None else rows.changed(promised)
        self._asked = amounts_asked_by(pod)
        self._free: dict[str, Int64s] = {}

    def asks(self, resource: str) -> int:
        """How much the pod asks for."""
        return self._asked.get(resource, 0)

    def free(self, resource: str) -> Int64s:
        """(N,) what is left on each node; below zero where more was promised than there is."""
        known = self._free.get(resource)
        if known is None:
            known = self._free[resource] = self._left(resource)
        return known

    def share_missing(self, resource: str) -> Floats:
        """(N,) which share of what is asked for is missing; above 1 on nodes that have promised too much."""
        asks = self.asks(resource)
        missing: Floats = np.maximum(asks - self.free(resource), 0) / max(asks, 1)
        return missing

    def lack(self, resource: str, place: int) -> Lack:
        """What the node at this place is short of."""
        asks, free = self.asks(resource), int(self.free(resource)[place])
        return Lack(
            resource=resource, asks=written(resource, asks), free=written(resource, free), short=written(resource, max(asks - free, 0))
        )

    def _left(self, resource: str) -> Int64s:
        rows = self._rows
        if resource == PODS:
            return rows.allowed_pods - rows.pod_count
        return rows.allocatable_of(resource) - rows.requested_of(resource)


def amounts_asked_by(pod: Pod) -> dict[str, int]:
    """Resource -> what the pod asks for, itself included: base units, millicores for cpu.

    Raises:
        QuantityError: a request cannot be read.
    """
    requests = filter_requests(pod)
    native = {CPU: requests.milli_cpu, MEMORY: requests.memory, EPHEMERAL_STORAGE: requests.ephemeral_storage, PODS: 1}
    return {**native, **requests.scalar}


def written(resource: str, amount: int) -> str:
    """The amount of a resource as a quantity in its canonical form: `500m`, `64Gi`, `2`.

    Arguments:
        amount: base units, millicores for cpu.
    """
    if resource == CPU:
        return Quantity(amount, MILLI, format=DECIMAL_SI).canonical()
    in_bytes = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGEPAGES_PREFIX)
    return Quantity(amount, format=BINARY_SI if in_bytes else DECIMAL_SI).canonical()

"""A pod as the numbers and the codes of symbols that its columns hold."""

from dataclasses import dataclass
from typing import final

from extender.engine.snapshot.pod_attributes import (
    Attribute,
    PodSymbol,
    affinity_class,
    host_ports,
    label_class,
    volume_class,
)
from extender.engine.snapshot.symbols import ABSENT, SymbolTable
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod, start_time
from extender.values.objects.resource_amounts import assigned_requests
from extender.values.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY

Symbols = tuple[SymbolTable[PodSymbol], ...]
"""The symbols of each `Attribute`."""


@final
@dataclass(frozen=True, slots=True)
class PodEncoding:
    """A pod's numbers in the columns; see `PodColumns`."""

    requests: tuple[tuple[str, int], ...]
    """(resource, amount) of every requested resource."""
    non_zero: tuple[int, int]
    priority: int
    start_time: int


def encode_pod(pod: Pod) -> PodEncoding:
    """Raises QuantityError, which names the field, for a request that is no quantity, DecodeError for a start time."""
    requests, milli_cpu, memory = assigned_requests(pod)
    native = ((CPU, requests.milli_cpu), (MEMORY, requests.memory), (EPHEMERAL_STORAGE, requests.ephemeral_storage))
    return PodEncoding((*native, *requests.scalar.items()), (milli_cpu, memory), pod.priority, start_time(pod))


@final
class PodReader:
    """Reads pods for their columns. State: the last pod, from which the next often differs in its name alone."""

    def __init__(self) -> None:
        self._last: tuple[Pod, Symbols, PodEncoding, tuple[int, ...]] | None = None

    def read(self, pod: Pod, symbols: Symbols) -> tuple[PodEncoding, tuple[int, ...]]:
        """Returns the pod's numbers, and its code for each `Attribute`. Raises as `encode_pod`."""
        last = self._last
        if last is None or last[1] is not symbols or not _differ_in_name_at_most(pod, last[0]):
            last = self._last = (pod, symbols, encode_pod(pod), codes_of(pod, symbols))
        return last[2], last[3]


def _differ_in_name_at_most(one: Pod, other: Pod) -> bool:
    meta, others = one.metadata, other.metadata
    return (
        meta.labels == others.labels
        and meta.namespace == others.namespace
        and meta.deletion_timestamp == others.deletion_timestamp
        and one.status == other.status
        and not one.spec.volumes  # the claims of ephemeral ones are named after the pod
        and replaced(one.spec, node_name=other.spec.node_name) == other.spec
    )


def codes_of(pod: Pod, symbols: Symbols) -> tuple[int, ...]:
    """Returns the pod's code for each `Attribute`; new symbols get codes."""
    return (
        _code(label_class(pod), symbols[Attribute.LABELS]),
        _code(host_ports(pod) or None, symbols[Attribute.HOST_PORTS]),
        _code(affinity_class(pod), symbols[Attribute.AFFINITY]),
        _code(volume_class(pod), symbols[Attribute.VOLUMES]),
    )


def _code(symbol: PodSymbol | None, symbols: SymbolTable[PodSymbol]) -> int:
    return ABSENT if symbol is None else symbols.intern(symbol)

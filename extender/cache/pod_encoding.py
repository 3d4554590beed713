"""A pod as the numbers and the codes of symbols that its columns hold."""

from dataclasses import dataclass
from typing import final

from extender.objects.pod import Pod, start_time
from extender.objects.resource_amounts import assigned_requests
from extender.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from extender.snapshot.pod_attributes import Attribute, PodSymbol, affinity_class, host_ports, label_class, volume_class
from extender.snapshot.symbols import ABSENT, SymbolTable


@final
@dataclass(frozen=True, slots=True)
class PodEncoding:
    """A pod's values in the columns; see `PodColumns`."""

    requests: tuple[tuple[str, int], ...]
    """(resource, amount) of every requested resource."""
    non_zero: tuple[int, int]
    priority: int
    start_time: int


def encode_pod(pod: Pod) -> PodEncoding:
    """Reads the pod's numbers.

    Raises:
        QuantityError: a request is not a quantity; the message names the field.
        DecodeError: status.startTime is not a time.
    """
    requests, milli_cpu, memory = assigned_requests(pod)
    native = ((CPU, requests.milli_cpu), (MEMORY, requests.memory), (EPHEMERAL_STORAGE, requests.ephemeral_storage))
    return PodEncoding(
        requests=(*native, *requests.scalar.items()),
        non_zero=(milli_cpu, memory),
        priority=pod.priority,
        start_time=start_time(pod),
    )


def codes_of(pod: Pod, symbols: tuple[SymbolTable[PodSymbol], ...]) -> tuple[int, ...]:
    """Returns the pod's code for each `Attribute`; new symbols get codes."""
    return (
        _code(label_class(pod), symbols[Attribute.LABELS]),
        _code(host_ports(pod) or None, symbols[Attribute.HOST_PORTS]),
        _code(affinity_class(pod), symbols[Attribute.AFFINITY]),
        _code(volume_class(pod), symbols[Attribute.VOLUMES]),
    )


def _code(symbol: PodSymbol | None, symbols: SymbolTable[PodSymbol]) -> int:
    return ABSENT if symbol is None else symbols.intern(symbol)

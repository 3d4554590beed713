"""A pod as the numbers and the codes of symbols that its columns hold."""

from dataclasses import dataclass
from typing import Final, final

import msgspec

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

KEPT_KINDS: Final = 256
KEPT_BYTES: Final = 4096
"""Pods that take more bytes are read anew, so that large ones take no more memory than others."""

_ENCODE: Final = msgspec.json.Encoder().encode


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
    """Reads pods for their columns. State: what was read of the last kinds of pods, which differ in name and node."""

    def __init__(self) -> None:
        self._symbols: Symbols = ()
        self._known: dict[bytes, tuple[PodEncoding, tuple[int, ...]]] = {}
        self.num_kinds = 0
        """How often a pod was read that was like none before, and may have had new symbols."""

    def read(self, pod: Pod, symbols: Symbols) -> tuple[PodEncoding, tuple[int, ...]]:
        """Returns the pod's numbers, and its code for each `Attribute`. Raises as `encode_pod`."""
        if symbols is not self._symbols:
            self._symbols, self._known = symbols, {}
        meta, spec = pod.metadata, pod.spec
        if spec.volumes:  # the claims of ephemeral ones are named after the pod
            self.num_kinds += 1
            return encode_pod(pod), codes_of(pod, symbols)
        spec = replaced(spec, node_name="") if spec.node_name else spec
        key = _ENCODE((meta.namespace, meta.labels, meta.deletion_timestamp, spec, pod.status))
        known = self._known.get(key)
        if known is None:
            self.num_kinds += 1
            known = encode_pod(pod), codes_of(pod, symbols)
            if len(key) <= KEPT_BYTES:
                if len(self._known) >= KEPT_KINDS:
                    del self._known[next(iter(self._known))]
                self._known[key] = known
        return known


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

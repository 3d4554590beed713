"""A pod as the numbers and symbol codes of its columns."""

from typing import Final, final

import msgspec
import numpy as np

from extender.engine.snapshot.axes import Int64s
from extender.engine.snapshot.pod_attributes import (
    Attribute,
    PodSymbol,
    affinity_class,
    host_ports,
    label_class,
    volume_class,
)
from extender.engine.snapshot.symbols import ABSENT, SymbolTable
from extender.values.objects.pod import Pod, start_time
from extender.values.objects.resource_amounts import assigned_requests

Symbols = tuple[SymbolTable[PodSymbol], ...]
"""The symbols of each `Attribute`."""

KEPT_BYTES: Final = 4 << 20
"""The most bytes of JSON of pods that are kept to compare with; they may long be deleted."""
_ENTRY_BYTES: Final = 512
_ENCODE: Final = msgspec.json.Encoder().encode


@final
class PodEncoding(msgspec.Struct, frozen=True):
    """A pod's numbers in the columns; see `PodColumns`."""

    amounts: Int64s
    """1 for the pod itself; cpu and memory with defaults; the requests of cpu, memory and ephemeral storage."""
    scalars: tuple[tuple[str, int], ...]
    """(resource, amount) of every other requested resource."""
    priority: int


def encode_pod(pod: Pod) -> PodEncoding:
    """Raises QuantityError, which names the field, for a request that is no quantity."""
    requests, milli_cpu, memory = assigned_requests(pod)
    native = requests.milli_cpu, requests.memory, requests.ephemeral_storage
    amounts = np.array((1, milli_cpu, memory, *native), np.int64)
    return PodEncoding(amounts, (*requests.scalar.items(),), pod.priority)


@final
class PodReader:
    """Reads pods for their columns. State: the last pod of each owner and labels, since the next often differs little.
    A pod that is bound gets more labels.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[object, ...], tuple[Pod, PodEncoding, tuple[int, ...]]] = {}
        self._size = 0
        self._symbols: Symbols = ()
        self.num_read = 0
        """The number of pods unlike earlier ones, which may have had new symbols."""

    def read(self, pod: Pod, symbols: Symbols) -> tuple[PodEncoding, int, tuple[int, ...]]:
        """Returns the pod's numbers, when it started, and its code for each `Attribute`.

        Raises as `encode_pod`, and DecodeError for a start time.
        """
        if symbols is not self._symbols or self._size > KEPT_BYTES:
            self._last.clear()
            self._size = 0
            self._symbols = symbols
        meta = pod.metadata
        owners = meta.owner_references
        kind = owners[0].uid if owners else "", *meta.labels.items()
        last = self._last.get(kind)
        if last is not None and are_read_alike(pod, last[0]):
            return last[1], start_time(pod), last[2]
        self.num_read += 1
        read = encode_pod(pod), start_time(pod), codes_of(pod, symbols)
        # The claims of ephemeral volumes are named after the pod, and what a resize asks for may not count.
        if not any(volume.ephemeral for volume in pod.spec.volumes) and not is_resized(pod):
            self._last[kind] = pod, read[0], read[2]
            self._size += len(_ENCODE(pod)) + _ENTRY_BYTES
        return read


def are_read_alike(pod: Pod, other: Pod) -> bool:
    """Returns whether a pod has the numbers of another, which is not resized, and its codes but for those of labels."""
    # Field by field, since lists that are shared compare in no time.
    spec, other_spec, meta, status = pod.spec, other.spec, pod.metadata, pod.status
    return (
        meta.namespace == other.metadata.namespace
        and meta.deletion_timestamp == other.metadata.deletion_timestamp
        and spec.containers == other_spec.containers
        and spec.volumes == other_spec.volumes
        and spec.affinity == other_spec.affinity
        and spec.priority == other_spec.priority
        and spec.init_containers == other_spec.init_containers
        and spec.overhead == other_spec.overhead
        and spec.resources == other_spec.resources
        and status.container_statuses == other.status.container_statuses
        and status.init_container_statuses == other.status.init_container_statuses
        and status.resources == other.status.resources
        and status.allocated_resources == other.status.allocated_resources
        and not is_resized(pod)
    )


def is_resized(pod: Pod) -> bool:
    conditions = pod.status.conditions
    return bool(conditions) and "PodResizePending" in [condition.type for condition in conditions]


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

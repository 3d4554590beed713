"""Every column of the cluster once: dtype, shape, unit, and the field it comes from.

The arrays in here are read-only views. The one that writes them is `cache.column_writer`, between cycles.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import final

import numpy as np

from extender.objects.node import ContainerImage, Node, Taint
from extender.objects.pod import Pod
from extender.objects.quantity import value_of
from extender.snapshot.axes import Codes, Index, Int64s, Mask
from extender.snapshot.pod_attributes import HostPort
from extender.snapshot.symbols import ABSENT, SymbolTable

MAX_COLUMNS_OF_A_KIND = 512
"""Label keys, images and host ports remembered, of each; more at a time than any set of pods asks about, and a bound to what anybody can
make us keep."""


@final
class LabelColumn:
    """One label key over the nodes: a code per node and what the codes mean."""

    __slots__ = ("codes", "key", "values")

    def __init__(self, key: str, nodes: list[Node]) -> None:
        self.key = key
        self.values: SymbolTable[str] = SymbolTable()
        self.codes: Codes = np.fromiter((self._code(node) for node in nodes), np.int32, len(nodes))

    def copy(self) -> "LabelColumn":
        """The same column, to be written by itself."""
        other = LabelColumn(self.key, [])
        other.values, other.codes = self.values.copy(), self.codes.copy()
        return other

    def set(self, index: int, node: Node) -> None:
        """The node at `index` was replaced; only the writer calls this."""
        self.codes[index] = self._code(node)

    def _code(self, node: Node) -> int:
        value = node.metadata.labels.get(self.key)
        return ABSENT if value is None else self.values.intern(value)


ImagesOnNode = dict[str, tuple[int, int]]
"""Image name -> (size in bytes, how many nodes had it when this node last changed), as upstream's NodeInfo keeps it."""


@final
class ImageColumn:
    """One image over the nodes: its size where the node has it, and on how many nodes it was when the node last changed."""

    __slots__ = ("is_known", "name", "num_nodes", "size")

    def __init__(self, name: str, images_on: list[ImagesOnNode]) -> None:
        self.name = name
        self.is_known = False
        """Whether any node has had the image since the column was made."""
        self.size: Int64s = np.zeros(len(images_on), np.int64)
        self.num_nodes: Int64s = np.zeros(len(images_on), np.int64)
        for place, images in enumerate(images_on):
            if name in images:
                self.set(place, images)

    def copy(self) -> "ImageColumn":
        """The same column, to be written by itself."""
        other = ImageColumn(self.name, [])
        other.is_known, other.size, other.num_nodes = self.is_known, self.size.copy(), self.num_nodes.copy()
        return other

    def set(self, place: int, images: ImagesOnNode) -> None:
        """The images of the node at `place` are now as given; only the writer calls this."""
        has = images.get(self.name)
        if has is not None:
            self.is_known = True
        if self.is_known:
            self.size[place], self.num_nodes[place] = has or (0, 0)


@final
@dataclass(frozen=True, slots=True)
class NodeColumns:
    """The nodes, in visiting order (zones taking turns)."""

    objects: list[Node]
    index: dict[str, int]
    """Name -> place on axis N."""
    allocatable: Int64s
    """(N, K) status.allocatable."""
    allowed_pods: Int64s
    """(N,) status.allocatable.pods."""
    requested: Int64s
    """(N, K) effective requests of the pods on the node, terminating ones included."""
    non_zero_requested: Int64s
    """(N, 2) the same for cpu and memory, with 100m and 200Mi for each container that asks for none."""
    pod_count: Int64s
    """(N,) pods on the node."""
    unschedulable: Mask
    """(N,) spec.unschedulable."""
    scalar_columns: dict[str, Int64s]
    """Scalar resources beside those on axis K that were asked for so far; `scalar()` adds to them."""
    taint_set: Codes
    """(N,) the node's list of taints, as a code of `taint_sets`."""
    taint_sets: SymbolTable[tuple[tuple[str, str, str], ...]]
    """Distinct lists of (key, value, effect), in the order of the node's spec."""
    invalid: dict[int, str]
    """Place on axis N -> why the node's allocatable cannot be read. Such a node takes no pods."""
    label_columns: dict[str, LabelColumn]
    """Label keys that were asked for so far; `label()` adds to them."""
    images_on: list[ImagesOnNode]
    """Per place on axis N: the images of the node."""
    image_columns: dict[str, ImageColumn]
    """Image names that were asked for so far; `image()` adds to them."""
    used_ports: list[frozenset[HostPort]]
    """Per place on axis N: the host ports in use. A set, as upstream keeps it: a pod that leaves frees its ports, whoever else has them."""
    port_columns: dict[HostPort, Mask]
    """Host ports that were asked for so far; `uses_port()` adds to them."""

    def __len__(self) -> int:
        return len(self.objects)

    def label(self, key: str) -> LabelColumn:
        """The column of a label key; the first question for a key reads every node once."""
        column = self.label_columns.get(key)
        if column is None:
            if len(self.label_columns) >= MAX_COLUMNS_OF_A_KIND:
                del self.label_columns[next(iter(self.label_columns))]
            column = self.label_columns[key] = LabelColumn(key, self.objects)
        return column

    def scalar(self, name: str) -> Int64s:
        """(N,) what the node has of a scalar resource that no pod of the cluster asks for, and that axis K does not have therefore."""
        column = self.scalar_columns.get(name)
        if column is None:
            if len(self.scalar_columns) >= MAX_COLUMNS_OF_A_KIND:
                del self.scalar_columns[next(iter(self.scalar_columns))]
            column = self.scalar_columns[name] = scalar_amounts(name, self.objects, self.invalid)
        return column

    def image(self, name: str) -> ImageColumn:
        """The column of an image name; the first question for a name reads every node once."""
        column = self.image_columns.get(name)
        if column is None:
            if len(self.image_columns) >= MAX_COLUMNS_OF_A_KIND:
                del self.image_columns[next(iter(self.image_columns))]
            column = self.image_columns[name] = ImageColumn(name, self.images_on)
        return column

    def uses_port(self, port: HostPort) -> Mask:
        """(N,) whether this very port (address, protocol and number) is in use on the node."""
        mask = self.port_columns.get(port)
        if mask is None:
            if len(self.port_columns) >= MAX_COLUMNS_OF_A_KIND:
                del self.port_columns[next(iter(self.port_columns))]
            mask = self.port_columns[port] = np.fromiter((port in used for used in self.used_ports), np.bool_, len(self.objects))
        return mask

    def taints_of(self, code: int) -> tuple[Taint, ...]:
        """The taints behind a code of `taint_set`."""
        return tuple(Taint(key=key, value=value, effect=effect) for key, value, effect in self.taint_sets[code])


@final
@dataclass(frozen=True, slots=True)
class PodColumns:
    """The pods, by slot. A slot whose `node` is -1 is free, or holds a pod that is nowhere yet (a nominated one)."""

    objects: list[Pod | None]
    slots: dict[str, int]
    """UID -> slot, of the pods that have a node."""
    node: Index
    """(P,) place on axis N; -1 for nowhere."""
    position: Int64s
    """(P,) place among the pods of its node: appended at the end, removal moves the last one into the hole."""
    requests: Int64s
    """(P, K) effective requests."""
    non_zero_requests: Int64s
    """(P, 2) cpu and memory with the defaults of containers that ask for none."""
    priority: Int64s
    """(P,) spec.priority."""
    start_time: Int64s
    """(P,) status.startTime in seconds since 1970; objects.pod.STARTED_NOW if missing."""
    codes: Codes
    """(A, P) the symbol code per attribute of `pod_attributes.Attribute`; -1 if the pod has nothing of the kind."""
    on_node: list[list[int]]
    """Per place on axis N: the slots of the pods there, in order of `position`."""


def scalar_amounts(name: str, nodes: list[Node], invalid: Container[int]) -> Int64s:
    """(N,) what each node has of a scalar resource; nothing where its allocatable cannot be read."""
    amounts = np.zeros(len(nodes), np.int64)
    for place, node in enumerate(nodes):
        written = node.status.allocatable.get(name)
        if written is not None and place not in invalid:
            amounts[place] = value_of(written)
    return amounts


def image_names(images: list[ContainerImage]) -> dict[str, int]:
    """Name -> size in bytes of every image a node reports; the first entry wins where a name recurs."""
    sizes: dict[str, int] = {}
    for image in images:
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes


def sums_by_value(column: LabelColumn, per_node: Int64s) -> Int64s:
    """(V + 1,) the sum over the nodes of each value of the label, by code; at the end, where ABSENT finds it, over the nodes without it.

    Arguments:
        per_node: (N,) at most 2**53 in sum, either way.
    """
    # bincount adds up in float64, which is exact that far.
    by_code = np.bincount(column.codes + 1, weights=per_node, minlength=len(column.values) + 1)
    sums = np.empty(len(by_code), np.int64)
    sums[:-1], sums[-1] = by_code[1:], by_code[0]
    return sums

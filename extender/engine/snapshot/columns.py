"""Every column of the cluster: dtype, shape, unit, and the API field it comes from.

The arrays are read-only views. Only `cache.column_writer` writes them, between cycles.
"""

from collections import defaultdict
from collections.abc import Callable, Container
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender.engine.snapshot.axes import Codes, D, Index, Int64s, Mask
from extender.engine.snapshot.pod_attributes import HostPort
from extender.engine.snapshot.symbols import ABSENT, SymbolTable
from extender.values.golang.int64 import parse_int64
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL, ContainerImage, Node, Taint
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import value_of

WIDELY_ASKED: Final = (HOSTNAME_LABEL, ZONE_LABEL)
"""The label keys of the default constraints of PodTopologySpread, read with the first nodes."""

KEPT_COLUMNS = 512
"""The most columns of label keys, scalar resources, images and host ports that are kept: more than are in use."""

K = TypeVar("K")
V = TypeVar("V")


@final
class LabelColumn:
    """The values of one label key: a code per node, and the value of each code."""

    __slots__ = ("_bins", "_in_use", "_integers", "_is_numbering", "_present", "codes", "key", "values")

    def __init__(self, key: str, nodes: list[Node]) -> None:
        self.key = key
        self._bins: Index | None = None
        self._in_use: Mask | None = None
        self._is_numbering: bool | None = None
        self._integers: tuple[int, Index, Int64s] | None = None
        self._present: tuple[Mask, bool] | None = None
        label_values = [node.metadata.labels.get(key) for node in nodes]
        # A hostname is a value of its own on each of many nodes: each is looked up once and numbered as it comes.
        code_of: defaultdict[Any, int] = defaultdict(count().__next__, {None: ABSENT})
        self.codes: Codes = np.fromiter(map(code_of.__getitem__, label_values), np.int32, len(label_values))
        del code_of[None]
        self.values: SymbolTable[str] = SymbolTable.numbered(dict(code_of))

    @staticmethod
    def unread(key: str, num_nodes: int) -> "LabelColumn":
        """Returns the column of nodes whose labels are yet to be `set`."""
        column = LabelColumn(key, [])
        column.codes = np.full(num_nodes, ABSENT, np.int32)
        return column

    @staticmethod
    def absent(key: str, num_nodes: int) -> "LabelColumn":
        """Returns the column of a key that no node has. It takes no memory per node."""
        column = LabelColumn(key, [])
        column.codes = np.broadcast_to(np.int32(ABSENT), num_nodes)
        return column

    def copy(self) -> "LabelColumn":
        other = LabelColumn(self.key, [])
        other.values, other.codes, other._integers = self.values.copy(), self.codes.copy(), self._integers
        return other

    def moved(self, to: Index | slice, places: Index | slice, count: int) -> "LabelColumn":
        """Returns the column of `count` nodes; those at `to` were at `places`. Only the cache calls this."""
        other = LabelColumn.unread(self.key, count)
        other.values, other._integers = self.values, self._integers
        other.codes[to] = self.codes[places]
        return other

    @property
    def is_shared(self) -> bool:
        """True if most values are on several nodes. Others, such as hostnames, are best numbered as the nodes."""
        return 2 * len(self.values) < len(self.codes)

    def set(self, index: int, node: Node) -> None:
        """Sets the value of the node at `index`. Only the cache calls this."""
        value = node.metadata.labels.get(self.key)
        code = ABSENT if value is None else self.values.intern(value)
        if code != self.codes[index]:  # nodes report their status often, and seldom have other labels
            self.codes[index] = code
            self._bins = self._in_use = self._is_numbering = self._present = None

    @property
    def integers(self) -> tuple[Index, Int64s]:
        """(codes, numbers) of the values that spell an int64, in the order of the numbers."""
        if self._integers is None or self._integers[0] < len(self.values):
            num_parsed, codes, numbers = self._integers or (0, np.zeros(0, np.intp), np.zeros(0, np.int64))
            added = {
                code: number
                for code in range(num_parsed, len(self.values))
                if (number := parse_int64(self.values[code])) is not None
            }
            codes = np.concatenate((codes, np.array([*added], np.intp)))
            numbers = np.concatenate((numbers, np.array([*added.values()], np.int64)))
            ascending = numbers.argsort()
            self._integers = len(self.values), codes[ascending], numbers[ascending]
        return self._integers[1:]

    @property
    def bins(self) -> Index:
        """(N,) the codes, shifted by one so that none is negative."""
        if self._bins is not None:
            return self._bins
        bins: Index = self.codes.astype(np.intp) + 1
        if len(self.values):  # a key that no node has takes no memory per node
            self._bins = bins
        return bins

    @property
    def in_use(self) -> Mask:
        """(V + 1,) whether any node has the value; False for the last entry, which is for nodes without the label."""
        if self._in_use is None:
            self._in_use = np.zeros(len(self.values) + 1, np.bool_)
            self._in_use[self.codes] = True
            self._in_use[ABSENT] = False
            self._in_use.flags.writeable = False
        return self._in_use

    @property
    def of_nodes(self) -> Mask:
        """(V + 1,) the same as `in_use`, but the last entry is whether any node is without the label."""
        if self.is_everywhere:
            return self.in_use
        values = self.in_use.copy()
        values[ABSENT] = True
        return values

    @property
    def present(self) -> Mask:
        """(N,) the nodes that have the label."""
        return self._presence[0]

    @property
    def is_everywhere(self) -> bool:
        return self._presence[1]

    @property
    def _presence(self) -> tuple[Mask, bool]:
        if self._present is None:
            present = self.codes >= 0
            present.flags.writeable = False
            self._present = present, bool(present.all())
        return self._present

    @property
    def is_numbering(self) -> bool:
        """True if the node at place 7 has value 7 and so on, as hostnames do."""
        if self._is_numbering is None:
            self._is_numbering = len(self.values) == len(self.codes) and bool(
                (self.codes == np.arange(len(self.codes))).all()
            )
        return self._is_numbering

    def at_nodes(self, by_value: npt.NDArray[D], node: Index | None = None) -> npt.NDArray[D]:
        """(N,) the entries of (V + 1,) by code, the last for nodes without the label; or (R,) those of `node`.

        It may be a view.
        """
        if self.is_numbering:
            return by_value[:-1] if node is None else by_value.take(node)
        if node is None:
            return np.concatenate((by_value[-1:], by_value[:-1])).take(self.bins)
        return by_value.take(self.codes.take(node).astype(np.intp))  # numpy is slower with other integers


class LabelScores(NamedTuple):
    """The scores of nodes by their value of a label."""

    column: LabelColumn
    by_value: Int64s
    """(V + 1,) by code; the last entry is for nodes without the label."""


ImagesOnNode = dict[str, tuple[int, int]]
"""Image name -> (size in bytes, number of nodes that had it when this node last changed), as in upstream's NodeInfo."""


@final
class ImageColumn:
    """One image over the nodes: its size, and the number of nodes with it when the node last changed."""

    __slots__ = ("is_known", "name", "num_nodes", "size")

    def __init__(self, name: str, images_on: list[ImagesOnNode]) -> None:
        self.name = name
        self.is_known = False
        """True once any node has had the image since the column was made."""
        self.size: Int64s = np.zeros(len(images_on), np.int64)
        self.num_nodes: Int64s = np.zeros(len(images_on), np.int64)
        for place, images in enumerate(images_on):
            if name in images:
                self.set(place, images)

    @staticmethod
    def absent(name: str, num_nodes: int) -> "ImageColumn":
        """Returns the column of an image that no node has. It takes no memory per node."""
        column = ImageColumn(name, [])
        column.size = column.num_nodes = np.broadcast_to(np.int64(0), num_nodes)
        return column

    def copy(self) -> "ImageColumn":
        other = ImageColumn(self.name, [])
        other.is_known, other.size, other.num_nodes = self.is_known, self.size.copy(), self.num_nodes.copy()
        return other

    def set(self, place: int, images: ImagesOnNode) -> None:
        """Sets the images of the node at `place`. Only the cache calls this."""
        has = images.get(self.name)
        if has is not None:
            self.is_known = True
        if self.is_known:
            self.size[place], self.num_nodes[place] = has or (0, 0)


def _kept(columns: dict[K, V], key: K, make: Callable[[], V]) -> V:
    """Returns the column under the key; a new one takes the place of the oldest if there are too many."""
    column = columns.get(key)
    if column is None:
        if len(columns) >= KEPT_COLUMNS:
            del columns[next(iter(columns))]
        column = columns[key] = make()
    return column


PLAIN_AMOUNT = 2**53
"""Up to this, sums and products of a few amounts neither wrap as int64 nor round as a float."""


@final
class NodeAmounts(NamedTuple):
    """The amounts of one node as Python's numbers. Between two pods one node changes as a rule, and numpy takes several
    times as long for one row.
    """

    allocatable: list[int]
    """(K,) status.allocatable."""
    requested: list[int]
    """(K,) effective requests of the pods on the node."""
    non_zero_requested: list[int]
    """(2,) the same for cpu and memory, with defaults for containers without a request."""
    pods_left: int
    """The number of further pods that the node allows."""


@final
class NodeColumns(msgspec.Struct, frozen=True):
    """The nodes, in visiting order (round-robin over the zones)."""

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
    """(N, 2) the same for cpu and memory, with 100m and 200Mi for each container without a request."""
    pod_count: Int64s
    unschedulable: Mask
    """(N,) spec.unschedulable."""
    scalar_columns: dict[str, Int64s]
    """The scalar resources not on axis K that were looked up so far; `scalar()` adds to them."""
    offered: set[str]
    """The names in status.allocatable of the nodes, and some of nodes that have changed or left since."""
    taint_set: Codes
    """(N,) the node's list of taints, as a code of `taint_sets`."""
    taint_sets: SymbolTable[tuple[tuple[str, str, str], ...]]
    """The distinct lists of (key, value, effect), each in the order of the node's spec."""
    invalid: dict[int, str]
    """Place on axis N -> the error in the node's allocatable. Such a node takes no pods."""
    label_columns: dict[str, LabelColumn]
    """The label keys that were looked up so far; `label()` adds to them."""
    label_keys: set[str]
    """The label keys of the nodes, and some of nodes that have changed or left since."""
    image_names: set[str]
    """The images of the nodes, and some of nodes that have changed or left since."""
    images_on: list[ImagesOnNode]
    """Per place on axis N: the images of the node."""
    image_columns: dict[str, ImageColumn]
    """The image names that were looked up so far; `image()` adds to them."""
    used_ports: list[frozenset[HostPort]]
    """Per place on axis N: the host ports in use; as upstream, a pod that leaves frees others' equal ports."""
    port_columns: dict[HostPort, Mask]
    """The host ports that were looked up so far; `uses_port()` adds to them."""

    def __len__(self) -> int:
        return len(self.objects)

    def label(self, key: str) -> LabelColumn:
        """Returns the column of a label key; the first call for a key reads every node once."""
        if key not in self.label_keys and key not in self.label_columns:
            return LabelColumn.absent(key, len(self.objects))
        return _kept(self.label_columns, key, lambda: LabelColumn(key, self.objects))

    def amounts_at(self, place: int) -> NodeAmounts | None:
        """Returns the amounts of the node at this place; None if one is below 0 or beyond `PLAIN_AMOUNT`."""
        columns = self.allocatable, self.requested, self.non_zero_requested
        allocatable, requested, non_zero = [column[place].tolist() for column in columns]
        amounts = allocatable + requested + non_zero
        if min(amounts) < 0 or max(amounts) > PLAIN_AMOUNT:
            return None
        pods_left = self.allowed_pods.item(place) - self.pod_count.item(place)
        return NodeAmounts(allocatable, requested, non_zero, pods_left)

    def scalar(self, name: str) -> Int64s:
        """(N,) the allocatable amount of a scalar resource that is not on axis K."""
        if name not in self.offered and name not in self.scalar_columns:
            return np.zeros(len(self.objects), np.int64)
        return _kept(self.scalar_columns, name, lambda: scalar_amounts(name, self.objects, self.invalid))

    def image(self, name: str) -> ImageColumn:
        """Returns the column of an image name; the first call for a name reads every node once."""
        if name not in self.image_names and name not in self.image_columns:
            return ImageColumn.absent(name, len(self.objects))
        return _kept(self.image_columns, name, lambda: ImageColumn(name, self.images_on))

    def uses_port(self, port: HostPort) -> Mask:
        """(N,) whether exactly this port (address, protocol and number) is in use on the node."""
        used_on = self.used_ports
        return _kept(
            self.port_columns, port, lambda: np.fromiter((port in used for used in used_on), np.bool_, len(used_on))
        )

    def uses_any_port(self, ports: frozenset[HostPort]) -> Mask:
        """(N,) whether any of these ports is in use on the node, worked out again."""
        return np.fromiter((not ports.isdisjoint(used) for used in self.used_ports), np.bool_, len(self.objects))

    def taints_of(self, code: int) -> tuple[Taint, ...]:
        return tuple(Taint(key=key, value=value, effect=effect) for key, value, effect in self.taint_sets[code])


@final
class PodColumns(msgspec.Struct, frozen=True):
    """The pods, by slot. A slot whose `node` is -1 is free, or holds a nominated pod, which has no node yet."""

    objects: list[Pod | None]
    slots: dict[str, int]
    """UID -> slot, of the pods that have a node."""
    uids: list[str]
    """(P,) the UID of the slot's pod; for a free slot that of its last one."""
    node: Index
    """(P,) the place of the pod's node on axis N; -1 if it has none."""
    last_ranks: Int64s
    """(P,) the ranks of `uid_ranks`, as of the last `rank`."""
    unranked: Mask
    """(N,) the nodes whose pods have changed since then."""
    requests: Int64s
    """(P, K) effective requests."""
    unoffered: dict[str, dict[int, int]]
    """Resource -> slot -> effective request, for resources that are not on axis K since no node has offered them."""
    non_zero_requests: Int64s
    """(P, 2) cpu and memory, with defaults for containers without a request."""
    priority: Int64s
    """(P,) spec.priority."""
    start_time: Int64s
    """(P,) status.startTime in seconds since 1970; objects.pod.STARTED_NOW if it is missing."""
    codes: Codes
    """(A, P) the symbol code for each `pod_attributes.Attribute`; -1 if the pod has no such symbol."""
    on_node: list[list[int]]
    """Per place on axis N: the slots of its pods; a new one goes last, and the last into a freed place."""

    def rank(self) -> None:
        """Ranks the pods of the nodes whose pods have changed since they were ranked."""
        outdated = np.flatnonzero(self.unranked)
        for place in outdated.tolist():
            by_uid = sorted(self.on_node[place], key=self.uids.__getitem__)
            self.last_ranks[by_uid] = np.arange(len(by_uid))
        self.unranked[outdated] = False

    def uid_ranks(self, slots: Index) -> Int64s:
        """(C,) the number of pods with a smaller UID on the same node, for pods that have a node."""
        self.rank()
        return self.last_ranks[slots]


def scalar_amounts(name: str, nodes: list[Node], invalid: Container[int]) -> Int64s:
    """(N,) the allocatable amount of a scalar resource; 0 where the node's allocatable is invalid."""
    amounts = np.zeros(len(nodes), np.int64)
    for place, node in enumerate(nodes):
        quantity = node.status.allocatable.get(name)
        if quantity is not None and place not in invalid:
            amounts[place] = value_of(quantity)
    return amounts


def image_names(images: list[ContainerImage]) -> dict[str, int]:
    """Returns name -> size in bytes of every image that a node reports; the first entry of a name wins."""
    sizes: dict[str, int] = {}
    for image in images:
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes


def sums_by_value(column: LabelColumn, per_node: Int64s) -> Int64s:
    """(V + 1,) sums (N,) over the nodes by the value of their label; the last entry, at ABSENT, is for nodes without.

    Absolute values must sum to at most 2**53.
    """
    if column.is_numbering:
        return np.append(per_node, 0)
    # bincount adds in float64, which is exact up to 2**53.
    by_code = np.bincount(column.bins, weights=per_node, minlength=len(column.values) + 1)
    sums = np.empty(len(by_code), np.int64)
    sums[:-1], sums[-1] = by_code[1:], by_code[0]
    return sums

"""Rows: R hypothetical nodes. A row is a node of the snapshot as if certain pods had come or gone.

An ordinary cycle has one row per node and no changes. Nominated pods are a +1 on their node's row; the preemption dry
run has a -1 for every possible victim and a +1 for each that is reprieved. Upstream copies NodeInfo and CycleState for
this and calls AddPod/RemovePod; here the same arrays have the changes already in them, so that a Filter cannot tell the
difference.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender.engine.snapshot.axes import Codes, D, Index, Int64s, Mask
from extender.engine.snapshot.columns import LabelColumn, NodeAmounts, PodColumns
from extender.engine.snapshot.pod_attributes import Attribute, HostPort
from extender.engine.snapshot.snapshot import Account, Snapshot
from extender.engine.snapshot.symbols import ABSENT
from extender.engine.snapshot.tallies import RelevantCodes, Tally, Weight
from extender.values.golang.int64 import parse_int64
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

_FEW_PORTS: Final = 16
"""Up to this many host ports are looked up one by one, since the column of each is kept for the next pod."""


@final
class PodChanges(msgspec.Struct, frozen=True):
    """C pods that are added to rows (sign +1) or removed from them (-1). A sign of +n adds n pods like this one."""

    row: Index
    """(C,) the row."""
    pod: Index
    """(C,) the pod's slot."""
    sign: Int64s
    """(C,) +1 or -1, or the number of equal pods that are added."""
    rows_are_distinct: bool = False
    """True promises that no row occurs twice, which makes sums cheaper."""

    def __len__(self) -> int:
        return len(self.row)


@final
class NodeInfo(msgspec.Struct, frozen=True):
    """One row as the node and the pods that would be on it, for plugins that look at one node at a time."""

    node: Node
    pods: tuple[Pod, ...]
    row: int

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.node.metadata.annotations


Changed = Callable[[Int64s, PodChanges], Int64s]
"""Returns a column over rows after a step's changes, given the column before them."""


@final
class Rows:
    """R hypothetical nodes, in order. They are immutable; `Rows.of`, `take` and `changed` make new ones."""

    __slots__ = (
        "_amounts",
        "_base",
        "_changes",
        "_columns",
        "_index",
        "_node",
        "_num_rows",
        "is_all",
        "mask",
        "snapshot",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        node: Index | None,
        base: "Rows | None",
        index: Index | None,
        changes: PodChanges | None,
    ) -> None:
        self.snapshot = snapshot
        self.is_all = base is None and node is snapshot.all_nodes
        """True if the rows are the snapshot's nodes, in order and unchanged."""
        self.mask: Mask | None = None
        """(N,) the nodes that are rows, if `Rows.masked` made these; else None."""
        self._node = node
        self._num_rows = 0 if node is None else len(node)
        # A row's columns are those of the row it was made from (or of the snapshot), with this step's changes added.
        self._base = base
        self._index = index
        self._changes = changes
        self._columns: dict[Hashable, Int64s] = {}
        self._amounts: NodeAmounts | None = None

    @staticmethod
    def of(snapshot: Snapshot, node: Index | None = None) -> "Rows":
        """Returns the nodes as they are: all of them, or those at the given places on axis N."""
        return Rows(snapshot, snapshot.all_nodes if node is None else node, None, None, None)

    @staticmethod
    def masked(snapshot: Snapshot, mask: Mask) -> "Rows":
        """Returns the (N,) nodes of the mask, which must not change, in order, listing places once asked for."""
        rows = Rows(snapshot, None, None, None, None)
        rows.mask, rows._num_rows = mask, int(np.count_nonzero(mask))
        return rows

    def __len__(self) -> int:
        return self._num_rows

    @property
    def node(self) -> Index:
        """(R,) the place of each row's node on axis N."""
        if self._node is None:
            self._node = np.arange(0) if self.mask is None else np.flatnonzero(self.mask)
        return self._node

    def __repr__(self) -> str:
        steps, rows = 0, self
        while rows._base is not None:
            steps, rows = steps + (rows._changes is not None), rows._base
        return f"<Rows [{len(self)} of {len(self.snapshot.nodes)} nodes, {steps} hypotheses]>"

    @property
    def names(self) -> list[str]:
        """The nodes' names, one per row."""
        objects = self.snapshot.nodes.objects
        return [objects[place].metadata.name for place in self.node.tolist()]

    def take(self, chosen: Mask | Index) -> "Rows":
        """Returns only these rows, renumbered, with their changes."""
        index: Index = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp, copy=False)
        if self._base is None:
            node = index if self.is_all else self.node[index]
            return Rows(self.snapshot, node, None, None, None)
        return Rows(self.snapshot, self.node[index], self, index, None)

    def changed(self, changes: PodChanges) -> "Rows":
        if not len(changes):
            return self
        return Rows(self.snapshot, self.node, self, None, changes)

    # The pods on the row, changes included.

    @property
    def requested(self) -> Int64s:
        """(R, K) effective requests of the pods on the row; overcommitted rows are not clipped."""
        return self._sums("requested", self.snapshot.nodes.requested, lambda pods, pod: _taken(pods.requests, pod))

    @property
    def non_zero_requested(self) -> Int64s:
        """(R, 2) cpu and memory requests, with defaults for containers without a request."""
        return self._sums(
            "non_zero", self.snapshot.nodes.non_zero_requested, lambda pods, pod: _taken(pods.non_zero_requests, pod)
        )

    @property
    def pod_count(self) -> Int64s:
        """(R,) the number of pods on the row."""
        return self._sums("pod_count", self.snapshot.nodes.pod_count, lambda _, pod: np.ones(len(pod), np.int64))

    def tally(
        self, attribute: Attribute, question: Hashable, weight: Weight, relevant: RelevantCodes | None = None
    ) -> Int64s:
        """(R,) sums the weights of the symbols of the row's pods; pods without a symbol weigh 0.

        The question is the key of the sums between cycles: equal ones have equal weights. `relevant` is as
        `RelevantCodes`, or None for every symbol.
        """
        tally = self.snapshot.tally(attribute, question, weight, relevant)
        of_pods = self._weights_of_slots(attribute, tally)
        return self._column((attribute, question), lambda: tally.per_node, _adding(of_pods))

    def tally_change(
        self, attribute: Attribute, question: Hashable, weight: Weight, relevant: RelevantCodes | None = None
    ) -> Int64s | None:
        """(R,) the part of `tally` that the row's changes cause; None if there are no changes.

        It serves plugins that look across nodes: the rest of the cluster is as in the snapshot, this row's own node is
        not.
        """
        if not self.is_hypothetical:
            return None
        snapshot = self.snapshot
        of_pods = self._weights_of_slots(attribute, snapshot.tallies.weighed(attribute, question, weight, relevant))
        key = "change", attribute, question
        return self._column(key, lambda: np.zeros(len(snapshot.nodes), np.int64), _adding(of_pods))

    def _weights_of_slots(self, attribute: Attribute, tally: Tally) -> Callable[[Index], Int64s]:
        codes = self.snapshot.pods.codes[attribute]

        def of_pods(pod: Index) -> Int64s:
            weights: Int64s = tally.weights[codes[pod]]
            return weights

        return of_pods

    def left(self, account: Account) -> Int64s:
        """(R, W) the account's numbers of the rows' nodes less those of the pods on the row."""
        adding = _adding(lambda slots: -account.of_pods(self.snapshot, slots.tolist()))
        return self._column(account, lambda: account.left(self.snapshot), adding)

    def uses_any_port(self, ports: frozenset[HostPort]) -> Mask:
        """(R,) whether any of these host ports, each with its address and protocol, is in use."""
        if len(ports) > _FEW_PORTS:
            return self._uses_many_ports(ports)
        in_use: Mask = np.zeros(len(self), np.bool_)
        for port in ports:
            in_use |= self.uses_port(port)
        return in_use

    def _uses_many_ports(self, ports: frozenset[HostPort]) -> Mask:
        snapshot = self.snapshot
        of_nodes = snapshot.nodes.uses_any_port(ports)
        if not self.is_hypothetical:
            return of_nodes if self.is_all else of_nodes[self.node]
        symbols = snapshot.tallies.symbols[Attribute.HOST_PORTS]
        of_symbols = [
            ports.intersection(symbol) if isinstance(symbol, tuple) else frozenset[HostPort]() for symbol in symbols
        ]
        used_ports: dict[int, set[HostPort]] = {}
        for row, pod, sign in self._changes_of(range(len(self))):
            code = int(snapshot.pods.codes[Attribute.HOST_PORTS, pod])
            if code == ABSENT or not of_symbols[code]:
                continue
            if row not in used_ports:
                used_ports[row] = set(ports & snapshot.nodes.used_ports[int(self.node[row])])
            # As in `uses_port`, a pod that is removed frees its ports even if another pod uses them.
            used_ports[row] = used_ports[row] | of_symbols[code] if sign > 0 else used_ports[row] - of_symbols[code]
        in_use = of_nodes[self.node]
        in_use[[*used_ports]] = [bool(used) for used in used_ports.values()]
        return in_use

    def uses_port(self, port: HostPort) -> Mask:
        """(R,) whether exactly this host port is in use.

        A pod that is added takes its ports; one that is removed frees them even if another pod uses them.
        """
        snapshot = self.snapshot
        symbols = snapshot.tallies.symbols[Attribute.HOST_PORTS]

        def after(column: Int64s, changes: PodChanges) -> Int64s:
            has_port = np.array([*(isinstance(symbol, tuple) and port in symbol for symbol in symbols), False])
            concerned = has_port[snapshot.pods.codes[Attribute.HOST_PORTS, changes.pod]]
            column = column.copy()
            column[changes.row[concerned & (changes.sign < 0)]] = 0
            column[changes.row[concerned & (changes.sign > 0)]] = 1
            return column

        in_use = self._column(("port", port), lambda: snapshot.nodes.uses_port(port).astype(np.int64), after)
        return in_use.astype(np.bool_)

    @property
    def is_hypothetical(self) -> bool:
        """True if any pod was added or removed."""
        rows: Rows | None = self
        while rows is not None:
            if rows._changes is not None:
                return True
            rows = rows._base
        return False

    # The node itself.

    @property
    def allocatable(self) -> Int64s:
        return self._sums("allocatable", self.snapshot.nodes.allocatable)

    @property
    def only_node(self) -> NodeAmounts | None:
        """The amounts of the only row; None if there are more, or pods that come or go, and as `amounts_at` says."""
        if self._amounts is None and self._num_rows == 1 and self._base is None:
            self._amounts = self.snapshot.nodes.amounts_at(self.node.item())
        return self._amounts

    def allocatable_of(self, resource: str) -> Int64s:
        """(R,) status.allocatable of one resource, whether it is on axis K or not."""
        code, nodes = self.snapshot.resources.code_of(resource), self.snapshot.nodes
        if 0 <= code < self.snapshot.num_resources:
            return self.allocatable[:, code]
        return self.of_nodes(nodes.scalar(resource))

    def requested_of(self, resource: str) -> Int64s:
        """(R,) the requests of the pods on the row for one resource."""
        code = self.snapshot.resources.code_of(resource)
        if 0 <= code < self.snapshot.num_resources:
            return self.requested[:, code]
        requests = self.snapshot.pods.unoffered.get(resource)
        if requests is None:
            return np.zeros(len(self), np.int64)

        def per_node() -> Int64s:
            sums = np.zeros(len(self.snapshot.nodes), np.int64)
            node = self.snapshot.pods.node
            # Pods that were nominated after the snapshot was taken may have slots beyond it.
            placed = [(node[slot], amount) for slot, amount in requests.items() if slot < len(node) and node[slot] >= 0]
            places, amounts = np.array(placed, np.int64).reshape(-1, 2).T
            np.add.at(sums, places, amounts)
            return sums

        def of_pods(pod: Index) -> Int64s:
            return np.array([requests.get(slot, 0) for slot in pod.tolist()], np.int64)

        return self._column(("requested", resource), per_node, _adding(of_pods))

    @property
    def allowed_pods(self) -> Int64s:
        return self._sums("allowed_pods", self.snapshot.nodes.allowed_pods)

    @property
    def unschedulable(self) -> Mask:
        mask = self.snapshot.nodes.unschedulable
        return mask if self.is_all else mask[self.node]

    @property
    def taint_set(self) -> Codes:
        """(R,) the code of the node's list of taints in `snapshot.nodes.taint_sets`."""
        return self.codes_of_nodes(self.snapshot.nodes.taint_set)

    def label(self, key: str) -> Codes:
        """(R,) the code of the node's value of a label in `snapshot.nodes.label(key).values`; -1 without the label."""
        return self.codes_of_nodes(self.snapshot.nodes.label(key).codes)

    def label_number(self, key: str, default: int = 0) -> Int64s:
        """(R,) the label's value as an integer; `default` where it is missing or does not parse as Go's int64."""
        label_values = self.snapshot.nodes.label(key).values
        values = [default if (number := parse_int64(value)) is None else number for value in label_values]
        # Code -1, which means no such label, indexes the last entry.
        numbers: Int64s = np.array([*values, default], np.int64)
        return numbers[self.label(key)]

    def of_nodes(self, per_node: Int64s) -> Int64s:
        """(R, ...) the rows' entries of an array over nodes."""
        return per_node if self.is_all else _taken(per_node, self.node)

    def codes_of_nodes(self, per_node: Codes) -> Codes:
        """(R,) the rows' entries of a column of codes over nodes."""
        return per_node if self.is_all else per_node[self.node]

    def of_values(self, column: LabelColumn, by_value: npt.NDArray[D]) -> npt.NDArray[D]:
        """(R,) the rows' entries of (V + 1,) by code, the last for nodes without the label. It may be a view."""
        return column.at_nodes(by_value, None if self.is_all else self.node)

    # Rows as objects.

    def node_info(self, row: int) -> NodeInfo:
        """Returns the row as a node with its pods: those there in order, less those removed, then those added."""
        (slots,) = self._slots_on([row])
        return self._node_info_of(row, slots)

    def node_infos(self) -> Iterator[NodeInfo]:
        return map(self._node_info_of, range(len(self)), self._slots_on(range(len(self))))

    def codes_on(self, chosen: Sequence[int], attribute: Attribute) -> list[set[int]]:
        """Returns, for each of these rows, the symbol codes of its pods for an attribute."""
        codes = self.snapshot.pods.codes[attribute]
        return [set(codes[np.array(slots, np.intp)].tolist()) - {ABSENT} for slots in self._slots_on(chosen)]

    def _node_info_of(self, row: int, slots: Sequence[int]) -> NodeInfo:
        snapshot = self.snapshot
        return NodeInfo(
            snapshot.nodes.objects[int(self.node[row])], tuple(snapshot.pod_at(slot) for slot in slots), row
        )

    def _slots_on(self, chosen: Sequence[int]) -> list[list[int]]:
        on_node = self.snapshot.pods.on_node
        slots = [list(on_node[place]) for place in self.node[np.array(chosen, np.intp)].tolist()]
        for row, pod, sign in self._changes_of(chosen):
            if sign < 0:
                slots[row].remove(pod)
            else:
                slots[row] += [pod] * sign
        return slots

    def _changes_of(self, chosen: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Yields (place in `chosen`, pod slot, sign) of all changes to these rows, in order."""
        steps: list[tuple[Index, Index, PodChanges]] = []
        rows: Rows | None = self
        index = np.array(chosen, np.intp)
        while rows is not None:
            if rows._changes is not None:
                steps.append((*_matches(rows._changes.row, index), rows._changes))
            if rows._index is not None:
                index = rows._index[index]
            rows = rows._base
        for hits, places, changes in reversed(steps):
            yield from zip(places.tolist(), changes.pod[hits].tolist(), changes.sign[hits].tolist(), strict=True)

    def _sums(self, key: str, per_node: Int64s, of_pods: Callable[[PodColumns, Index], Int64s] | None = None) -> Int64s:
        """Returns a column over rows: the sums per node plus `of_pods`, if given, of the changed pods."""
        column = self._columns.get(key)
        if column is None and self._base is None:
            column = self._columns[key] = self.of_nodes(per_node)
        elif column is None:
            pods = self.snapshot.pods
            changed = _unchanged if of_pods is None else _adding(lambda pod: of_pods(pods, pod))
            column = self._column(key, lambda: per_node, changed)
        return column

    def _column(self, key: Hashable, per_node: Callable[[], Int64s], changed: Changed) -> Int64s:
        """Returns a column over rows: the nodes' values, with the changes of this and all earlier steps applied."""
        cached = self._columns.get(key)
        if cached is not None:
            return cached
        if self._base is None:
            column = self.of_nodes(per_node())
        else:
            column = self._base._column(key, per_node, changed)
            if self._index is not None:
                column = _taken(column, self._index)
            if self._changes is not None:
                column = changed(column, self._changes)
        self._columns[key] = column
        return column


def _matches(needles: Index, values: Index) -> tuple[Index, Index]:
    """Returns every pair of places in `needles` and `values` with equal entries, in the order of the needles."""
    # Each needle's matches are a run in the sorted values. `needle` repeats each needle once per match, and `nth`
    # counts 0, 1, ... within its run.
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    first = np.searchsorted(in_order, needles, "left")
    counts = np.searchsorted(in_order, needles, "right") - first
    needle = np.repeat(np.arange(len(needles)), counts)
    nth = np.arange(len(needle)) - np.repeat(np.cumsum(counts) - counts, counts)
    return needle, order[first[needle] + nth]


def _unchanged(column: Int64s, changes: PodChanges) -> Int64s:
    """A step that leaves a column alone, because it does not depend on pods."""
    return column


def _taken(column: Int64s, places: Index) -> Int64s:
    """(C, ...) the entries at these places."""
    # Amounts of several resources are stored resource by resource, and so are what is taken of them.
    return column.take(places) if column.ndim == 1 else column.T.take(places, axis=1).T


def _adding(of_pods: Callable[[Index], Int64s]) -> Changed:
    return lambda column, changes: _with_changes(column, changes, of_pods(changes.pod))


def _with_changes(column: Int64s, changes: PodChanges, amount: Int64s) -> Int64s:
    # Columns of shape (R, K) are stored resource by resource; working on the transpose keeps every pass contiguous.
    result = column.T.copy()
    signed = amount.T * changes.sign
    if (
        changes.rows_are_distinct
        and len(changes) == result.shape[-1]
        and np.array_equal(changes.row, np.arange(len(changes)))
    ):
        result += signed
    elif changes.rows_are_distinct:
        result[..., changes.row] += signed
    elif result.ndim == 1:
        np.add.at(result, changes.row, signed)
    else:
        for resource, per_change in zip(result, signed, strict=True):
            np.add.at(resource, changes.row, per_change)
    return result.T

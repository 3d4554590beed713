"""Rows: R hypothetical nodes. A row is a node of the snapshot as if certain pods had come or gone.

An ordinary cycle has a row a node and no changes; nominated pods are a +1 on their node's row; the preemption dry run has a -1 for
every possible victim and a +1 for each that is reprieved. Upstream copies NodeInfo and CycleState for this and calls
AddPod/RemovePod; here it is the same arrays with the changes already in them, so a Filter cannot tell the difference.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from extender.golang.int64 import parse_int64
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.snapshot.axes import Codes, Index, Int64s, Mask
from extender.snapshot.pod_attributes import Attribute, HostPort
from extender.snapshot.snapshot import Snapshot
from extender.snapshot.symbols import ABSENT
from extender.snapshot.tallies import Among, Tally, Weight


@final
@dataclass(frozen=True, slots=True)
class PodChanges:
    """C pods that come to rows (sign +1) or leave them (-1)."""

    row: Index
    """(C,) which row."""
    pod: Index
    """(C,) pod slot."""
    sign: Int64s
    """(C,) +1 or -1."""
    one_a_row: bool = False
    """True promises that no row occurs twice; sums are then cheaper."""

    def __len__(self) -> int:
        return len(self.row)


@final
@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One row spelled out: the node and the pods that would be on it. For plugins that look at one node at a time."""

    node: Node
    pods: tuple[Pod, ...]
    row: int

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return self.node.metadata.labels


Changed = Callable[[Int64s, PodChanges], Int64s]
"""A column over rows before a step's changes -> after them."""


@final
class Rows:
    """R hypothetical nodes, in order. Make them with `Rows.of`, `take` and `changed`; they never change themselves."""

    __slots__ = ("_base", "_changes", "_columns", "_index", "node", "snapshot")

    def __init__(self, snapshot: Snapshot, node: Index, base: "Rows | None", index: Index | None, changes: PodChanges | None) -> None:
        self.snapshot = snapshot
        self.node = node
        """(R,) place of each row's node on axis N."""
        # A row's columns are those of the row it was made from (or of the snapshot), with this step's changes added.
        self._base = base
        self._index = index
        self._changes = changes
        self._columns: dict[Hashable, Int64s] = {}

    @staticmethod
    def of(snapshot: Snapshot, node: Index | None = None) -> "Rows":
        """The nodes as they are: all of them, or those at the given places on axis N."""
        return Rows(snapshot, snapshot.all_nodes if node is None else node, None, None, None)

    def __len__(self) -> int:
        return len(self.node)

    def __repr__(self) -> str:
        steps, rows = 0, self
        while rows._base is not None:
            steps, rows = steps + (rows._changes is not None), rows._base
        return f"<Rows [{len(self)} of {len(self.snapshot.nodes)} nodes, {steps} hypotheses]>"

    @property
    def is_all(self) -> bool:
        """True when the rows are the snapshot's nodes, in order and as they are."""
        return self._base is None and self.node is self.snapshot.all_nodes

    @property
    def names(self) -> list[str]:
        """The nodes' names, one a row."""
        objects = self.snapshot.nodes.objects
        return [objects[place].metadata.name for place in self.node.tolist()]

    def take(self, chosen: Mask | Index) -> "Rows":
        """Only these rows, renumbered; what was hypothetical stays so."""
        index: Index = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp, copy=False)
        if self._base is None:
            return Rows(self.snapshot, self.node[index], None, None, None)
        return Rows(self.snapshot, self.node[index], self, index, None)

    def changed(self, changes: PodChanges) -> "Rows":
        """The same rows with further pods come or gone."""
        if not len(changes):
            return self
        return Rows(self.snapshot, self.node, self, None, changes)

    # What is on the row, changes included.

    @property
    def requested(self) -> Int64s:
        """(R, K) effective requests of the pods on the row; overcommitted rows are not clipped."""
        pods = self.snapshot.pods
        return self._column("requested", lambda: self.snapshot.nodes.requested, _adding(lambda pod: pods.requests[pod]))

    @property
    def non_zero_requested(self) -> Int64s:
        """(R, 2) cpu and memory requests with the defaults of containers that ask for none."""
        pods = self.snapshot.pods
        return self._column("non_zero", lambda: self.snapshot.nodes.non_zero_requested, _adding(lambda pod: pods.non_zero_requests[pod]))

    @property
    def pod_count(self) -> Int64s:
        """(R,) how many pods are on the row."""
        return self._column("pod_count", lambda: self.snapshot.nodes.pod_count, _adding(lambda pod: np.ones(len(pod), np.int64)))

    def tally(self, attribute: Attribute, question: Hashable, weight: Weight, among: Among | None = None) -> Int64s:
        """(R,) the sum over the row's pods of the weight of their symbol; pods without one weigh 0.

        Arguments:
            question: equal questions must have equal weights: it is the key under which the answers are kept between cycles.
            among: which symbols can weigh anything; None for all.
        """
        tally = self.snapshot.tally(attribute, question, weight, among)
        return self._column((attribute, question), lambda: tally.per_node, _adding(self._weights_of_pods(attribute, tally)))

    def tally_change(self, attribute: Attribute, question: Hashable, weight: Weight, among: Among | None = None) -> Int64s | None:
        """(R,) by how much the row's changes move `tally` away from the node as it is; None when there are no changes.

        For questions that look across nodes: the rest of the cluster is as the snapshot has it, this row's own node is not.
        """
        if not self.is_hypothetical:
            return None
        snapshot = self.snapshot
        tally = snapshot.tallies.weighed(attribute, question, weight, among)

        def unchanged() -> Int64s:
            return np.zeros(len(snapshot.nodes), np.int64)

        return self._column(("change", attribute, question), unchanged, _adding(self._weights_of_pods(attribute, tally)))

    def _weights_of_pods(self, attribute: Attribute, tally: Tally) -> Callable[[Index], Int64s]:
        codes = self.snapshot.pods.codes[attribute]

        def of_pods(pod: Index) -> Int64s:
            weights: Int64s = tally.weights[codes[pod]]
            return weights

        return of_pods

    def uses_port(self, port: HostPort) -> Mask:
        """(R,) whether this very host port is in use.

        A pod that comes takes its ports, one that leaves frees them, whoever else has them.
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
        """True when any pod has come or gone."""
        rows: Rows | None = self
        while rows is not None:
            if rows._changes is not None:
                return True
            rows = rows._base
        return False

    # What the node itself is.

    @property
    def allocatable(self) -> Int64s:
        """(R, K) status.allocatable."""
        kept = self._columns.get("allocatable")
        if kept is None:
            kept = self._columns["allocatable"] = self.of_nodes(self.snapshot.nodes.allocatable)
        return kept

    def allocatable_of(self, resource: str) -> Int64s:
        """(R,) status.allocatable of one resource, whether any pod asks for it or not."""
        code, nodes = self.snapshot.resources.code_of(resource), self.snapshot.nodes
        if 0 <= code < self.snapshot.num_resources:
            return self.allocatable[:, code]
        return self.of_nodes(nodes.scalar(resource))

    def requested_of(self, resource: str) -> Int64s:
        """(R,) what the pods on the row ask for of one resource."""
        code = self.snapshot.resources.code_of(resource)
        if 0 <= code < self.snapshot.num_resources:
            return self.requested[:, code]
        return np.zeros(len(self), np.int64)

    @property
    def allowed_pods(self) -> Int64s:
        """(R,) status.allocatable.pods."""
        return self.of_nodes(self.snapshot.nodes.allowed_pods)

    @property
    def unschedulable(self) -> Mask:
        """(R,) spec.unschedulable."""
        mask = self.snapshot.nodes.unschedulable
        return mask if self.is_all else mask[self.node]

    @property
    def taint_set(self) -> Codes:
        """(R,) code of the node's list of taints in `snapshot.nodes.taint_sets`."""
        return self.codes_of_nodes(self.snapshot.nodes.taint_set)

    def label(self, key: str) -> Codes:
        """(R,) code of the node's value of a label in `snapshot.nodes.label(key).values`; -1 without the label."""
        return self.codes_of_nodes(self.snapshot.nodes.label(key).codes)

    def label_number(self, key: str, default: int = 0) -> Int64s:
        """(R,) the label's value as an integer; `default` where it is missing or no int64, as Go reads one."""
        column = self.snapshot.nodes.label(key)
        values = [default if (number := parse_int64(value)) is None else number for value in column.values]
        # Code -1, "no such label", reads the last place.
        numbers: Int64s = np.array([*values, default], np.int64)
        return numbers[self.label(key)]

    def of_nodes(self, per_node: Int64s) -> Int64s:
        """(R, ...) the rows' entries of an array over nodes."""
        return per_node if self.is_all else per_node[self.node]

    def codes_of_nodes(self, per_node: Codes) -> Codes:
        """(R,) the rows' entries of a column of codes over nodes."""
        return per_node if self.is_all else per_node[self.node]

    # One row spelled out.

    def node_info(self, row: int) -> NodeInfo:
        """The row as a node with its pods: those of the node in order, without the ones that left, then the ones that came."""
        (slots,) = self._slots_on([row])
        return self._spelled_out(row, slots)

    def node_infos(self) -> Iterator[NodeInfo]:
        """Every row as `node_info` has it."""
        return map(self._spelled_out, range(len(self)), self._slots_on(range(len(self))))

    def codes_on(self, asked: Sequence[int], attribute: Attribute) -> list[set[int]]:
        """For each of these rows the codes of the symbols that its pods have of an attribute."""
        codes = self.snapshot.pods.codes[attribute]
        return [set(codes[np.array(slots, np.intp)].tolist()) - {ABSENT} for slots in self._slots_on(asked)]

    def _spelled_out(self, row: int, slots: Sequence[int]) -> NodeInfo:
        snapshot = self.snapshot
        return NodeInfo(snapshot.nodes.objects[int(self.node[row])], tuple(snapshot.pod_at(slot) for slot in slots), row)

    def _slots_on(self, asked: Sequence[int]) -> list[list[int]]:
        """The pods of each of these rows, in order."""
        on_node = self.snapshot.pods.on_node
        slots = [list(on_node[place]) for place in self.node[np.array(asked, np.intp)].tolist()]
        for at, pod, sign in self._changes_of(asked):
            if sign < 0:
                slots[at].remove(pod)
            else:
                slots[at].append(pod)
        return slots

    def _changes_of(self, asked: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """(place in `asked`, pod slot, sign) of all changes to these rows, in the order in which they were supposed."""
        steps: list[tuple[Index, Index, PodChanges]] = []
        rows: Rows | None = self
        index = np.array(asked, np.intp)
        while rows is not None:
            if rows._changes is not None:
                steps.append((*_matches(rows._changes.row, index), rows._changes))
            if rows._index is not None:
                index = rows._index[index]
            rows = rows._base
        for hits, places, changes in reversed(steps):
            yield from zip(places.tolist(), changes.pod[hits].tolist(), changes.sign[hits].tolist(), strict=True)

    def _column(self, key: Hashable, per_node: Callable[[], Int64s], changed: Changed) -> Int64s:
        """A column over rows: the nodes' values, and on top what the changes of this and all earlier steps do to them."""
        known = self._columns.get(key)
        if known is not None:
            return known
        if self._base is None:
            column = self.of_nodes(per_node())
        else:
            column = self._base._column(key, per_node, changed)
            if self._index is not None:
                column = column[self._index]
            if self._changes is not None:
                column = changed(column, self._changes)
        self._columns[key] = column
        return column


def _matches(needles: Index, values: Index) -> tuple[Index, Index]:
    """Every pair of a place in `needles` and a place in `values` with equal entries, in the order of the needles."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    first = np.searchsorted(in_order, needles, "left")
    counts = np.searchsorted(in_order, needles, "right") - first
    needle = np.repeat(np.arange(len(needles)), counts)
    nth = np.arange(len(needle)) - np.repeat(np.cumsum(counts) - counts, counts)
    return needle, order[first[needle] + nth]


def _adding(of_pods: Callable[[Index], Int64s]) -> Changed:
    """Pods that come add their amount, pods that leave take it away."""
    return lambda column, changes: _with_changes(column, changes, of_pods(changes.pod))


def _with_changes(column: Int64s, changes: PodChanges, amount: Int64s) -> Int64s:
    # Columns of shape (R, K) lie resource by resource in memory; working on the transpose keeps every pass contiguous.
    result = column.T.copy()
    signed = amount.T * changes.sign
    if changes.one_a_row:
        result[..., changes.row] += signed
    elif result.ndim == 1:
        np.add.at(result, changes.row, signed)
    else:
        for resource, per_change in zip(result, signed, strict=True):
            np.add.at(resource, changes.row, per_change)
    return result.T

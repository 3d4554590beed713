"""The answers of plugins: a Status for one question, Verdicts about many rows; and the diagnosis made of them.

Upstream: pkg/scheduler/framework, interface.go, NodeToStatus; types.go, Diagnosis, FitError.Error.
"""

import enum
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Index, Int64s, Mask
from extender.values.objects.node import Node

Codes8 = npt.NDArray[np.int8]

_BITS_BESIDE_A_ROW: Final = 50
"""The number of yes or no answers that fit into an int64 beside a row number."""
_FEW: Final = 32
"""Up to this many different values are compared one by one."""


class Code(enum.IntEnum):
    """Upstream's numbers and names: staging/src/k8s.io/kube-scheduler/framework/interface.go."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        return _CODE_NAMES[self]


_CODE_NAMES: Final = {code: code.name.title().replace("_", "") for code in Code}
_SUCCESS: Final = int(Code.SUCCESS)  # numpy compares with a plain int in a fraction of the time
_SUCCEEDED, _SKIPPED = Code.SUCCESS, Code.SKIP  # by names of their own, since an enum searches for a member
_REJECTIONS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


@final
@dataclass(frozen=True, slots=True)
class Status:
    """A code, its reasons, and the plugin that refused, which only the framework sets."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    for_equal_pods: bool = field(default=False, compare=False)
    """True promises that every pod with equal spec, labels, annotations and namespace gets the same Status, whatever
    the cluster is; of PreFilter, until a device class changes.
    """

    @property
    def is_success(self) -> bool:
        return self.code is _SUCCEEDED

    @property
    def is_skip(self) -> bool:
        """True if the plugin does not apply to this pod."""
        return self.code is _SKIPPED

    @property
    def is_rejected(self) -> bool:
        """True if the pod was refused, as opposed to an error."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        return Status(self.code, self.reasons, plugin)

    def __bool__(self) -> bool:
        raise TypeError("a Status is not a yes or no; ask is_success, is_rejected or is_skip")


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)
SKIP_EQUAL_PODS = Status(Code.SKIP, for_equal_pods=True)
"""Skip by PreFilter or PreScore that follows from the pod's spec, labels, annotations and namespace alone. The plugin
is not asked again for equal pods, so that later points must do without what it wrote into the state.
"""
SUCCESS_EQUAL_PODS = Status(Code.SUCCESS, for_equal_pods=True)
"""Success by PreScore, or by a PreFilter that narrows nothing, that follows from these alone, as does what the plugin
wrote into the state. The plugin is not asked again for equal pods: their states hold the same values, which must be
immutable.
"""


def unschedulable(*reasons: str) -> Status:
    """Returns a refusal that removing pods might resolve."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Returns a refusal that removing pods cannot resolve."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(reason: str) -> Status:
    """Returns an error, which ends the cycle."""
    return Status(Code.ERROR, (reason,))


@final
class Verdicts(msgspec.Struct, frozen=True):
    """A code per row, and for each reason the rows it holds for."""

    codes: Codes8
    """(R,) values of Code."""
    reasons: tuple[tuple[str, Mask], ...] = ()
    """(reason, (R,) rows it holds for), in the order in which a row lists its reasons."""
    refused_by: tuple[tuple[str, Mask], ...] = ()
    """(plugin, (R,) rows it refused). Only the framework sets it."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def ok(self) -> Mask:
        """(R,) the rows that passed."""
        passed: Mask = self.codes == _SUCCESS
        return passed

    @property
    def all_ok(self) -> bool:
        return not np.count_nonzero(self.codes)  # faster than any()

    def reasons_of(self, row: int) -> list[str]:
        return [reason for reason, mask in self.reasons if mask[row]]

    def status_of(self, row: int) -> Status:
        plugin = next((name for name, mask in self.refused_by if mask[row]), "")
        return Status(Code(int(self.codes[row])), tuple(self.reasons_of(row)), plugin)

    def statuses_of(self, rows: Index) -> list[Status]:
        """Returns the statuses of these rows. Rows with the same answer share a Status."""
        distinct, which = self.distinct_statuses(rows)
        return [distinct[group] for group in which.tolist()]

    def distinct_statuses(self, rows: Index) -> tuple[list[Status], Index]:
        """Returns the few different statuses of these rows, and (R,) which of them each row has."""
        # A row's answer as a number: its code, then a bit for each reason and plugin.
        answers = self.codes[rows].astype(np.int64)
        masks = {id(mask): mask for _, mask in (*self.reasons, *self.refused_by)}
        for number, mask in enumerate(masks.values(), 1):
            answers = 2 * answers + mask[rows]
            if number % _BITS_BESIDE_A_ROW == 0:
                answers = _grouped(answers)[1]
        firsts, which = _grouped(answers)
        return [self.status_of(row) for row in rows[firsts].tolist()], which

    def __bool__(self) -> bool:
        raise TypeError("Verdicts are not a yes or no; ask ok or all_ok")


def accept(num_rows: int) -> Verdicts:
    """Returns verdicts that let every row pass."""
    return Verdicts(np.zeros(num_rows, np.int8))


def reject(mask: Mask, reason: str, *, unresolvable: bool = False) -> Verdicts:
    """Returns verdicts that refuse the rows of the mask for one reason; preemption ignores `unresolvable` ones."""
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Verdicts(mask.astype(np.int8) * np.int8(code), ((reason, mask),))


def first_of(verdicts: Sequence[Verdicts]) -> Verdicts:
    """Returns for each row the first refusal, as a Filter that returns at its first failing check."""
    if len(verdicts) == 1:
        return verdicts[0]
    codes = verdicts[0].codes.copy()
    reasons = list(verdicts[0].reasons)
    for later in verdicts[1:]:
        still_ok = codes == _SUCCESS
        codes += later.codes * still_ok  # where nothing has refused so far the code is 0
        reasons += [(reason, mask & still_ok) for reason, mask in later.reasons]
    return Verdicts(codes, tuple(reasons))


def _grouped(values: Int64s) -> tuple[Index, Index]:
    """Returns (G,) the first place of each different value, and (R,) the group of each value."""
    which = np.full(len(values), -1, np.intp)
    firsts: list[int] = []
    # With few different values, a comparison for each of them is faster than sorting.
    while len(firsts) < _FEW and np.count_nonzero(which < 0):
        first = int((which < 0).argmax())
        which[values == values[first]] = len(firsts)
        firsts.append(first)
    if np.count_nonzero(which < 0):
        _, places, which = np.unique(values, return_index=True, return_inverse=True)
        return places, which
    return np.array(firsts, np.intp), which


@final
class NodeStatuses:
    """The statuses of all nodes: explicit ones, and one for every node that has none."""

    __slots__ = ("_distinct", "_explicit", "_listed", "_nodes", "_which", "absent")

    def __init__(self, explicit: dict[str, Status] | None = None, absent: Status | None = None) -> None:
        self.absent: Final = unresolvable() if absent is None else absent
        self._explicit: dict[str, Status] | None = {} if explicit is None else explicit
        # The same without a step for each node: the nodes, the different statuses, and which of them each node has.
        self._nodes: tuple[Sequence[Node], Index] = [], np.zeros(0, np.intp)
        self._distinct: Sequence[Status] = []
        self._which: Index = np.zeros(0, np.intp)
        self._listed: tuple[int, str] = -1, ""

    @staticmethod
    def refused(verdicts: Verdicts, rows: Rows, absent: Status) -> "NodeStatuses":
        """Returns the statuses of the refused rows; nodes that are not among the rows have the `absent` one."""
        refused = np.flatnonzero(verdicts.codes != Code.SUCCESS)
        distinct, which = verdicts.distinct_statuses(refused)
        return NodeStatuses.at(rows.snapshot.nodes.objects, rows.node[refused], distinct, which, absent)

    @staticmethod
    def at(
        nodes: Sequence[Node], places: Index, distinct: Sequence[Status], which: Index, absent: Status
    ) -> "NodeStatuses":
        """Returns the statuses of the nodes at these places; `which` are indices into `distinct`."""
        statuses = NodeStatuses(absent=absent)
        statuses._explicit = None
        statuses._nodes, statuses._distinct, statuses._which = (nodes, places), distinct, which
        return statuses

    def joined(self, other: "NodeStatuses") -> "NodeStatuses":
        """Returns these statuses and those of other nodes of the same snapshot; both must be by place."""
        if not other._distinct:
            return self
        (nodes, places), distinct = self._nodes, [*self._distinct, *other._distinct]
        which = np.concatenate((self._which, other._which + len(self._distinct)))
        return NodeStatuses.at(nodes, np.concatenate((places, other._nodes[1])), distinct, which, self.absent)

    def without(self, places: Index) -> "NodeStatuses":
        """Returns these statuses, which must be by place, without those of some nodes."""
        nodes, own_places = self._nodes
        is_kept = ~np.isin(own_places, places)
        return NodeStatuses.at(nodes, own_places[is_kept], self._distinct, self._which[is_kept], self.absent)

    @property
    def explicit(self) -> dict[str, Status]:
        """Node -> its explicit status; made when it is first read."""
        if self._explicit is None:
            (nodes, places), distinct = self._nodes, self._distinct
            pairs = zip(places.tolist(), self._which.tolist(), strict=True)
            self._explicit = {nodes[place].metadata.name: distinct[group] for place, group in pairs}
        return self._explicit

    def of(self, node: str) -> Status:
        return self.explicit.get(node, self.absent)

    def at_place(self, place: int, snapshot: Snapshot) -> Status:
        """Returns the status of the node at this place, without making those of other nodes."""
        if self._explicit is None and self._nodes[0] is snapshot.nodes.objects:
            matches = np.flatnonzero(self._nodes[1] == place)
            return self._distinct[int(self._which[matches[-1]])] if len(matches) else self.absent
        return self.of(snapshot.nodes.objects[place].metadata.name)

    def counts(self) -> list[tuple[Status, int]]:
        """Returns the explicit statuses, each with the number of nodes that share it."""
        if self._explicit is None:
            return [*zip(self._distinct, np.bincount(self._which, minlength=len(self._distinct)).tolist(), strict=True)]
        return [*Counter(self._explicit.values()).items()]

    def listed(self, num_all_nodes: int) -> str:
        """Returns the number of nodes with each reason, as kube-scheduler lists them."""
        if self._listed[0] != num_all_nodes or self._explicit is not None:
            counts: Counter[str] = Counter()
            explicit = self.counts()
            rest = num_all_nodes - sum(number for _, number in explicit)
            for status, number in (*explicit, (self.absent, max(rest, 0))):
                for reason in status.reasons if number else ():
                    counts[reason] += number
            self._listed = num_all_nodes, ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return self._listed[1]

    def mark(self, mask: Mask, snapshot: Snapshot, judge: Callable[[Status], bool]) -> None:
        """Sets the entries in the (N,) mask of nodes with an explicit status to `judge(status)`."""
        if self._explicit is None and self._nodes[0] is snapshot.nodes.objects:
            judged = np.array([judge(status) for status in self._distinct], np.bool_)
            mask[self._nodes[1]] = judged[self._which]
            return
        for name, status in self.explicit.items():
            place = snapshot.nodes.index.get(name)
            if place is not None:
                mask[place] = judge(status)


@final
class Diagnosis(msgspec.Struct, frozen=True):
    """Why no node was feasible."""

    statuses: NodeStatuses
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    post_filter_message: str = ""


def fit_error_message(num_all_nodes: int, diagnosis: Diagnosis) -> str:
    """Returns the message of the pod's event and condition."""
    message = f"0/{num_all_nodes} nodes are available:"
    if diagnosis.pre_filter_message:
        message += f" {diagnosis.pre_filter_message}."
    else:
        listed = diagnosis.statuses.listed(num_all_nodes)
        if listed:
            message += f" {listed}."
    if diagnosis.post_filter_message:
        message += f" {diagnosis.post_filter_message}"
    return message


class NoNodesAvailableError(Exception):
    """The cluster has no node at all."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")

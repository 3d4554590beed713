"""What a plugin answers: a Status for one question, Verdicts for one question about many rows; and what becomes of them."""

import enum
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import numpy.typing as npt

from extender.snapshot.axes import Index, Mask

Codes8 = npt.NDArray[np.int8]


class Code(enum.IntEnum):
    """Upstream's numbers and names: staging/src/k8s.io/kube-scheduler/framework/interface.go (v1.36.2)."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        return _CODE_NAMES[self]


_CODE_NAMES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_REJECTIONS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


@final
@dataclass(frozen=True, slots=True)
class Status:
    """One answer: a code, why, and (set by the framework alone) which plugin refused."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """The pod may go on."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """The plugin has nothing to say about this pod."""
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """The pod was refused, as opposed to: something went wrong."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """The reasons, joined."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """The same answer, signed."""
        return Status(self.code, self.reasons, plugin)

    def __bool__(self) -> bool:
        raise TypeError("a Status is not a yes or no; ask is_success, is_rejected or is_skip")


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Refused; removing pods might help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Refused; removing pods will not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(reason: str) -> Status:
    """Something went wrong; the cycle ends."""
    return Status(Code.ERROR, (reason,))


@final
@dataclass(frozen=True, slots=True)
class Verdicts:
    """A code per row, and for each reason the rows it holds for."""

    codes: Codes8
    """(R,) values of Code."""
    reasons: tuple[tuple[str, Mask], ...] = ()
    """(reason, (R,) rows it holds for), in the order in which a row lists its reasons."""
    refused_by: tuple[tuple[str, Mask], ...] = ()
    """(plugin, (R,) rows it refused). Only the framework fills this in."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def ok(self) -> Mask:
        """(R,) rows that passed."""
        passed: Mask = self.codes == Code.SUCCESS
        return passed

    @property
    def all_ok(self) -> bool:
        """True when every row passed."""
        return not self.codes.any()

    def reasons_of(self, row: int) -> list[str]:
        """Why this row was refused, in order."""
        return [reason for reason, mask in self.reasons if mask[row]]

    def status_of(self, row: int) -> Status:
        """The row's answer by itself."""
        plugin = next((name for name, mask in self.refused_by if mask[row]), "")
        return Status(Code(int(self.codes[row])), tuple(self.reasons_of(row)), plugin)

    def statuses_of(self, rows: Index) -> list[Status]:
        """The answers of these rows. Rows that were told the same share a Status: there are many rows, but few different answers."""
        told = [self.codes[rows] == code for code in Code] + [mask[rows] for _, mask in (*self.reasons, *self.refused_by)]
        bits = np.packbits(np.stack(told, axis=1), axis=1)
        width, packed = bits.shape[1], bits.tobytes()
        known: dict[bytes, Status] = {}
        statuses: list[Status] = []
        for place, row in enumerate(rows.tolist()):
            key = packed[place * width : (place + 1) * width]
            status = known.get(key)
            if status is None:
                status = known[key] = self.status_of(row)
            statuses.append(status)
        return statuses

    def __bool__(self) -> bool:
        raise TypeError("Verdicts are not a yes or no; ask ok or all_ok")


def accept(num_rows: int) -> Verdicts:
    """Every row passes."""
    return Verdicts(np.zeros(num_rows, np.int8))


def reject(mask: Mask, reason: str, *, unresolvable: bool = False) -> Verdicts:
    """The marked rows are refused for one reason, the others pass.

    Arguments:
        mask: (R,) rows to refuse.
        unresolvable: removing pods from the node cannot help, so preemption leaves it alone.
    """
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Verdicts(mask.astype(np.int8) * np.int8(code), ((reason, mask),))


def first_of(verdicts: Sequence[Verdicts]) -> Verdicts:
    """Each row gets the first refusal it met, as a Filter that returns at its first failing check."""
    codes = verdicts[0].codes.copy()
    reasons = list(verdicts[0].reasons)
    for later in verdicts[1:]:
        still_ok = codes == Code.SUCCESS
        codes = np.where(still_ok, later.codes, codes).astype(np.int8)
        reasons += [(reason, mask & still_ok) for reason, mask in later.reasons]
    return Verdicts(codes, tuple(reasons))


@final
@dataclass(slots=True)
class NodeStatuses:
    """The answers for all nodes: explicit ones, and one for every node that has none.

    Upstream: pkg/scheduler/framework/interface.go, NodeToStatus (v1.36.2).
    """

    explicit: dict[str, Status] = field(default_factory=dict)
    absent: Status = field(default_factory=unresolvable)

    def of(self, node: str) -> Status:
        """The node's answer."""
        return self.explicit.get(node, self.absent)


@final
@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why no node was feasible.

    Upstream: pkg/scheduler/framework/types.go, Diagnosis (v1.36.2).
    """

    statuses: NodeStatuses
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    post_filter_message: str = ""


def fit_error_message(num_all_nodes: int, diagnosis: Diagnosis) -> str:
    """The sentence of a pod's event and condition.

    Upstream: pkg/scheduler/framework/types.go, FitError.Error (v1.36.2).
    """
    message = f"0/{num_all_nodes} nodes are available:"
    if diagnosis.pre_filter_message:
        message += f" {diagnosis.pre_filter_message}."
    else:
        counts = _histogram(num_all_nodes, diagnosis.statuses)
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        if listed:
            message += f" {listed}."
    if diagnosis.post_filter_message:
        message += f" {diagnosis.post_filter_message}"
    return message


def _histogram(num_all_nodes: int, statuses: NodeStatuses) -> Counter[str]:
    counts: Counter[str] = Counter(_reasons(statuses.explicit.values()))
    rest = num_all_nodes - len(statuses.explicit)
    if rest > 0:
        for reason in statuses.absent.reasons:
            counts[reason] += rest
    return counts


def _reasons(statuses: Iterable[Status]) -> Iterable[str]:
    return (reason for status in statuses for reason in status.reasons)


class NoNodesAvailableError(Exception):
    """The cluster has no node at all."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")

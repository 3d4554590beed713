"""What a plugin answers: a Status for one question, Verdicts for a question about many rows; and the diagnosis made of them."""

import enum
from collections import Counter
from collections.abc import Sequence
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
    """A code, its reasons, and the plugin that refused, which only the framework sets."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    for_equal_pods: bool = field(default=False, compare=False)
    """True promises that every pod with equal spec, labels, annotations and namespace gets the same Status, whatever the cluster is."""

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """True if the plugin does not apply to this pod."""
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """True if the pod was refused, as opposed to an error."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """The reasons, joined by commas."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """Returns the same status with the name of the plugin."""
        return Status(self.code, self.reasons, plugin)

    def __bool__(self) -> bool:
        raise TypeError("a Status is not a yes or no; ask is_success, is_rejected or is_skip")


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)
SKIP_EQUAL_PODS = Status(Code.SKIP, for_equal_pods=True)
"""Skip by PreFilter or PreScore that follows from the pod's spec, labels, annotations and namespace alone. The plugin is not asked again
for equal pods, so that later points must do without what it wrote into the state."""


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
@dataclass(frozen=True, slots=True)
class Verdicts:
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
        passed: Mask = self.codes == Code.SUCCESS
        return passed

    @property
    def all_ok(self) -> bool:
        """Whether every row passed."""
        return not np.count_nonzero(self.codes)  # faster than any()

    def reasons_of(self, row: int) -> list[str]:
        """Returns why this row was refused, in order."""
        return [reason for reason, mask in self.reasons if mask[row]]

    def status_of(self, row: int) -> Status:
        """Returns the status of one row."""
        plugin = next((name for name, mask in self.refused_by if mask[row]), "")
        return Status(Code(int(self.codes[row])), tuple(self.reasons_of(row)), plugin)

    def statuses_of(self, rows: Index) -> list[Status]:
        """Returns the statuses of these rows. Rows with the same answer share a Status: there are many rows, but few different answers."""
        # A row's answer as a bit string, one bit per code, reason and plugin, so that equal answers are found by a dict.
        masks = {id(mask): mask for _, mask in (*self.reasons, *self.refused_by)}
        facts = [self.codes[rows] == code for code in Code] + [mask[rows] for mask in masks.values()]
        bits = np.packbits(np.stack(facts, axis=1), axis=1)
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
    """Returns verdicts that let every row pass."""
    return Verdicts(np.zeros(num_rows, np.int8))


def reject(mask: Mask, reason: str, *, unresolvable: bool = False) -> Verdicts:
    """Returns verdicts that refuse the marked rows for one reason and let the others pass.

    Arguments:
        mask: (R,) rows to refuse.
        unresolvable: removing pods from the node cannot help, so preemption ignores it.
    """
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Verdicts(mask.astype(np.int8) * np.int8(code), ((reason, mask),))


def first_of(verdicts: Sequence[Verdicts]) -> Verdicts:
    """Returns for each row the first refusal, as a Filter that returns at its first failing check."""
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
    """The statuses of all nodes: explicit ones, and one for every node that has none.

    Upstream: pkg/scheduler/framework/interface.go, NodeToStatus (v1.36.2).
    """

    explicit: dict[str, Status] = field(default_factory=dict)
    absent: Status = field(default_factory=unresolvable)

    def of(self, node: str) -> Status:
        """Returns the status of the node."""
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
    """Returns the message of the pod's event and condition.

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
    counts: Counter[str] = Counter()
    # Many nodes share a Status, which may have thousands of reasons: one for each resource that the pod requests.
    shared = {id(status): status for status in statuses.explicit.values()}
    for which, number in Counter(map(id, statuses.explicit.values())).items():
        for reason in shared[which].reasons:
            counts[reason] += number
    rest = num_all_nodes - len(statuses.explicit)
    if rest > 0:
        for reason in statuses.absent.reasons:
            counts[reason] += rest
    return counts


class NoNodesAvailableError(Exception):
    """The cluster has no node at all."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")

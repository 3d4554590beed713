"""Reporter: takes note of a scheduler's decisions. Its methods return nothing, so that no reporter can change a decision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, ParamSpec, final

from extender import framework as fwk
from extender.framework import Candidates, PreemptionOutcome
from extender.klog.logger import Logger
from extender.objects.pod import Pod
from extender.queue.queued_pod_info import QueuedPodInfo
from extender.runtime.findings import Findings
from extender.snapshot import Rows
from extender.snapshot.axes import Int64s

P = ParamSpec("P")

_LOG: Final = Logger(__name__)


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """A call of the extender by another scheduler, about a pod."""

    pod: Pod
    profile: str
    num_nodes: int
    """The number of nodes in the call."""
    seconds: float
    """How long the answer took."""


class Reporter:
    """The base of reporters, which override what they are interested in. Methods are called in the order in which things happen.

    Arrays and `Candidates` hold only while a method runs.
    """

    # An attempt. Pods are scheduled one at a time, and `decided` or `failed` ends an attempt.

    def chose(self, pod: Pod, rows: Rows, total: Int64s, highest: int) -> None:
        """The pod can choose from these nodes.

        Arguments:
            total: (R,) the weighted scores.
            highest: no total is above it, or below its negative.
        """

    def refused(self, pod: Pod, findings: Findings) -> None:
        """No node is feasible."""

    def sought_room(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        """Preemption was tried."""

    def decided(self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float) -> None:
        """The pod has a node, and is going to be bound.

        Arguments:
            evaluated, feasible: the numbers of nodes that were evaluated, and of those that passed.
        """

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        """The pod has no node: all nodes were refused, or an error happened."""

    # After the attempt.

    def not_bound(self, pod: Pod, status: fwk.Status) -> None:
        """The pod had a node, and could not be bound to it."""

    def victims_told(self, preemptor: Pod, *, done: bool) -> None:
        """The victims of the pod's last preemption were evicted; or, if not done, that failed."""

    # Calls of the extender by another scheduler.

    def asked_filter(self, asked: Asked, findings: Findings, num_kept: int) -> None:
        """The filter verb was called."""

    def asked_prioritize(self, asked: Asked, nodes: Sequence[str], scores: Sequence[int]) -> None:
        """The prioritize verb was called. Scores are from 0 to 10."""

    def asked_preempt(self, asked: Asked, candidates: Candidates) -> None:
        """The preempt verb was called; there may be no candidates."""

    def asked_in_vain(self, asked: Asked, message: str) -> None:
        """A verb was called and could not be answered."""

    def nominated(self, pod: Pod) -> None:
        """Another scheduler has nominated the pod to the node that its status names."""


@final
class Guarded(Reporter):
    """Passes calls on to another reporter, and catches its exceptions. The first one is logged."""

    def __init__(self, reporter: Reporter) -> None:
        """Guards a reporter that may fail."""
        self._reporter = reporter
        self._has_failed = False

    def _tell(self, hear: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hear(*args, **kwargs)
        except Exception as exc:
            self._complain(exc)

    def _complain(self, exc: Exception) -> None:
        if not self._has_failed:
            _LOG.exception(exc, "What was decided could not be reported; this is logged once")
        self._has_failed = True

    # The first two are called at every decision, and so without the detour through `_tell`.

    def chose(self, pod: Pod, rows: Rows, total: Int64s, highest: int) -> None:
        """Pass it on."""
        try:
            self._reporter.chose(pod, rows, total, highest)
        except Exception as exc:
            self._complain(exc)

    def decided(self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float) -> None:
        """Pass it on."""
        try:
            self._reporter.decided(info, profile, node, evaluated, feasible, seconds)
        except Exception as exc:
            self._complain(exc)

    def refused(self, pod: Pod, findings: Findings) -> None:
        """Pass it on."""
        self._tell(self._reporter.refused, pod, findings)

    def sought_room(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        """Pass it on."""
        self._tell(self._reporter.sought_room, pod, outcome)

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        """Pass it on."""
        self._tell(self._reporter.failed, info, profile, status, seconds)

    def not_bound(self, pod: Pod, status: fwk.Status) -> None:
        """Pass it on."""
        self._tell(self._reporter.not_bound, pod, status)

    def victims_told(self, preemptor: Pod, *, done: bool) -> None:
        """Pass it on."""
        self._tell(self._reporter.victims_told, preemptor, done=done)

    def asked_filter(self, asked: Asked, findings: Findings, num_kept: int) -> None:
        """Pass it on."""
        self._tell(self._reporter.asked_filter, asked, findings, num_kept)

    def asked_prioritize(self, asked: Asked, nodes: Sequence[str], scores: Sequence[int]) -> None:
        """Pass it on."""
        self._tell(self._reporter.asked_prioritize, asked, nodes, scores)

    def asked_preempt(self, asked: Asked, candidates: Candidates) -> None:
        """Pass it on."""
        self._tell(self._reporter.asked_preempt, asked, candidates)

    def asked_in_vain(self, asked: Asked, message: str) -> None:
        """Pass it on."""
        self._tell(self._reporter.asked_in_vain, asked, message)

    def nominated(self, pod: Pod) -> None:
        """Pass it on."""
        self._tell(self._reporter.nominated, pod)


NO_REPORTER: Final = Guarded(Reporter())
"""A reporter that does nothing."""

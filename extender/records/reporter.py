"""Reporter: who is told what a scheduler does. It answers nothing, so that it cannot change a decision."""

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
    """What another scheduler asked about a pod."""

    pod: Pod
    profile: str
    num_nodes: int
    """That it asked about."""
    seconds: float
    """That the answer took."""


class Reporter:
    """Hears of attempts, in the order in which things happen; what is not of interest need not be overridden.

    Arrays and `Candidates` hold only while the method runs.
    """

    # An attempt. One pod is decided about at a time, and `decided` or `failed` ends it.

    def chose(self, pod: Pod, rows: Rows, total: Int64s, highest: int) -> None:
        """The pod could choose from these nodes.

        Arguments:
            total: (R,) the weighted scores.
            highest: none of them is above it, or below its negative.
        """

    def refused(self, pod: Pod, findings: Findings) -> None:
        """No node takes the pod as things are."""

    def sought_room(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        """Pods of lower priority were looked at: which would have to go?"""

    def decided(self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float) -> None:
        """The pod has a node, and goes on to be bound.

        Arguments:
            evaluated, feasible: how many nodes were looked at, and how many passed.
        """

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        """The pod has no node: it was refused, or something went wrong."""

    # What becomes of it.

    def not_bound(self, pod: Pod, status: fwk.Status) -> None:
        """The pod had a node, and was not bound to it after all."""

    def victims_told(self, preemptor: Pod, *, done: bool) -> None:
        """The victims of the pod's last preemption were told to go; or that came to nothing."""

    # What another scheduler asks of the extender.

    def asked_filter(self, asked: Asked, findings: Findings, num_kept: int) -> None:
        """Which nodes does the pod fit on?"""

    def asked_prioritize(self, asked: Asked, nodes: Sequence[str], scores: Sequence[int]) -> None:
        """How good is each node? Scores are from 0 to 10."""

    def asked_preempt(self, asked: Asked, candidates: Candidates) -> None:
        """Who has to go? The answer may name no node."""

    def asked_in_vain(self, asked: Asked, message: str) -> None:
        """Any of these, and it could not be answered."""

    def nominated(self, pod: Pod) -> None:
        """Another scheduler has promised room to the pod, on the node that its status names."""


@final
class Guarded(Reporter):
    """Tells another reporter, and keeps what goes wrong there from whoever tells. The first time is logged."""

    def __init__(self, reporter: Reporter) -> None:
        """Guard a reporter that may fail."""
        self._reporter = reporter
        self._has_failed = False

    def _tell(self, hear: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hear(*args, **kwargs)
        except Exception as exc:
            self._complain(exc)

    def _complain(self, exc: Exception) -> None:
        if not self._has_failed:
            _LOG.exception(exc, "What was decided could not be reported; this is said once")
        self._has_failed = True

    # The first two are told at every decision, and so without a detour.

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
"""Nobody is told."""

"""Reporter: takes note of a scheduler's decisions. Methods return nothing, so that none can change a decision. Decided:
a decision about a pod, in a form in which two decisions can be compared.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.framework import Candidate, Candidates, PreemptionOutcome
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.runtime.findings import Findings
from extender.engine.runtime.scoring import Choice
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)


@final
class VerbCall(msgspec.Struct, frozen=True):
    """A call of the extender by another scheduler, about a pod."""

    pod: Pod
    profile: str
    num_nodes: int
    seconds: float
    """The duration of the answer."""
    caller: str = ""
    """The name of the user who called, or the address of an unknown one."""


class Reporter:
    """The base of reporters, whose methods are called in the order of events.

    Arrays, choices and `Candidates` hold only while a method runs.
    """

    # An attempt. Pods are scheduled one at a time, and `decided` or `failed` ends an attempt.

    def scored(self, pod: Pod, choice: Choice) -> None:
        """A node was chosen for the pod, among several."""

    def refused(self, pod: Pod, findings: Findings) -> None:
        """No node is feasible."""

    def preemption_tried(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        """Preemption was tried."""

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        """The pod has a node of those feasible among the evaluated ones, and is going to be bound."""

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        """The pod has no node: all nodes were refused, or an error happened."""

    def group_preempts(self, first: Pod, chosen: Candidate, without_policies: Candidate | None) -> None:
        """Victims were chosen for a pod group, whose first member's attempt is about to end.

        `without_policies` are the victims that kube-scheduler would take, if they are others.
        """

    # After the attempt.

    def binding_failed(self, pod: Pod, status: fwk.Status) -> None:
        """The pod had a node, and could not be bound to it."""

    def preemption_ended(self, preemptor: Pod, *, done: bool) -> None:
        """The victims of the pod's last preemption were evicted; or, if not done, that failed."""

    # Calls of the extender by another scheduler.

    def filter_called(self, call: VerbCall, findings: Findings, num_kept: int) -> None:
        """The filter verb was called."""

    def prioritize_called(self, call: VerbCall, nodes: Sequence[str], scores: Sequence[int]) -> None:
        """The prioritize verb was called. Scores are from 0 to 10."""

    def preempt_called(self, call: VerbCall, candidates: Candidates, without_policies: Candidate | None) -> None:
        """The preempt verb was called; there may be no candidates."""

    def call_failed(self, call: VerbCall, message: str) -> None:
        """A verb was called and could not be answered."""

    def nominated(self, pod: Pod) -> None:
        """Another scheduler has nominated the pod to the node that its status names."""


@final
class Reporters(Reporter):
    """Passes decisions on to reporters. One that fails keeps nothing from others; its first exception is logged."""

    def __init__(self, *reporters: Reporter) -> None:
        nested = (part.reporters if isinstance(part, Reporters) else (part,) for part in reporters)
        self.reporters: Final[tuple[Reporter, ...]] = tuple(chain.from_iterable(nested))
        self.logged: Final[set[Reporter]] = set()


def _passed_on(name: str) -> Callable[..., None]:
    method_of = attrgetter(name)

    def tell(composite: Reporters, *args: Any, **kwargs: Any) -> None:
        for reporter in composite.reporters:
            try:
                method_of(reporter)(*args, **kwargs)
            except Exception as exc:
                if reporter not in composite.logged:
                    _LOG.exception(exc, "What was decided could not be reported; this is logged once")
                composite.logged.add(reporter)

    return tell


for _name in [name for name in vars(Reporter) if not name.startswith("_")]:
    setattr(Reporters, _name, _passed_on(_name))

NO_REPORTER: Final = Reporters()


@final
class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about a pod."""

    node: str = ""
    status: str = ""
    """The status without a node: Unschedulable, Error and so on."""
    message: str = ""
    nominated: str = ""
    """The node that preemption is to make free."""
    victims: tuple[str, ...] = ()
    """The pods to evict, as namespace/name."""

    def is_like(self, other: "Decided") -> bool:
        """True if both decide the same. Their messages may differ."""
        return (self.node, self.status, self.nominated, {*self.victims}) == (
            other.node,
            other.status,
            other.nominated,
            {*other.victims},
        )

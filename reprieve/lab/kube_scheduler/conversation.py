"""What kube-scheduler asks an extender about each pod, what is answered, and what becomes of the pod."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from extender.assembly.backend import Tap
from extender.engine.framework import Candidate, Candidates
from extender.engine.reporter import Decided, Reporter, VerbCall
from extender.engine.runtime.findings import Findings
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab.shadow.changes import decision_in

_UNDECIDED: Final = Decided()


@final
@dataclass(frozen=True, slots=True)
class ExtendedAttempt:
    """One attempt of kube-scheduler to place a pod."""

    pod: str = ""
    """namespace/name"""
    num_offered: int | None = None
    """How many nodes kube-scheduler's own plugins left over; None if it did not ask."""
    offered: tuple[str, ...] = ()
    """Those that are known here."""
    refused: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What the rule said against nodes, and those nodes; without nodes, against all."""
    scores: tuple[tuple[str, int], ...] = ()
    """From 0 to 10, the best first."""
    evictions: tuple[tuple[str, int], ...] | None = None
    """Nodes, and how many pods would have to go there; None if kube-scheduler did not ask."""
    error: str = ""
    """Why a verb was not answered."""
    decided: Decided = _UNDECIDED


@final
class Conversation(Reporter):
    """Tells of each attempt when the cluster shows how it ended. State: what was asked about pods without an end."""

    def __init__(self, tell: Callable[[ExtendedAttempt], None]) -> None:
        self._tell: Final = tell
        self._asked: Final[dict[str, ExtendedAttempt]] = {}

    def tap(self) -> Tap:
        return Tap(changed=self.changed, reporter=self)

    def filter_called(self, call: VerbCall, findings: Findings, num_kept: int) -> None:
        """Begins an attempt: it is the first verb that kube-scheduler calls."""
        names, verdicts = findings.rows.names, findings.verdicts
        by_reason: dict[str, tuple[str, ...]] = {}
        for row in np.flatnonzero(~verdicts.ok).tolist():
            reason = ", ".join(text for text, mask in verdicts.reasons if mask[row])
            by_reason[reason] = (*by_reason.get(reason, ()), names[row])
        if not findings.pre_filter.is_success:
            by_reason = {findings.pre_filter.message: ()}
        self._asked[call.pod.uid] = ExtendedAttempt(
            num_offered=call.num_nodes, offered=tuple(names), refused=tuple(by_reason.items())
        )

    def prioritize_called(self, call: VerbCall, nodes: Sequence[str], scores: Sequence[int]) -> None:
        best = sorted(zip(nodes, scores, strict=True), key=lambda each: -each[1])
        self._asked[call.pod.uid] = replace(self._so_far(call), scores=tuple(best))

    def preempt_called(self, call: VerbCall, candidates: Candidates, without_policies: Candidate | None) -> None:
        evictions = tuple((each.node, len(each.victims)) for each in candidates.listed())
        self._asked[call.pod.uid] = replace(self._so_far(call), evictions=evictions)

    def call_failed(self, call: VerbCall, message: str) -> None:
        self._asked[call.pod.uid] = replace(self._so_far(call), error=message)

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Ends the attempt of a pod whose change shows what was decided."""
        decided = decision_in(old, new)
        if decided is not None and isinstance(new, Pod):
            self._tell(replace(self._asked.pop(new.uid, ExtendedAttempt()), pod=new.key, decided=decided))
        elif isinstance(old, Pod) and new is None:
            self._asked.pop(old.uid, None)

    def _so_far(self, call: VerbCall) -> ExtendedAttempt:
        return self._asked.get(call.pod.uid, ExtendedAttempt())

"""What kube-scheduler asks an extender about each pod, what is answered, and what becomes of the pod."""

from collections.abc import Callable, Sequence
from typing import Final, final

import numpy as np

from extender.answers.phrases import plural
from extender.assembly.backend import Tap
from extender.engine.framework import Candidate, Candidates
from extender.engine.reporter import Reporter, VerbCall
from extender.engine.runtime.findings import Findings
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab.shadow.changes import decision_in

Rows = list[tuple[str, str]]
"""Lines about one attempt of kube-scheduler to place a pod: who did what, and the rest of the sentence."""

_NAMED: Final = 4
"""Nodes that a line names."""


@final
class Conversation(Reporter):
    """Describes each attempt when the cluster shows its end. State: lines about open attempts."""

    def __init__(self, rule: str, tell: Callable[[str, Rows], None]) -> None:
        """`rule` is what lines call the plugins; `tell` is called with namespace/name of a pod, and its lines."""
        self._rule: Final = rule
        self._tell: Final = tell
        self._attempts: Final[dict[str, Rows]] = {}

    def tap(self) -> Tap:
        return Tap(changed=self.changed, reporter=self)

    def filter_called(self, call: VerbCall, findings: Findings, num_kept: int) -> None:
        """Begins an attempt: it is the first verb that kube-scheduler calls."""
        names, verdicts = findings.rows.names, findings.verdicts
        refused: dict[str, list[str]] = {}
        for row in np.flatnonzero(~verdicts.ok).tolist():
            refused.setdefault(", ".join(text for text, mask in verdicts.reasons if mask[row]), []).append(names[row])
        if not findings.pre_filter.is_success:
            refused = {findings.pre_filter.message: ["all"]}
        offered = f"{plural(call.num_nodes, 'node')}{': ' if names else ''}{_some(names)}"
        rows = [(f"{self._rule} refused", f"{_some(nodes)}: {why}") for why, nodes in refused.items()]
        self._attempts[call.pod.uid] = [
            ("kube-scheduler offered", offered),
            *(rows or [(f"{self._rule} refused", "none")]),
        ]

    def prioritize_called(self, call: VerbCall, nodes: Sequence[str], scores: Sequence[int]) -> None:
        best = sorted(zip(nodes, scores, strict=True), key=lambda scored: -scored[1])
        self._add(call, "scored", [f"{node} {score}" for node, score in best])

    def preempt_called(self, call: VerbCall, candidates: Candidates, without_policies: Candidate | None) -> None:
        descriptions = [
            f"{candidate.node} ({plural(len(candidate.victims), 'pod')})" for candidate in candidates.listed()
        ]
        self._add(call, "lets evict on", descriptions or ["no node"])

    def call_failed(self, call: VerbCall, message: str) -> None:
        self._add(call, "failed", [message])

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Ends the attempt of a pod whose change shows the decision."""
        decided = decision_in(old, new)
        if decided is not None and isinstance(new, Pod):
            why = "it did not call the extender" if decided.node else "its own plugins refused all"
            rows = self._attempts.pop(new.uid, [("kube-scheduler offered", f"no node: {why}")])
            waits = f"; it waits for {decided.nominated}" if decided.nominated else ""
            ended = ("kube-scheduler left it", f"pending: {decided.message}{waits}")
            self._tell(new.key, [*rows, ("kube-scheduler bound it", f"to {decided.node}") if decided.node else ended])
        elif isinstance(old, Pod) and new is None:
            self._attempts.pop(old.uid, None)

    def _add(self, call: VerbCall, what: str, words: Sequence[str]) -> None:
        self._attempts.setdefault(call.pod.uid, []).append((f"{self._rule} {what}", _some(words)))


def _some(words: Sequence[str]) -> str:
    rest = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")

"""Answers about a cluster that could be listed in part only, told so that they say what is not known."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

import msgspec
from msgspec.structs import replace

from extender.answers.catalogue import ExplainQuestion, PodsQuestion, Question, WhatIfQuestion
from extender.answers.overviews import FoundNames, PodList
from extender.answers.pending import Pending
from extender.answers.phrases import NOT_KNOWN, all_of, plural
from extender.answers.questions import Questions
from extender.answers.types import Capacity, Explanation, NearNode, Queue, WaterfallStep, WhatIf
from extender.engine.framework import NoNodesAvailableError
from reprieve.errors import SourceAwayError
from reprieve.sources.listing import in_words
from reprieve.sources.not_known import (
    BEST,
    BUDGETS,
    DEPENDANTS,
    DEVICES,
    NAME,
    NO_CLASSES,
    NODES,
    ROOM,
    VOLUMES,
    Dependants,
    Narrowing,
)

ADVICE: Final = "kubectl auth can-i --list shows what its user may do; the page Questions has roles to copy"
SETTLED: Final = ("Waiting", "Binding", "Scheduled", "Finished", "NotOurs", "Unreadable")
"""States in which nodes are not evaluated for a pod."""
_NO_NODES: Final = str(NoNodesAvailableError())


@final
class Retelling:
    """Adapts answers to what could not be listed. Calls raise SourceAwayError where nothing is left to answer."""

    def __init__(self, questions: Questions, narrowing: Narrowing) -> None:
        self._questions = questions
        self._narrowing = narrowing
        self._gaps: Final = narrowing.gaps

    async def __call__(self, question: Question[Any], answer: Any) -> Any:
        if not self._gaps:
            return answer
        match answer:
            case Explanation():
                if isinstance(question, ExplainQuestion) and not self._is_there(answer):
                    self._check_pods(question.namespace)  # Events alone do not say that it is gone
                return self._explanation(answer)
            case None | PodList() if isinstance(question, ExplainQuestion | PodsQuestion):
                self._check_pods(question.namespace)
            case Pending() | Queue():
                self._check_pods("")
                return self._waiting(answer)
            case WhatIf() if isinstance(question, WhatIfQuestion):
                return self._what_if(question, answer)
            case Capacity():
                self._check(NODES)
                return replace(answer, notes=(*answer.notes, *self._notes_about(answer.stopped_by)))
            case FoundNames() | None:
                pass
            case _:  # such as a plan: it is about pods of all namespaces
                self._check(NODES)
                self._check(ROOM)
                self._check_known(answer)
        return answer

    # What ends a question.

    def check_trials(self) -> None:
        """Raises SourceAwayError if nothing can be tried."""
        self._check(NODES)

    def _check(self, needed: Dependants) -> None:
        for gap in needed.missing(self._gaps):
            raise SourceAwayError(f"{NOT_KNOWN}: {needed.what}, since {in_words([gap])}: {gap.why}; {ADVICE}")

    def _check_known(self, answer: Any) -> None:
        for unknown in self._unknowns_in(msgspec.json.encode(answer).decode()):
            self._check(unknown)

    def _check_pods(self, namespace: str) -> None:
        gap = self._gaps.get("pods")
        if gap is not None and (gap.is_total or (namespace and namespace not in gap.namespaces)):
            where = f" in {namespace}" if namespace else ""
            raise SourceAwayError(
                f"{NOT_KNOWN}: which pods there are{where}, since {in_words([gap])}: {gap.why}; {ADVICE}"
            )

    # Explanations.

    def _is_there(self, answer: Explanation) -> bool:
        return self._questions.pod(answer.pod.namespace, answer.pod.name) is not None

    def _explanation(self, answer: Explanation) -> Explanation:
        pod = self._questions.pod(answer.pod.namespace, answer.pod.name)
        unknowns = [] if pod is None else self._narrowing.concerning(pod)
        answer = replace(answer, notes=self._true(answer.notes))
        if answer.state in SETTLED:
            if not unknowns:
                return answer
            notes = (*answer.notes, *self._notes(unknowns))
            return replace(answer, scores=(), scores_of="", choice="", notes=notes)
        if NODES.missing(self._gaps):
            return self._of_the_pod_alone(answer, unknowns)
        unknown = next((step for step in answer.waterfall if step.plugin == NAME), None)
        if unknown is not None:
            return self._undecided(answer, unknown)
        unknowns = self._unknowns_in(answer.message)
        unknowns += [BEST] if answer.feasible_nodes > 1 else [ROOM]
        unknowns += [NO_CLASSES] if pod is None and not answer.feasible_nodes else []
        return replace(answer, nearest=_without_ours(answer.nearest), notes=(*answer.notes, *self._notes(unknowns)))

    def _of_the_pod_alone(self, answer: Explanation, unknowns: Sequence[Dependants]) -> Explanation:
        its, notes = answer.standing, self._notes([NODES, *unknowns])
        if answer.events is not None and answer.events.why_none:
            notes = (*notes, f"{NOT_KNOWN}: its Events, since {answer.events.why_none}")
        return replace(
            answer,
            summary=_sentence(answer, f"which nodes there are is not known, since {NODES.since(self._gaps)}"),
            message="",
            standing=None if its is None else replace(its, now=""),
            notes=(*answer.notes, *notes),
        )

    def _undecided(self, answer: Explanation, unknown: WaterfallStep) -> Explanation:
        reasons = [reason.reason for reason in unknown.reasons]
        steps = tuple(step for step in answer.waterfall if step is not unknown)
        refusing: dict[str, int] = {}
        for step in steps:
            refusing[step.plugin] = refusing.get(step.plugin, 0) + step.refused
        since = all_of(reason.removeprefix(f"{NOT_KNOWN}, since ") for reason in reasons)
        nodes = plural(answer.total_nodes, "node")
        if refusing:
            refusals = all_of(f"{plugin} refuses {number}" for plugin, number in refusing.items())
            whether = f"it is not known whether it fits: {refusals} of {nodes}, and of {unknown.refused}"
            text = f"{whether} no more is known, since {since}"
        else:
            where = "the only node" if answer.total_nodes == 1 else f"any of {nodes}"
            text = f"it is not known whether it fits on {where}, since {since}"
        its = answer.standing
        return replace(
            answer,
            summary=_sentence(answer, text),
            message="",
            waterfall=steps,
            nearest=_without_ours(answer.nearest),
            preemption=None,
            group=None,
            standing=None if its is None else replace(its, now=""),
            notes=(*answer.notes, *self._notes(self._unknowns_in(*reasons))),
        )

    # Others.

    def _waiting(self, answer: Pending | Queue) -> Pending | Queue:
        blind = NODES.reason(self._gaps) if NODES.missing(self._gaps) else ""

        def corrected(text: str) -> str:
            return blind if blind and text == _NO_NODES else text

        if isinstance(answer, Queue):
            places = (
                replace(place, message=corrected(place.message), claims=self._true(place.claims))
                for place in answer.items
            )
            return replace(answer, items=tuple(places))
        reasons = (
            replace(reason, reason=corrected(reason.reason), claims=self._true(reason.claims))
            for reason in answer.reasons
        )
        return replace(answer, reasons=tuple(reasons))

    def _what_if(self, question: WhatIfQuestion, answer: WhatIf) -> WhatIf:
        self._check(NODES)
        request = question.request
        if (
            request.add_nodes
            or request.drain_nodes
            or request.remove_nodes
            or request.configuration
            or request.include_pending
        ):
            self._check(ROOM)  # it is about pods of all namespaces
        unknown = [
            placement for placement in answer.placements if not placement.node and NOT_KNOWN in placement.message
        ]
        messages = [
            *(placement.message for placement in unknown),
            *(placement.message for placement in answer.evictions),
        ]
        unknowns = [*([BUDGETS] if answer.evictions else []), *([BEST] if answer.placements else [])]
        unknowns += [NO_CLASSES] if request.create and (answer.evictions or answer.unplaced) else []
        notes = (*answer.notes, *self._notes_about(" ".join(messages), *unknowns))
        if not unknown:
            return replace(answer, notes=notes)
        number, placed = len(answer.placements), sum(bool(placement.node) for placement in answer.placements)
        summary = f"It is not known of {len(unknown)} of {plural(number, 'pod')} whether they would be scheduled."
        if number == 1:
            summary = f"It is not known whether {unknown[0].pod.key} would be scheduled: {unknown[0].message}"
        elif placed:
            summary = f"{summary} {placed} would be."
        return replace(answer, summary=summary, notes=notes)

    # Notes.

    def _true(self, notes: Sequence[str]) -> tuple[str, ...]:
        """Drops notes about claims that rest on missing kinds."""
        wrong = [(VOLUMES, "the claim "), (DEVICES, "the resource claim ")]
        begins = tuple(text for subject, text in wrong if subject.missing(self._gaps))
        return tuple(note for note in notes if not note.startswith(begins))

    def _unknowns_in(self, *messages: str) -> list[Dependants]:
        """Returns the unknowns that the messages mention."""
        return [
            unknown
            for unknown in DEPENDANTS
            if unknown.missing(self._gaps) and any(unknown.since(self._gaps) in message for message in messages)
        ]

    def _notes_about(self, message: str, *unknowns: Dependants) -> tuple[str, ...]:
        return self._notes([*self._unknowns_in(message), *unknowns])

    def _notes(self, unknowns: Iterable[Dependants]) -> tuple[str, ...]:
        return tuple(unknown.note(self._gaps) for unknown in dict.fromkeys(unknowns) if unknown.missing(self._gaps))


def _sentence(answer: Explanation, text: str) -> str:
    """Returns the summary with another text about nodes, after the pod's own obstacle."""
    if answer.state == "Gated":
        return f"{answer.summary.partition('; apart from that')[0]}; apart from that, {text}."
    if answer.state == "Nominated":
        return f"It is nominated to {answer.node}; {text}."
    return f"{text[0].upper()}{text[1:]}."


def _without_ours(nearest: Sequence[NearNode]) -> tuple[NearNode, ...]:
    """Drops our own plugin's reasons, and nodes that it alone refuses."""
    refused = (
        replace(
            node,
            plugins=tuple(name for name in node.plugins if name != NAME),
            reasons=tuple(reason for reason in node.reasons if not reason.startswith(NOT_KNOWN)),
        )
        for node in nearest
    )
    return tuple(node for node in refused if node.plugins)

"""ReplayedExtenders: they answer what they answered when it was recorded, and say so when they are asked something
else.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Final, final

from extender.client.http_extender import ExtenderCalls
from extender.engine import framework as fwk
from extender.lab.recordings.entries import ExtenderAnswer, RecordedAttempt
from extender.lab.recordings.extender_answers import (
    FILTER,
    PREEMPT,
    PRIORITIZE,
    question_about_candidates,
    question_about_nodes,
    recorded_name,
)
from extender.lab.recordings.recorder import EXTENDER_BINDING
from extender.lab.simulation.replayed_writes import ReplayedWrites
from extender.values.config.configuration import Extender
from extender.values.objects.meta import ObjectMeta
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.verb_results import Filtered
from extender.values.protocol.wire_types import HostPriority, MetaVictims

_WORDS: Final = {FILTER: "which of {} pass", PRIORITIZE: "how good {} are", PREEMPT: "whom to evict on {}"}


@final
class ReplayedExtenders:
    """The answers to the attempt under way. State: those that were not given yet, and what was asked that has none."""

    def __init__(self, writes: ReplayedWrites) -> None:
        """Arguments: writes: answers what extenders that bind are asked."""
        self.writes = writes
        self.is_imposing = False
        """Whether the node of the attempt is settled, so that whatever is asked about passes."""
        self.unasked: list[str] = []
        """The questions of the attempt that were not asked when it was recorded."""
        self._answers: dict[tuple[str, str, str], deque[ExtenderAnswer]] = {}

    def begin(self, attempt: RecordedAttempt) -> None:
        """Takes the answers of an attempt."""
        self.is_imposing, self.unasked, self._answers = False, [], defaultdict(deque)
        for answer in attempt.answers:
            self._answers[answer.extender, answer.verb, answer.question].append(answer)

    def calls(self, config: Extender, calls: ExtenderCalls) -> ExtenderCalls:
        """Returns the calls of an extender in place of its real ones."""
        return ReplayedCalls(self, recorded_name(config))

    def answer(self, extender: str, verb: str, question: str, number: int) -> ExtenderAnswer:
        """Returns the answer to the question about so many nodes.

        Raises:
            ExtenderError: it has none, or the call failed then, too.
        """
        found = self._answers.get((extender, verb, question))
        if not found or found[0].is_left_out:
            what = _WORDS[verb].format(f"{number} node{'' if number == 1 else 's'}")
            why = "its answer was too long to be recorded" if found else "it was not asked that"
            self.unasked.append(f"the extender {extender} would be asked {what}: {why}")
            raise fwk.ExtenderError(why)
        answer = found.popleft()
        if answer.error is not None:
            raise fwk.ExtenderError(answer.error)
        return answer


@final
class ReplayedCalls(ExtenderCalls):
    """The calls of one extender, answered from the recording."""

    def __init__(self, extenders: ReplayedExtenders, name: str) -> None:
        self._extenders = extenders
        self._name = name

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        names = [node.name for node in nodes]
        if self._extenders.is_imposing:
            return Filtered(names, nodes, {}, {})
        answer = self._extenders.answer(self._name, FILTER, question_about_nodes(nodes), len(nodes))
        passed = nodes if answer.passed is None else [nodes[place] for place in answer.passed]
        unknown = [Node(metadata=ObjectMeta(name=name)) for name in answer.unknown]
        failed, unresolvable = (
            {names[place]: reason for reason, places in reasons for place in places}
            for reasons in (answer.failed, answer.unresolvable)
        )
        return Filtered([node.name for node in (*passed, *unknown)], [*passed, *unknown], failed, unresolvable)

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        if self._extenders.is_imposing:
            return []
        answer = self._extenders.answer(self._name, PRIORITIZE, question_about_nodes(nodes), len(nodes))
        return [HostPriority(node.name, score) for node, score in zip(nodes, answer.scores, strict=True)]

    async def preempt(self, pod: Pod, candidates: Sequence[fwk.Candidate]) -> Mapping[str, MetaVictims | None]:
        answer = self._extenders.answer(self._name, PREEMPT, question_about_candidates(candidates), len(candidates))
        return {
            node: None if uids is None else MetaVictims.of(uids, violated) for node, violated, uids in answer.victims
        }

    async def bind(self, pod: Pod, node: str) -> None:
        try:
            await self._extenders.writes.answer_to(EXTENDER_BINDING, f"{self._name}/{pod.uid}")
        except fwk.CallError as exc:
            raise fwk.ExtenderError(str(exc)) from exc

    async def aclose(self) -> None:
        await asyncio.sleep(0)

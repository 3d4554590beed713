"""The answers to writes and to questions of extenders in a replay, as they were recorded."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast, final

from extender.client.http_extender import ExtenderCalls
from extender.engine import framework as fwk
from extender.values.config.configuration import Extender
from extender.values.objects.meta import ObjectMeta
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.verb_results import Filtered
from extender.values.protocol.wire_types import HostPriority, MetaVictims
from reprieve.lab.recordings.entries import ExtenderAnswer, RecordedAttempt, WriteAnswered, error_of, object_of
from reprieve.lab.recordings.extender_answers import (
    FILTER,
    PREEMPT,
    PRIORITIZE,
    question_about_candidates,
    question_about_nodes,
    recorded_name,
)
from reprieve.lab.recordings.recorder import EXTENDER_BINDING, is_answered, key_of_call

T = TypeVar("T")

_WORDS: Final = {FILTER: "which of {} pass", PRIORITIZE: "how good {} are", PREEMPT: "whom to evict on {}"}


@final
class ReplayedWrites(fwk.Dispatcher):
    """Answers writes when the recording comes to that. State: answers without a call, and calls without one."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], deque[WriteAnswered]] = defaultdict(deque)
        self._calls: dict[tuple[str, str], deque[asyncio.Future[Any]]] = defaultdict(deque)

    def answered(self, entry: WriteAnswered) -> None:
        """Answers the call of the entry, or the next one like it."""
        key = entry.call, entry.key
        waiting = self._calls.pop(key, deque())
        while waiting:
            call = waiting.popleft()
            if not call.done():
                _answer(call, entry)
                if waiting:
                    self._calls[key] = waiting
                return
        self._answers[key].append(entry)

    async def perform(self, call: fwk.ApiCall[T]) -> T:
        return cast("T", await self._begun(call)) if is_answered(call) else cast("T", None)

    def submit(self, call: fwk.ApiCall[T]) -> "asyncio.Future[T | None]":
        if is_answered(call):
            return self._begun(call)
        done: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def _begun(self, call: fwk.ApiCall[Any]) -> "asyncio.Future[Any]":
        return self.answer_to(type(call).__name__, key_of_call(call))

    def answer_to(self, call: str, about: str) -> "asyncio.Future[Any]":
        key = call, about
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if answers := self._answers.get(key):
            _answer(future, answers.popleft())
            if not answers:
                del self._answers[key]
        else:
            self._calls[key].append(future)
        return future


def _answer(call: "asyncio.Future[Any]", entry: WriteAnswered) -> None:
    error = error_of(entry)
    if error is None:
        call.set_result(object_of(entry))
    else:
        call.set_exception(error)


@final
class ReplayedExtenders:
    """The answers to the attempt under way. State: the answers left, and questions that have none."""

    def __init__(self, writes: ReplayedWrites) -> None:
        """`writes` answers for extenders that bind."""
        self.writes = writes
        self.is_imposing = False
        """Whether the node of the attempt is settled, so that all nodes pass."""
        self.unasked: list[str] = []
        """The questions of the attempt that were not asked when it was recorded."""
        self._answers: dict[tuple[str, str, str], deque[ExtenderAnswer]] = {}

    def begin(self, attempt: RecordedAttempt) -> None:
        self.is_imposing, self.unasked, self._answers = False, [], defaultdict(deque)
        for answer in attempt.answers:
            self._answers[answer.extender, answer.verb, answer.question].append(answer)

    def calls(self, config: Extender, calls: ExtenderCalls) -> ExtenderCalls:
        """Returns the calls of an extender in place of its real ones."""
        return ReplayedCalls(self, recorded_name(config))

    def answer(self, extender: str, verb: str, question: str, number: int) -> ExtenderAnswer:
        """Returns the answer about so many nodes. Raises ExtenderError if it has none, or the call failed then, too."""
        answers = self._answers.get((extender, verb, question))
        if not answers or answers[0].is_left_out:
            what = _WORDS[verb].format(f"{number} node{'' if number == 1 else 's'}")
            why = "its answer was too long to be recorded" if answers else "it was not asked that"
            self.unasked.append(f"the extender {extender} would be asked {what}: {why}")
            raise fwk.ExtenderError(why)
        answer = answers.popleft()
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

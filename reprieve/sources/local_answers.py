"""Answers worked out in this process."""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Final, TypeVar, final

from extender.answers.catalogue import Question, worked_out
from extender.answers.questions import Questions
from extender.values.concurrency.child_process import in_child

A = TypeVar("A")


@final
class LocalAnswers:
    """Questions as the commands ask them. Simulations are done in a child process, so that Ctrl-C ends them at once."""

    remembers: Final = False

    def __init__(
        self, questions: Questions, retold: Callable[[Question[Any], Any], Awaitable[Any]] | None = None
    ) -> None:
        """`retold` returns an answer as it is told where not all of the cluster is known."""
        self._questions: Final = questions
        self._retold = retold

    async def ask(self, question: Question[A]) -> A:
        if question.takes_worker:
            answer = await in_child(partial(worked_out, question, self._questions))
        else:
            outcome = question.ask(self._questions)
            answer = await outcome if isawaitable(outcome) else outcome
        return answer if self._retold is None else await self._retold(question, answer)

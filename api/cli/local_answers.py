"""Answers worked out in this process."""

from functools import partial
from inspect import isawaitable
from typing import Final, TypeVar, final

from extender.answers.catalogue import Question, worked_out
from extender.answers.questions import Questions
from extender.values.concurrency.child_process import in_child

A = TypeVar("A")


@final
class LocalAnswers:
    """Questions as the commands ask them. Simulations are done in a child process, so that Ctrl-C ends them at once."""

    remembers: Final = False

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def ask(self, question: Question[A]) -> A:
        if question.takes_worker:
            return await in_child(partial(worked_out, question, self._questions))
        made = question.ask(self._questions)
        return await made if isawaitable(made) else made

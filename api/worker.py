"""QuestionWorker: simulates for one question at a time, in a child process bounded in time and memory."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, final

from fastapi import Request

from api.callers.http_refusals import RETRY_SOON, Refusal
from api.callers.streaming import until_hang_up
from extender.values import limits
from extender.values.concurrency.child_process import ChildEndedError, DeadlineError, NoChildError, in_child

T = TypeVar("T")

_MIB: Final = 2**20


@final
class QuestionWorker:
    """State: how many questions are worked on or wait for their turn."""

    def __init__(self, seconds: float = limits.QUESTION_SECONDS, memory: int = limits.QUESTION_MEMORY) -> None:
        self._seconds: Final = seconds
        self._memory: Final = memory
        # One at a time: it takes a processor, and its first use of each page of memory copies it.
        self.turn: Final = asyncio.Lock()
        self.taken = 0

    async def answer(self, request: Request, work: Callable[[], T]) -> T:
        """Returns the result of the work, or raises its exception.

        Arguments:
            request: of the caller; the child ends when the caller hangs up.
            work: as for `in_child`; it reads the question as well, so that waiting questions are bytes.

        Raises:
            Refusal: 503 if too many wait or there is no answer in time, 413 if the answer takes too much memory.
            ClientDisconnect: the caller has hung up.
        """
        if self.taken >= limits.QUESTIONS_AT_ONE_TIME:
            raise Refusal(503, "too many evaluations at one time", RETRY_SOON)
        self.taken += 1
        try:
            async with until_hang_up(request), self.turn:
                return await in_child(work, seconds=self._seconds, memory=self._memory)
        except DeadlineError as exc:
            raise Refusal(503, f"no answer within {self._seconds:g} s: ask about less") from exc
        except MemoryError as exc:
            most = self._memory // _MIB
            raise Refusal(413, f"the answer takes more than {most} MiB of memory: ask about less") from exc
        except ChildEndedError as exc:
            most = self._memory // _MIB
            raise Refusal(413, f"{exc}, perhaps out of memory: the limit is {most} MiB") from exc
        except NoChildError as exc:
            raise Refusal(503, f"no process can be started for the answer: {exc}", RETRY_SOON) from exc
        finally:
            self.taken -= 1

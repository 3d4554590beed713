"""Processes that work for the service: expressions, and questions."""

import asyncio
import mmap
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable

from starlette.requests import Request
from starlette.types import Message

from api.callers.http_refusals import Refusal
from api.service_state import QuestionWorker
from extender.values import limits
from extender.values.cel import CelError, facts_of
from extender.values.cel.evaluation import Worker
from extender.values.objects.devices import Device
from tests.extender.values.cel.test_evaluation import LOOPS
from tests.extender.values.concurrency.test_child_process import children
from tests.limits.of_wire import ALMOST
from tests.limits.rows import Filled, Held, words

OWN_BYTES = 16 * 2**20
"""More than a process takes for itself while it works."""


def beside_its_own(size: int, limit: int) -> int:
    """Returns what a process takes at the limit, and above it."""
    return size + (OWN_BYTES if size > limit else -OWN_BYTES)


def evaluated_after(seconds: int) -> str:
    """Returns why there is no answer of a process that stands still for so many seconds, the first one aside."""
    worker, facts = Worker(), facts_of("dra.example.com", Device(name="d"))
    before = children()

    def evaluated() -> str:
        return words(lambda: worker.evaluate(LOOPS, facts), CelError)

    while evaluated():  # until it has started
        pass
    (process,) = children() - before
    if seconds > 1:
        os.kill(int(process), signal.SIGSTOP)
    reason = evaluated()
    assert children() - before == (set() if reason else {process})
    worker.close()
    return reason


_TAKES_MEMORY = """
import sys
from extender.values.cel import worker

worker.main()
taken = bytes(int(sys.argv[1]))
"""


def in_a_worker(size: int) -> str:
    """Returns what becomes of a process of expressions that takes so many bytes."""
    program = [sys.executable, "-c", _TAKES_MEMORY, str(beside_its_own(size, limits.EXPRESSION_MEMORY))]
    return subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stderr


async def worked(work: Callable[[], object]) -> str:
    """Returns why a question on which this is the work is refused; empty if it is answered."""

    async def receive() -> Message:
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    request = Request({"type": "http", "method": "POST", "path": "/", "headers": [], "client": ("a", 1)}, receive)
    request._body = b""
    try:
        await QuestionWorker().answer(request, work)
    except Refusal as exc:
        return f"{exc.code} {exc}"
    return ""


def wait(seconds: int) -> None:
    """Nearly so many seconds pass, without taking any, for the deadline of the process that this is."""
    seconds_left, _ = signal.getitimer(signal.ITIMER_REAL)
    remaining = seconds_left - seconds + ALMOST
    signal.setitimer(signal.ITIMER_REAL, max(remaining, 1e-6))
    if remaining <= 0:
        signal.pause()


def take_bytes(size: int) -> int:
    """Takes so many bytes from the kernel: the allocator may have some that others have left."""
    try:
        return len(mmap.mmap(-1, beside_its_own(size, limits.QUESTION_MEMORY)))
    except OSError as exc:
        raise MemoryError from exc


def answer_of_size(size: int) -> bytes:
    """Returns an answer that has so many bytes as the process writes it."""
    return b"x" * (size - len(pickle.dumps((b"x" * 1000, None))) + 1000)


PROCESSES: dict[str, Filled | Held] = {
    "EXPRESSION_MILLISECONDS": Held(
        "tests/extender/values/cel/test_evaluation.py::test_an_expression_that_takes_too_long_is_stopped",
        says="after a quarter of a second of CPU time",
    ),
    "EXPRESSION_MEMORY": Filled(in_a_worker, at="", above="MemoryError"),
    "EXPRESSION_WAIT_SECONDS": Filled(evaluated_after, above="actual cost limit exceeded", lowered_to=1),
    "QUESTION_SECONDS": Filled(lambda n: asyncio.run(worked(lambda: wait(n))), above="503 no answer within 100 s"),
    "QUESTION_MEMORY": Filled(
        lambda n: asyncio.run(worked(lambda: take_bytes(n))), above="413 the answer takes more than 1024 MiB of memory"
    ),
    "QUESTION_ANSWER_BYTES": Filled(
        lambda n: asyncio.run(worked(lambda: answer_of_size(n))),
        above="413 the answer has more than 100000 bytes",
        lowered_to=100_000,
    ),
}

"""Evaluates device selectors: cheap ones at once, all others in a worker process whose CPU time and memory are limited.

The interpreter is C++ code that keeps Python's global lock, so that an expression of a tenant would hold up every
thread, and it cannot be interrupted. Upstream counts the cost while the expression runs, and stops at a limit:
dynamic-resource-allocation/cel/compile.go.
"""

import atexit
import json
import math
import os
import selectors
import subprocess
import sys
from functools import lru_cache
from threading import Lock
from time import monotonic
from typing import Final, final

from extender.values import limits
from extender.values.cel.errors import CelError, CompileError
from extender.values.cel.functions import as_json
from extender.values.cel.selector import (
    CACHE_SIZE,
    CHEAP_CHARACTERS,
    CHEAP_WORK,
    COST_EXCEEDED,
    Facts,
    compiled,
)
from extender.values.concurrency.child_process import renewed_in_children


def is_cheap(expression: str) -> bool:
    """True if the expression compiles in a few milliseconds and runs in about one, for any valid device."""
    return work_of_expression(expression) <= CHEAP_WORK


@lru_cache(maxsize=CACHE_SIZE)
def work_of_expression(expression: str) -> float:
    """Returns the bound on the work for any valid device, 0.04 ms a thousand; infinite if slow or unsafe."""
    has_pattern = "matches" in expression or "find" in expression
    if len(expression) > CHEAP_CHARACTERS or (has_pattern and ("{" in expression or "\\" in expression)):
        # A regular expression with counted repetitions takes a thousand times its length in time and memory.
        return math.inf
    try:
        selector = compiled(expression)
        return selector.work if selector.is_safe else math.inf
    except CompileError:
        return 0


def evaluate(expression: str, facts: Facts) -> bool:
    """Returns whether the device with these facts matches. It blocks for up to a second if the expression is not cheap.

    Raises CompileError if it is invalid, CelError if it fails for the device, or takes more time or memory than it may.
    """
    if is_cheap(expression):
        return compiled(expression).matches(facts)
    return _WORKER.evaluate(expression, facts)


@final
class Worker:
    """The worker process. It is started when it is needed first, and again after an expression has ended it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._left: subprocess.Popen[bytes] | None = None
        """Another process's worker, which is not ended here."""

    def evaluate(self, expression: str, facts: Facts) -> bool:
        """Returns whether the device matches. Raises CelError as `evaluate`."""
        request = json.dumps([expression, facts.variables, facts.size], default=as_json).encode() + b"\n"
        with self._lock:
            answer = self._answer(request)
        if "matches" in answer:
            return bool(answer["matches"])
        raise (CompileError if answer["is_invalid"] else CelError)(answer["error"])

    def _answer(self, request: bytes) -> dict[str, object]:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = _started()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101  (both are pipes)
        try:
            process.stdin.write(request)
            process.stdin.flush()
            line = _line(process.stdout.fileno())
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            # The kernel ended it at its limit of CPU time, or it ran out of memory.
            self.close()
            return {"error": COST_EXCEEDED, "is_invalid": False}
        answer: dict[str, object] = json.loads(line)
        return answer

    def leave(self) -> None:
        """Leaves the worker process to the process that started it. For its forks, which start workers of their own."""
        self._lock, self._left, self._process = Lock(), self._process, None

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


_WORKER: Final = Worker()
atexit.register(_WORKER.close)
renewed_in_children(_WORKER.leave)


def _started() -> subprocess.Popen[bytes]:
    # It needs none of the environment, which may hold credentials. A session of its own keeps it from signals to the
    # terminal's processes.
    return subprocess.Popen(
        [sys.executable, "-m", "extender.values.cel.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def _line(descriptor: int) -> bytes:
    """Returns what the worker writes up to the end of a line; less if it ends or does not answer in time."""
    read, deadline = bytearray(), monotonic() + limits.EXPRESSION_WAIT_SECONDS
    with selectors.DefaultSelector() as ready:
        ready.register(descriptor, selectors.EVENT_READ)
        while not read.endswith(b"\n"):
            if not ready.select(deadline - monotonic()):
                break
            part = os.read(descriptor, 65536)
            if not part:
                break
            read += part
    return bytes(read)

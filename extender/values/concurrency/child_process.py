"""Work in a child process: a fork, which sees everything as it was at the moment of the call, and whose memory is gone
when it ends.

Python returns the memory of small objects to the system an arena at a time, so that one object that stays keeps a
mebibyte. What a large piece of work took therefore stays with the process that did it, however little of it is still
used.

Only the thread that forks goes on in a child. It is that of the event loop, between two steps, so that no state is half
changed and no lock of Python's is held by it; modules that hold locks, threads or processes of their own for others
renew them with `os.register_at_fork`.
"""

import ctypes
import gc
import os
import pickle
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, final

from extender.values.concurrency.abandoned import IsWanted, check_wanted, in_thread

T = TypeVar("T")

_ASKED_EVERY: Final = 0.05
"""Seconds between two looks at whether the result is still wanted."""
_STANDARD: Final = 3
"""The descriptors below are the standard ones, which the child keeps for its log."""
_NICER: Final = 5
"""By how much the child's priority is below that of the process, whose callers wait for less."""
_PR_SET_PDEATHSIG: Final = 1


@final
class ChildEndedError(Exception):
    """The child ended without a result: something else killed it, such as the kernel for want of memory."""


async def in_child(work: Callable[[], T]) -> T:
    """Returns the result of the work, or raises its exception; both have to be picklable. The caller's cancellation
    kills the child.

    The work must not use the event loop, its tasks or any open connection of the process. Its changes to objects are
    seen by nobody else. It is done in a thread where processes cannot be forked safely or at the moment.

    Raises:
        ChildEndedError: the child was killed.
    """
    reading, writing = os.pipe()
    try:
        pid = _fork()
    except OSError:
        # Too many processes, or not enough memory for another one.
        os.close(reading)
        os.close(writing)
        return await in_thread(lambda _: work())
    if pid == 0:
        _work_and_exit(work, writing)
    os.close(writing)
    child = _Child(pid, reading)
    try:
        result: T = await in_thread(child.result)
    finally:
        child.end_unless_awaited()
    return result


def _fork() -> int:
    if not sys.platform.startswith("linux"):
        raise OSError("forked processes may not use the frameworks of other systems")
    with warnings.catch_warnings():
        # Of forks beside threads: see above.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


# In the process.


@final
class _Child:
    """A running child and the pipe on which it writes its result."""

    def __init__(self, pid: int, reading: int) -> None:
        self._pid = pid
        self._reading = reading
        self._taken = threading.Lock()

    def result(self, is_wanted: IsWanted) -> Any:
        """Waits for the result and the child's end; kills the child when the result is not wanted any more."""
        self._taken.acquire()
        written = bytearray()
        waiting = select.poll()
        waiting.register(self._reading, select.POLLIN)
        while is_wanted():
            if waiting.poll(_ASKED_EVERY * 1e3):
                part = os.read(self._reading, 2**20)
                if not part:
                    break
                written += part
        else:
            os.kill(self._pid, signal.SIGKILL)
        code = self._ended()
        check_wanted(is_wanted)
        if code != 0:
            raise ChildEndedError(f"the process that worked on it ended with {code}")
        # Written by this program, in a process of its own.
        result, failure = pickle.loads(written)  # noqa: S301
        if failure is not None:
            raise failure
        return result

    def end_unless_awaited(self) -> None:
        """Kills the child if no thread has come to wait for its result."""
        if self._taken.acquire(blocking=False):
            os.kill(self._pid, signal.SIGKILL)
            self._ended()

    def _ended(self) -> int:
        os.close(self._reading)
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)


# In the child.


def _work_and_exit(work: Callable[[], object], writing: int) -> NoReturn:
    code = 1
    try:
        _become_a_child(writing)
        _write(writing, _outcome(work))
        code = 0
    finally:
        # Nothing of the process is finished or flushed a second time.
        os._exit(code)


def _become_a_child(writing: int) -> None:
    signal.set_wakeup_fd(-1)  # the process would read of the child's signals
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")  # where memory runs out, the process survives
    os.nice(_NICER)
    # A connection that the process closes stays open while the child has it, too.
    os.closerange(_STANDARD, writing)
    os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()  # a collection would write to every page


def _outcome(work: Callable[[], object]) -> bytes:
    """Returns (result, exception) as bytes."""
    try:
        return pickle.dumps((work(), None))
    except Exception as exc:
        exc.add_note(traceback.format_exc())
        return _picklable(exc)


def _picklable(exc: Exception) -> bytes:
    try:
        written = pickle.dumps((None, exc.with_traceback(None)))
        pickle.loads(written)  # noqa: S301
    except Exception:
        return pickle.dumps((None, RuntimeError("\n".join([repr(exc), *exc.__notes__]))))
    return written


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def renewed_in_children(renew: Callable[[], object]) -> None:
    """Calls `renew` in every child that the process forks, before anything else."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)

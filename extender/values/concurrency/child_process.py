"""Work in a child process: a fork, which sees everything as it was at the call, and whose memory is gone at its end.

Only the thread that forks goes on in a child. It is that of the event loop, between two steps, so that no state is half
changed and no lock of Python's is held by it; modules that hold locks, threads or processes of their own for others
renew them with `os.register_at_fork`. A lock of a C library that another thread held stays locked in the child: the
deadline ends a child that waits for it.
"""

import asyncio
import ctypes
import gc
import os
import pickle
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NoReturn, TypeVar, final

T = TypeVar("T")

_STANDARD: Final = 3
"""The descriptors below are the standard ones, which the child keeps for its log."""
_PART: Final = 2**18
"""Bytes that are read at one time."""
_PR_SET_PDEATHSIG: Final = 1
_ADDRESSES: Final = Path("/proc/self/statm")


@final
class NoChildError(Exception):
    """There are too many processes, or there is no memory for another one."""


@final
class ChildEndedError(Exception):
    """The child ended without a result: something else killed it, such as the kernel for want of memory."""


@final
class LongAnswerError(Exception):
    """The result has more bytes than are taken; the child was killed."""


@final
class DeadlineError(Exception):
    """The child was not ready in time, and was killed."""


async def in_child(work: Callable[[], T], *, seconds: float = 0.0, memory: int = 0, answer: int = sys.maxsize) -> T:
    """Returns the result of the work, or raises its exception; both have to be picklable. The caller's cancellation
    kills the child.

    The work must not use the event loop, its tasks or any open connection of the process. Its changes to objects are
    seen by nobody else. Where processes cannot be forked safely, which is everywhere but on Linux, a thread does the
    work while the event loop waits, without bounds.

    Raises DeadlineError or MemoryError where it takes more seconds, or more bytes than the process has, 0 for any
    number; LongAnswerError where the result has more than `answer` bytes; NoChildError if no process can be forked at
    the moment; ChildEndedError if the child was killed.
    """
    if not sys.platform.startswith("linux"):
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(work).result()
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: see above
            pid = os.fork()
    except OSError as exc:
        os.close(reading)
        os.close(writing)
        raise NoChildError(exc.strerror) from exc
    if pid == 0:
        _work_and_exit(work, writing, seconds, memory)
    os.close(writing)
    try:
        pickled = await _all_of(reading, answer)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])  # noqa: ASYNC222 - it has ended, or is killed
    if code == -signal.SIGALRM:
        raise DeadlineError(f"it takes longer than {seconds:g} s")
    if code != 0:
        raise ChildEndedError(f"the process that worked on it ended with {code}")
    # Written by this program, in a process of its own.
    result: T
    result, failure = pickle.loads(pickled)  # noqa: S301
    if failure is not None:
        try:
            raise failure
        finally:
            # Its traceback has this frame, and those of the callers: it would hold itself, and what they hold.
            del failure
    return result


async def _all_of(reading: int, max_bytes: int) -> bytes:
    """Returns what comes until the other side closes, and closes the descriptor, whatever happens.

    Raises LongAnswerError if that is more than so many bytes.

    No transport: uvloop's closes the descriptor of one that is cancelled while it opens, and so does the file that it
    was made of, when another may have got the number.
    """
    loop = asyncio.get_running_loop()
    received = bytearray()
    end = loop.create_future()

    def read() -> None:
        part = os.read(reading, _PART)
        received.extend(part)
        if (not part or len(received) > max_bytes) and not end.done():
            end.set_result(None)

    loop.add_reader(reading, read)
    try:
        await end
    finally:
        loop.remove_reader(reading)
        os.close(reading)
    if len(received) > max_bytes:
        raise LongAnswerError(f"the answer has more than {max_bytes} bytes")
    return bytes(received)


# In the child.


def _work_and_exit(work: Callable[[], object], writing: int, seconds: float, memory: int) -> NoReturn:
    code = 1
    try:
        _become_a_child(writing)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with open(writing, "wb") as file:
            file.write(_outcome(work, memory))
        code = 0
    finally:
        # Nothing of the process is finished or flushed a second time.
        os._exit(code)


def _become_a_child(writing: int) -> None:
    signal.set_wakeup_fd(-1)  # the process would read of the child's signals
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(signal_number, signal.SIG_DFL)
    # A process that is killed would leave a child that works for nobody.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # A connection that the process closes stays open while the child has it, too.
    os.closerange(_STANDARD, writing)
    os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()  # a collection would write to every page


def _outcome(work: Callable[[], object], memory: int) -> bytes:
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        if memory:
            _allow(memory, before)
        return pickle.dumps((work(), None))
    except Exception as exc:
        resource.setrlimit(resource.RLIMIT_AS, before)
        exc.add_note(traceback.format_exc())
        return _picklable(exc)


def _allow(memory: int, limit: tuple[int, int]) -> None:
    """Lets the process have so many more bytes of addresses than it has."""
    max_bytes = int(_ADDRESSES.read_bytes().split()[0]) * resource.getpagesize() + memory
    soft, hard = limit
    resource.setrlimit(
        resource.RLIMIT_AS, (max_bytes if soft == resource.RLIM_INFINITY else min(max_bytes, soft), hard)
    )


def _picklable(exc: Exception) -> bytes:
    try:
        pickled = pickle.dumps((None, exc.with_traceback(None)))
        pickle.loads(pickled)  # noqa: S301
    except Exception:
        return pickle.dumps((None, RuntimeError("\n".join([repr(exc), *exc.__notes__]))))
    return pickled


def renewed_in_children(renew: Callable[[], object]) -> None:
    """Calls `renew` in every child that the process forks, before anything else."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)

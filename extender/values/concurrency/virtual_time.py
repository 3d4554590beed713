"""Virtual time: an event loop in which waiting takes no time and outcomes do not depend on timing.

    assert virtual_time.run(asyncio.sleep(3600, "an hour later")) == "an hour later"

Everything that waits by the loop (`asyncio.sleep`, `asyncio.timeout`, `loop.time()`) wakes in the order it would in
reality, and in the same order in every run. Only in-memory transports work, because sockets and child processes run in
real time.
"""

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack, final

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

A_DAY = 24 * 60 * 60.0


class DeadlockError(RuntimeError):
    """Nothing can wake the loop any more, or it was still waiting at its horizon."""


def run(main: Coroutine[Any, Any, T], *, horizon: float = A_DAY) -> T:
    """Returns the result of `main`, on a new loop whose time begins at 0 and jumps to the next timer whenever nothing
    is ready.

    Work in threads (`asyncio.to_thread`) takes no virtual time: the clock stands until it is done. Tasks that wait for
    more than `horizon` seconds of it count as stuck.

    Raises DeadlockError, with the names of the tasks that wait, if `main` would wait forever; RuntimeError if a socket
    or a pipe was opened.
    """
    with runner(horizon=horizon) as virtual:
        return virtual.run(main)


def runner(*, horizon: float = A_DAY) -> asyncio.Runner:
    """Returns a runner for several calls on the same loop, see `run`. Between two calls time stands still."""
    return asyncio.Runner(loop_factory=lambda: _VirtualLoop(horizon))


@final
class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, horizon: float) -> None:
        self._clock = _TimeJumps(horizon, self._who_waits)
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    @property
    def _clock_resolution(self) -> float:
        """Lets no timer run early: who looks at the clock then would wait again, for no time and for ever."""
        return math.ulp(self._clock.now)

    @_clock_resolution.setter
    def _clock_resolution(self, _: float) -> None:
        """Takes no other, such as that of the system's clock."""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        self._clock.threads_at_work += 1
        future.add_done_callback(self._thread_is_done)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as asyncio has it
        # The loop starts a thread for this, which the clock has to wait for: no timeout runs out meanwhile.
        self._clock.threads_at_work += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._clock.threads_at_work -= 1

    def _thread_is_done(self, _: object) -> None:
        self._clock.threads_at_work -= 1

    def _who_waits(self) -> str:
        return (
            ", ".join(sorted(f"{task.get_name()} ({task.get_coro()!r})" for task in asyncio.all_tasks(self)))
            or "nobody"
        )


@final
class _TimeJumps(selectors.DefaultSelector):
    """A selector that is the clock, and advances it instead of waiting, except for threads."""

    def __init__(self, horizon: float, who_waits: Callable[[], str]) -> None:
        super().__init__()
        self.now = 0.0
        self.threads_at_work = 0
        self._horizon = horizon
        self._who_waits = who_waits

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.get_map():  # the first one is the loop's own pipe, through which threads wake it
            raise RuntimeError(
                "virtual time works with in-memory transports only: sockets, pipes and processes have a time of their "
                "own"
            )
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.threads_at_work:
            return super().select(0 if timeout == 0 else None)
        if timeout is None:
            raise DeadlockError(f"nothing will ever wake: {self._who_waits()}")
        self.now += timeout
        if self.now > self._horizon:
            self._horizon += self.now  # so that cancelled tasks have time to clean up
            raise DeadlockError(f"still waiting after {self.now:g} s: {self._who_waits()}")
        return super().select(0)

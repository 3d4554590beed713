"""Counts the files that each walk of ARCHITECTURE.md passes through: python -m tests.walks.count_files

A file of `extender`, `api` or `reprieve` counts if one of its functions is called. Every walk is counted for the second time, when
modules are loaded and what is kept between requests is there. Of a request, what other tasks of the service do
meanwhile is counted apart: a tick of the server, and the dispatcher, which writes an event beside the answer.
"""

import asyncio
import contextlib
import io
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from api.cli import main
from extender.testing import virtual_time
from tests.kit.objects import node, pod, priority_class
from tests.kit.scene.followed import a_cluster
from tests.kit.service import serving

ROOT = Path(__file__).parents[2]
OURS = (f"{ROOT}/extender/", f"{ROOT}/api/", f"{ROOT}/reprieve/")

PENDING = "batch/train-3"
"""A pod of the example cluster that stays pending: it fits on no node, and never preempts."""

SECONDS_TO_SETTLE = 5
"""The time in which the example cluster's own scheduler places the other pods, so that its work is not counted."""


OTHER_TASKS = frozenset({"Server.serve", "ApiDispatcher.run", "ApiDispatcher._work"})
"""The coroutines of tasks that are not a request's."""


class Passed:
    """The files whose functions are called while it is on, in every thread."""

    def __init__(self) -> None:
        self.is_on = False
        self._files: set[str] = set()
        self._beside: set[str] = set()

    def profile(self, frame: FrameType, event: str, arg: object) -> None:
        file = frame.f_code.co_filename
        if self.is_on and event == "call" and frame.f_code.co_name != "<module>" and file.startswith(OURS):
            (self._beside if _coroutine() in OTHER_TASKS else self._files).add(file)

    @contextlib.contextmanager
    def counting(self, walk: str, *, all_tasks: bool = False) -> Iterator[None]:
        self._files.clear()
        self._beside.clear()
        self.is_on = True
        yield
        self.is_on = False
        if all_tasks:
            self._files |= self._beside
        with_others = len(self._files | self._beside)
        print(
            f"{walk:34} {len(self._files):3} files"
            + (f", {with_others} with other tasks" if with_others > len(self._files) else "")
        )
        if "-v" in sys.argv:
            print(*(f"    {Path(file).relative_to(ROOT)}" for file in sorted(self._files)), sep="\n")


def _coroutine() -> str:
    """The name of the coroutine of the current task; empty outside of tasks."""
    with contextlib.suppress(RuntimeError):
        task = asyncio.current_task()
        return getattr(task.get_coro(), "__qualname__", "") if task is not None else ""
    return ""


def requests(passed: Passed) -> None:
    """Calls of kube-scheduler, pages and a command, each for the second time, at a service with the example cluster."""
    names = ["node-a1", "node-a2"]
    arguments: dict[str, Any] = {"Pod": pod("web"), "Nodes": None, "NodeNames": names}
    urgent: dict[str, Any] = {"Pod": pod("urgent", "4"), "NodeNameToMetaVictims": {key: {"Pods": []} for key in names}}
    urgent["Pod"]["spec"]["priority"] = 1000
    with serving() as service:
        time.sleep(SECONDS_TO_SETTLE)
        for is_last in (False, True):
            with passed.counting("(a) POST /filter") if is_last else contextlib.nullcontext():
                assert service.call("filter", arguments).status_code == 200
            with passed.counting("(d) reprieve why") if is_last else contextlib.nullcontext():
                _command(["why", PENDING, "--server", f"http://127.0.0.1:{service.port}"])
            with passed.counting("the first page") if is_last else contextlib.nullcontext():
                assert service.client.get("/").status_code == 200
            with passed.counting("(e) the page of a pod") if is_last else contextlib.nullcontext():
                assert service.client.get(f"/ui/pods/{PENDING}").status_code == 200
            with passed.counting("POST /preempt") if is_last else contextlib.nullcontext():
                assert service.call("preempt", urgent).status_code == 200
            time.sleep(1)  # the event about the preemption is written beside the call


def _command(arguments: list[str]) -> None:
    before, sys.argv = sys.argv, ["reprieve", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.argv = before


async def scheduling(passed: Passed) -> None:
    """A pod that is bound, and one that preempts another, each for the second time."""
    high = priority_class("high", 1000)
    async with a_cluster(high, node("a", "2"), node("b", "2")) as registry:
        registry.create(pod("first", "2"))
        await asyncio.sleep(5)
        with passed.counting("(b) a pending pod is bound", all_tasks=True):
            registry.create(pod("second", "2"))
            await asyncio.sleep(1)
        registry.create(pod("third", "2", priorityClassName="high"))
        await asyncio.sleep(60)
        with passed.counting("(c) a pod preempts, and is bound", all_tasks=True):
            registry.create(pod("fourth", "2", priorityClassName="high"))
            await asyncio.sleep(40)


if __name__ == "__main__":
    everything = Passed()
    threading.setprofile(everything.profile)
    sys.setprofile(everything.profile)
    requests(everything)
    virtual_time.run(scheduling(everything))

"""A plugin that says where a pod has come to, and goes on only when it was heard.

It asks `/progress/POINT/POD` of the server that the environment names, and whoever answers may take his time. The
process stands still meanwhile, but for PreBind and PostBind, which wait beside everything else.
"""

import asyncio
import os
import urllib.error
import urllib.request

from extender.engine import framework as fwk

LONGEST = 30.0
"""Seconds that a pod waits at Permit, if it is to."""


def say(point: str, pod: fwk.Pod) -> int:
    """The status code of the answer, which most do not care for."""
    try:
        with urllib.request.urlopen(
            f"{os.environ['PROGRESS_SERVER']}/progress/{point}/{pod.name}", timeout=60
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        return exc.code


class ProgressPlugin(fwk.PreFilterPlugin, fwk.ReservePlugin, fwk.PermitPlugin, fwk.PreBindPlugin, fwk.PostBindPlugin):
    """Changes nothing; but a pod waits at Permit where the answer is a success."""

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        say("popped", pod)
        return fwk.PreFilterResult(fwk.SUCCESS)

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        say("assumed", pod)
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        """Nothing was kept."""

    def permit(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> tuple[fwk.Status, float]:
        return (fwk.Status(fwk.Code.WAIT), LONGEST) if say("permit", pod) == 200 else (fwk.SUCCESS, 0.0)

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.PreFlight:
        return fwk.PreFlight(fwk.SUCCESS)

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        await asyncio.to_thread(say, "preparing", pod)
        return fwk.SUCCESS

    async def post_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        await asyncio.to_thread(say, "bound", pod)

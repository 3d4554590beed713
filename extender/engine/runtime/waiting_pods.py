"""Pods that Permit plugins hold: decided and reserved, but not yet bound.

Upstream: pkg/scheduler/framework/runtime/waiting_pods_map.go.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final, final

from extender.engine import framework as fwk
from extender.values.golang.times import Duration
from extender.values.objects.pod import Pod

MAX_TIMEOUT: Final = 15 * 60.0
"""The most seconds that a plugin may hold a pod. Upstream: maxTimeout."""


@final
class HeldPod:
    """A pod that Permit plugins hold. The first decision counts; later calls change nothing."""

    def __init__(self, pod: Pod, timeouts: Mapping[str, float]) -> None:
        """Takes plugin -> the most seconds that it holds the pod; the first to expire refuses it."""
        loop = asyncio.get_running_loop()
        self.pod: Final = pod
        self._answer: asyncio.Future[fwk.Status] = loop.create_future()
        self._timers = {
            plugin: loop.call_later(seconds, self._time_out, plugin, seconds) for plugin, seconds in timeouts.items()
        }

    @property
    def pending_plugins(self) -> list[str]:
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._decide(fwk.SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        return self._decide(fwk.unschedulable(message).by(plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Takes the pod's node away with an error, so that it is retried; False if it was decided already."""
        return self._decide(fwk.error(message).by(plugin))

    async def wait(self) -> fwk.Status:
        """Returns the decision: Success, a refusal, or an error."""
        try:
            return await self._answer
        finally:
            self._stop_timers()

    def _time_out(self, plugin: str, seconds: float) -> None:
        waited = Duration(round(seconds * 1e9))
        self._decide(fwk.unschedulable(f"rejected due to timeout after waiting {waited} at plugin {plugin}").by(plugin))

    def _decide(self, status: fwk.Status) -> bool:
        if self._answer.done():
            return False
        self._answer.set_result(status)
        self._stop_timers()
        return True

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()


@final
class WaitingPodsMap:
    """The held pods of all profiles, by UID."""

    def __init__(self) -> None:
        self._waiting: dict[str, HeldPod] = {}

    def add(self, pod: Pod, timeouts: Mapping[str, float]) -> HeldPod:
        """Holds a pod. It stays in here until `remove`."""
        waiting = self._waiting[pod.uid] = HeldPod(pod, timeouts)
        return waiting

    def get(self, uid: str) -> HeldPod | None:
        return self._waiting.get(uid)

    def remove(self, uid: str) -> None:
        """Removes the pod. Idempotent."""
        self._waiting.pop(uid, None)

    def reject(self, uid: str) -> bool:
        """Refuses a pod that was deleted; False if it was not held. Upstream: frameworkImpl.RejectWaitingPod."""
        waiting = self._waiting.get(uid)
        return waiting is not None and waiting.reject("", "removed")

    def __iter__(self) -> Iterator[HeldPod]:
        return iter(list(self._waiting.values()))

    def __len__(self) -> int:
        return len(self._waiting)


WAITING_PODS: Final = fwk.StateKey[WaitingPodsMap]("WaitingPodsMap")

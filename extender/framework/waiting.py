"""Pods that are held at Permit, pods that plugins want tried next, and polling for a condition.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, WaitingPod;
pkg/scheduler/framework/interface.go, PodsToActivate (v1.36.2).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from extender.framework.cycle_state import StateKey
from extender.objects.pod import Pod

PODS_TO_ACTIVATE: Final = StateKey[dict[str, Pod]]("kubernetes.io/pods-to-activate")
"""namespace/name -> pod. What a plugin puts in there is tried next, whatever it waits for: once the pod of the cycle has a node, and again
once it is bound."""


class WaitingPod(Protocol):
    """A pod that Permit plugins hold."""

    @property
    def pod(self) -> Pod:
        """The pod, with its node."""

    @property
    def pending_plugins(self) -> Sequence[str]:
        """Who still holds it."""

    def allow(self, plugin: str) -> None:
        """The plugin holds the pod no more; when none does, the pod goes on."""

    def reject(self, plugin: str, message: str) -> bool:
        """Refuse the pod in the name of the plugin; False if it was decided already."""


class WaitingPods(Protocol):
    """All pods that are held, of all profiles."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Those that are held now."""

    def get(self, uid: str) -> WaitingPod | None:
        """The pod, if it is held."""


DEADLINE_EXCEEDED = "context deadline exceeded"
"""Go's words for it."""


async def poll(is_done: Callable[[], bool], *, every: float, within: float, at_once: bool = False) -> None:
    """Wait until `is_done()`. What it raises ends the waiting.

    Arguments:
        every: seconds between questions.
        within: seconds for all of it.
        at_once: ask the first time before waiting.

    Raises:
        TimeoutError: it was not done in time.

    Upstream: apimachinery/pkg/util/wait/poll.go, PollUntilContextTimeout (v1.36.2).
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    if at_once and is_done():
        return
    while loop.time() + every <= deadline:
        await asyncio.sleep(every)
        if is_done():
            return
    await asyncio.sleep(max(0.0, deadline - loop.time()))
    raise TimeoutError(DEADLINE_EXCEEDED)

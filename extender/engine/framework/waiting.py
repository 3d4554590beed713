"""Pods that Permit plugins hold, pods that plugins want to be activated, and polling for a condition.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, WaitingPod; pkg/scheduler/framework/interface.go,
PodsToActivate.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from extender.engine.framework.cycle_state import StateKey
from extender.values.objects.pod import Pod

PODS_TO_ACTIVATE: Final = StateKey[dict[str, Pod]]("kubernetes.io/pods-to-activate")
"""namespace/name -> pod. Pods that a plugin puts in there are moved to the active queue: once the pod of the cycle has
a node, and again once it is bound.
"""


class WaitingPod(Protocol):
    """A pod that Permit plugins hold."""

    @property
    def pod(self) -> Pod:
        """The pod, with its node."""

    @property
    def pending_plugins(self) -> Sequence[str]:
        """The plugins that still hold it."""

    def allow(self, plugin: str) -> None:
        """Stops the plugin from holding the pod; once no plugin holds it, the pod goes on."""

    def reject(self, plugin: str, message: str) -> bool:
        """Refuses the pod in the name of the plugin; False if the pod was decided already."""


class WaitingPods(Protocol):
    """The pods of all profiles that Permit plugins hold."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Iterates over the pods that are held now."""

    def get(self, uid: str) -> WaitingPod | None:
        """Returns the pod if it is held."""


DEADLINE_EXCEEDED = "context deadline exceeded"
"""Go's message for a deadline that has passed."""


async def poll(is_done: Callable[[], bool], *, every: float, within: float, at_once: bool = False) -> None:
    """Returns once `is_done()`, which may raise, is true; looks `every` so many seconds, at once or after the first.

    Raises TimeoutError after `within` seconds.

    Upstream: apimachinery/pkg/util/wait/poll.go, PollUntilContextTimeout.
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

"""UnconfirmedBindings: pods that the API server has bound, says one answer, and that no watch has shown on their node yet.

Usually that is a matter of milliseconds. A server that was restored from a copy, however, may have forgotten the binding: then no watch
ever tells, and the pod would be assumed for ever. Upstream leaves it there until it is restarted.
"""

import asyncio
from typing import Final, final

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.scheduler.world import World

LOOK_EVERY: Final = 30.0
"""Seconds between two looks."""
SOON_ENOUGH: Final = 60.0
"""Seconds in which a watch usually has told."""


@final
class UnconfirmedBindings:
    """Says again what was said, to the same pod and node: if the server knows it, nothing changes. State: whom it is about, and since when.

    The room stays taken all the time. A pod that is elsewhere or gone by now is the watch's to tell.
    """

    def __init__(self, world: World) -> None:
        """Nothing is looked after before `run`."""
        self._world = world
        self._since: dict[str, tuple[Pod, float]] = {}

    def add(self, pod: Pod) -> None:
        """The pod was bound to its node just now."""
        self._since[pod.uid] = pod, asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Look from time to time, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._look(asyncio.get_running_loop().time())

    def _look(self, now: float) -> None:
        self._since = {uid: found for uid, found in self._since.items() if self._world.cluster.cache.is_assumed(found[0])}
        for uid, (pod, since) in self._since.items():
            if now - since >= SOON_ENOUGH:
                self._since[uid] = pod, now
                self._world.dispatcher.submit(fwk.BindPod.of(pod, pod.spec.node_name))

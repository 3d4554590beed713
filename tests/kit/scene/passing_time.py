"""Waiting, where time passes as it does, until nothing more is going to happen; and what kubelets do meanwhile."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

from extender.client.informers.informers import Informers
from extender.rules.api_resources import PODS, Object
from tests.kit.scene.remote import Api, NotFoundError, RemoteApi, change
from tests.kit.scene.running_scheduler import RunningScheduler

GLANCE: Final = 0.01
GLANCES: Final = 3
"""At so many of them in a row nothing may stir."""
TURNS: Final = 50
"""Everybody has so many turns between two glances, however slow the machine is: whoever has been answered can go on."""
PATIENCE: Final = 30.0
"""Seconds for what is under way to come to an end. Nothing takes that long, unless the machine has much else to do."""


@final
class Settling:
    """Lets a scheduler and its API server come to rest."""

    def __init__(self, api: RemoteApi, num_held: Callable[[], int], *, kubelet: bool) -> None:
        self._api = api
        self._num_held = num_held
        self._kubelet = kubelet

    async def passes(self, seconds: float, watched: RunningScheduler) -> None:
        """Returns when nothing more is going to happen within so many seconds, which are not over at that time as a
        rule.
        """
        now = asyncio.get_running_loop().time
        until, latest = now() + seconds, now() + seconds + PATIENCE
        glances = 0
        while glances < GLANCES:
            assert now() < latest, "there is no end to it"
            glances = glances + 1 if await self._is_at_rest(until, now(), watched) else 0
            await asyncio.sleep(GLANCE)
            for _ in range(TURNS):
                await asyncio.sleep(0)

    async def _is_at_rest(self, until: float, now: float, watched: RunningScheduler) -> bool:
        if self._kubelet and kubelets_act(self._api):
            return False
        if not self._knows_all(watched.informers) or await watched.is_busy(self._num_held()):
            return False
        return now >= until or not (self._num_held() or watched.waits_until(until))

    def _knows_all(self, informers: Informers) -> bool:
        """True if the scheduler has heard of whatever the story has done, and of all that has become of its pods."""
        touched = {resource.qualified: resource for resource in (PODS, *self._api.touched)}
        for reflector in informers.reflectors:
            resource = touched.get(reflector.kind.resource)
            if resource is None:
                continue
            heard_of = {key: obj.metadata.resource_version for key, obj in reflector.objects.items()}
            versions = {
                _key(obj): obj["metadata"]["resourceVersion"] for obj in self._api.list(resource) if not _is_over(obj)
            }
            if heard_of != versions:
                return False
        return True


def kubelets_act(api: Api) -> bool:
    """Pods that were bound run, and those that were told to go are gone; whether there were any."""
    acted = False
    for pod in api.list(PODS):
        if not pod["spec"].get("nodeName"):
            continue
        is_leaving = "deletionTimestamp" in pod["metadata"]
        if is_leaving and pod["metadata"].get("finalizers"):
            continue
        if is_leaving or pod["status"].get("phase") == "Pending":
            acted = True
            with suppress(NotFoundError):  # the scheduler may have deleted it since the list was made
                _act(api, pod, is_leaving=is_leaving)
    return acted


def _act(api: Api, pod: Object, *, is_leaving: bool) -> None:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    if is_leaving:
        api.delete(PODS, namespace, name, {"gracePeriodSeconds": 0})
    else:
        change(api, PODS, namespace, name, _runs, subresource="status")


def _runs(pod: Object) -> None:
    pod["status"]["phase"] = "Running"


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _is_over(obj: Object) -> bool:
    """Nobody watches pods that have ended."""
    return obj.get("status", {}).get("phase") in ("Succeeded", "Failed")

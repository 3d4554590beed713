"""An extender on a real socket is asked about victims that its caller has only assumed: they wait at Permit or in
PreBind, and have no node in what the extender sees.

The caller is our own scheduler, as kube-scheduler would call. Where it decides alone: `test_preemption_under_way.py`.
"""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.rules.api_resources import Object
from extender.values.config.configuration import Configuration, Extender
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs import Verbs
from tests.kit.device_objects import WITH_DEVICE, device_claim, device_class, devices
from tests.kit.objects import budget, node, pod
from tests.kit.saying_plugins import holding, pre_binding
from tests.kit.scene import Scene, a_scene
from tests.kit.service import serving
from tests.kit.storage_objects import DATA, PROVISIONED, WITH_DATA
from tests.stories.conftest import OURS

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("stage", [OURS], indirect=True)]


class Asked:
    """The verbs of a service in a thread of its own, which sees the cluster of a story; but not pods called `unseen`."""

    def __init__(self) -> None:
        self._cluster = Cluster()
        frameworks = Registry(IN_TREE).make_frameworks(Configuration(), random.Random(1), live=self._cluster.cache)
        self._verbs = Verbs(frameworks, self._cluster)
        self._one_at_a_time = threading.Lock()
        self.answers: list[dict[str, MetaVictims]] = []

    def changed(self, old: Any, new: Any) -> None:
        if not any(isinstance(obj, Pod) and obj.name == "unseen" for obj in (old, new)):
            with self._one_at_a_time:
                self._cluster.changed(old, new)
                self._verbs.changed(old, new)

    async def preempt(
        self, pod: Pod, candidates: Mapping[str, MetaVictims], *, victim: Callable[[str], Pod | None], caller: str = ""
    ) -> dict[str, MetaVictims]:
        with self._one_at_a_time:
            answer = await self._verbs.preempt(pod, candidates, victim=victim, caller=caller)
        self.answers.append(answer)
        return answer


@asynccontextmanager
async def a_scene_with_extenders(
    *objects: Object, in_full: bool, number: int = 1, plugins: Sequence[type[fwk.Plugin]] = ()
) -> AsyncIterator[tuple[Scene, Asked]]:
    """A scheduler that asks a chain of so many extenders about whom it would evict."""
    engine = Asked()
    with serving(lambda _: engine) as service:
        extender = Extender(
            url_prefix=f"http://127.0.0.1:{service.port}/extender",
            preempt_verb="preempt",
            node_cache_capable=not in_full,
        )
        async with a_scene(plugins=plugins, interfere=_slow_storage, extenders=[extender] * number) as scene:
            scene.told.append(engine.changed)
            await scene.has(*objects)
            yield scene, engine


async def _slow_storage(request: httpx.Request) -> None:
    """Nobody makes a volume: what asks for one is not written."""
    if request.method != "GET" and "/persistentvolumeclaims/" in request.url.path:
        await asyncio.sleep(600)


async def _takes_long(_: Pod) -> fwk.Status:
    await asyncio.sleep(600)
    return fwk.SUCCESS


ATTACHED: Final = devices("n", "gpu-1", bindsToNode=True, bindingConditions=["attached"])


def uid_of(scene: Scene, name: str) -> str:
    return str(scene.pod(name)["metadata"]["uid"])


WAITS: Final = {
    "at Permit": ("held", {}, (), [holding("held")]),
    "in PreBind": ("held", {}, (), [pre_binding(_takes_long, concerns=lambda pod: pod.name == "held")]),
    "for a volume": ("held", WITH_DATA, (PROVISIONED, DATA), []),
    "for a device": ("held", WITH_DEVICE, (device_class(None), ATTACHED, device_claim()), []),
    "and is not known": ("unseen", {}, (), [holding("unseen")]),
}

forms = pytest.mark.parametrize("in_full", [False, True], ids=["by UID", "in full"])
chains = pytest.mark.parametrize("number", [1, 2], ids=["alone", "in a chain of two"])


@forms
@chains
@pytest.mark.parametrize("why", WAITS)
async def test_a_pod_that_waits_makes_room(why: str, in_full: bool, number: int) -> None:
    """The urgent pod runs at once, and the other is pending again."""
    name, spec, objects, plugins = WAITS[why]
    setting: Any = {"in_full": in_full, "number": number, "plugins": plugins}
    async with a_scene_with_extenders(node("n"), *objects, **setting) as (scene, engine):
        await scene.has(pod(name, "1500m", "low", **spec))
        assert (scene.node_of(name), scene.is_assumed(name)) == ("", True)
        await scene.has(pod("high", "1500m", "high"), within=3)

        assert engine.answers == [{"n": MetaVictims.of([uid_of(scene, name)])}] * number
        assert (scene.node_of("high"), scene.node_of(name), scene.leaving()) == ("n", "", set())


@forms
@chains
async def test_a_gang_at_permit_and_a_running_pod_are_victims_together(in_full: bool, number: int) -> None:
    """Budgets count those that wait, too, and the most important of them is kept."""
    plugins = [holding("held"), holding("kept", held_by="AlsoPermitting")]
    setting: Any = {"in_full": in_full, "number": number, "plugins": plugins}
    web = budget("web", {"matchLabels": {"app": "web"}}, maxUnavailable=0)
    async with a_scene_with_extenders(node("n", "4"), web, **setting) as (scene, engine):
        await scene.has(pod("running", "1", "low"), pod("kept", "1", "middle"))
        await scene.has(pod("held", "2", "low", labels={"app": "web"}))
        running_uid, held_uid = uid_of(scene, "running"), uid_of(scene, "held")
        await scene.has(pod("high", "3", "high"))

        answers = [(set(answer["n"].uids), answer["n"].num_pdb_violations) for answer in engine.answers]
        assert answers == [({running_uid, held_uid}, 1)] * number
        assert (scene.node_of("high"), scene.is_assumed("kept"), scene.node_of("held")) == ("n", True, "")

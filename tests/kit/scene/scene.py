"""A scene to tell stories in: a cluster, its API, and a scheduler that decides for it."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, final

from extender.assembly.scheduling import Scheduling
from extender.client.http_extender import Transports, no_transport
from extender.client.informers.store import Change
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.rules.api_resources import PODS, Object, Resource
from extender.values.config.configuration import Configuration, Extender
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from tests.kit.scene.by_hand import ClusterByHand
from tests.kit.scene.running_scheduler import RunningScheduler
from tests.kit.scene.stages import STAGE, Interfere, Opening, Setting


@final
class Scene(ClusterByHand):
    """A cluster, the scheduler that decides for it, and where that one keeps its pods."""

    def __init__(self, setting: Setting, running: RunningScheduler, acting: asyncio.TaskGroup) -> None:
        """`acting` is for what a story does by hand."""
        super().__init__(setting.api)
        self.setting = setting
        self.running = running
        self.told: list[Callable[[Any, Any], None]] = []
        """Are told of every change besides the scheduler."""
        self._acting = acting

    async def has(self, *objects: Object, within: float = 5.0) -> None:
        """Objects come, one after the other; then time passes."""
        for obj in objects:
            self.create(obj)
        await self.passes(within)

    async def loses(self, name: str, *, resource: Resource = PODS, at_once: bool = False, within: float = 5.0) -> None:
        """An object is deleted, a pod with the time it has to say goodbye unless it has to go at once; then time
        passes.
        """
        self.delete(name, resource, at_once=at_once)
        await self.passes(within)

    async def changes(
        self,
        name: str,
        change: Callable[[Object], Any],
        *,
        resource: Resource = PODS,
        subresource: str = "",
        within: float = 5.0,
    ) -> None:
        """An object is changed in place; then time passes."""
        self.change(name, change, resource=resource, subresource=subresource)
        await self.passes(within)

    async def lets_go(self, name: str, *, within: float = 5.0) -> None:
        """Nothing keeps the pod from going any more."""
        self.let_go(name)
        await self.passes(within)

    async def passes(self, seconds: float) -> None:
        """Time passes; where that takes time, no more of it than until nothing is going to happen."""
        await self.setting.passes(seconds, self.running)

    async def tries(self, number: int) -> None:
        """By hand: so many pods are tried, each as often as it is its turn."""
        for _ in range(number):
            info = self.alone.world.queue.pop_nowait()
            assert info is not None, "nobody waits"
            await self.alone.scheduler.schedule_one(info, self._acting)
        await self.passes(0.1)

    # What is seen.

    @property
    def alone(self) -> Scheduling:
        return self.running.alone

    def history(self, since: int) -> list[Object]:
        """Pods as they became, one after the other; those that are gone as they were last."""
        return self.setting.history(since)

    @property
    def now(self) -> int:
        """For `history`."""
        return self.setting.version()

    def waits_in(self, name: str) -> str:
        """The queue that the pod waits in, "" for none."""
        queue, key = self.alone.world.queue, f"default/{name}"
        info = queue.get(key)
        if info is None:
            in_flight = {entry.key for entry in queue.in_flight_pods()}
            return "in flight" if key in in_flight else ""
        if info in queue.unschedulable_pods():
            return "gated" if info.is_gated else "unschedulable"
        if info in queue.pods_in_active_q():
            return "active"
        return "error backoff" if info in queue.pods_in_backoff_q(failed=True) else "backoff"

    def refused_by(self, name: str) -> set[str]:
        info = self.alone.world.queue.get(f"default/{name}")
        return set() if info is None else set(info.unschedulable_plugins)

    def attempts(self, name: str) -> int:
        """How often the pod was tried, while it waits."""
        info = self.alone.world.queue.get(f"default/{name}")
        return 0 if info is None else info.attempts

    def is_assumed(self, name: str) -> bool:
        return name in {
            pod.name for pod in map(self.alone.world.cluster.cache.pod, self._uids(name)) if pod is not None
        }

    def _uids(self, name: str) -> list[str]:
        world = self.alone.world
        return [uid for uid, pod in world.cluster.pending.items() if pod.name == name]


@asynccontextmanager
async def a_scene(
    *objects: Object,
    plugins: Sequence[type[fwk.Plugin]] = (),
    without: tuple[str, ...] = (),
    only: Sequence[str] = (),
    interfere: Interfere | None = None,
    kubelet: bool = True,
    controllers: bool = True,
    by_hand: bool = False,
    profiles: Sequence[str] = ("default-scheduler",),
    extenders: Sequence[Extender] = (),
    transports: Transports = no_transport,
    features: FeatureGates | Mapping[str, bool] | None = None,
    arguments: Mapping[str, Any] | None = None,
    seed: int = 1,
) -> AsyncIterator[Scene]:
    """A cluster with these objects whose pods are scheduled.

    Arguments:
        plugins: enabled at all their extension points, after the default ones.
        without: default plugins that are disabled.
        only: the default plugins that are enabled, if not all of them, besides those without which there is no
            scheduler.
        kubelet: whether bound pods run and deleted pods go.
        controllers: whether the cluster has those of a control plane, where it can; a kube-apiserver alone never has.
        by_hand: pods are tried when the story says so.
        profiles: scheduler names; all have the same plugins.
        extenders: asked by what `transports` has for them; those of the stage come after them.
        features: feature gates of the scheduler and, in memory, of the API.
        arguments: plugin -> its arguments, in all profiles.
        seed: of the chance by which the scheduler breaks ties.
    """
    gates = features if isinstance(features, FeatureGates) else FeatureGates.of(features or {})
    also = {plugin.name: plugin for plugin in plugins}
    configuration = replace(
        _configuration([*_needed(only), *also], ["*"] if only else without, profiles, gates, arguments or {}),
        extenders=(*extenders, *STAGE.get().extenders),
    )
    opening = Opening(objects, kubelet, controllers, interfere, gates)
    async with STAGE.get().open(opening) as setting:
        running = RunningScheduler(
            setting.client,
            configuration,
            ApiDispatcher(setting.client, rng=random.Random(1), instance="host"),
            hearing=random.Random(1),
            deciding=random.Random(seed),
            plugins=Registry(IN_TREE, (), also=also),
            transports=transports,
            by_hand=by_hand,
        )
        try:
            async with asyncio.TaskGroup() as group:
                scene = Scene(setting, running, group)

                def hears(_: object, changes: Sequence[Change[Any]]) -> None:
                    for change in changes:
                        for receiver in (running.alone.handlers.changed, *scene.told):
                            receiver(change.old, change.new)

                running.follow(hears)
                task = group.create_task(running.run())
                try:
                    await running.informers.wait_for_sync()
                    yield scene
                finally:
                    task.cancel()
        finally:
            await setting.client.aclose()


def _needed(only: Sequence[str]) -> Sequence[str]:
    return ("PrioritySort", "DefaultBinder", *only) if only else ()


def _configuration(
    enabled: Sequence[str],
    disabled: Sequence[str],
    profiles: Sequence[str],
    gates: FeatureGates,
    arguments: Mapping[str, Any],
) -> Configuration:
    def names(plugins: Sequence[str]) -> str:
        return "".join(f"\n      - name: '{name}'" for name in plugins) or "[]"

    return load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        + "".join(
            f"- schedulerName: {name}\n  plugins:\n    multiPoint:\n      enabled: {names(enabled)}\n      disabled: "
            f"{names(disabled)}\n"
            f"  pluginConfig: {json.dumps([{'name': plugin, 'args': args} for plugin, args in arguments.items()])}\n"
            for name in profiles
        ),
        gates,
    )

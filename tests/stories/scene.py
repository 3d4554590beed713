"""A scene to tell stories in: a cluster, its API, and a scheduler that decides for it."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, final

from extender.assembly.scheduling import Scheduling, assemble_scheduler
from extender.client.http_extender import Transports, no_transport, reads_whole
from extender.client.informers.informers import Informers
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.rules.api_resources import EVENTS, PODS, Object, Resource
from extender.values.config.configuration import Configuration, Extender
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.objects.kinds import KINDS
from tests.kit.objects import resource_of
from tests.stories import remote
from tests.stories.passing_time import Watched
from tests.stories.remote import Api
from tests.stories.stages import STAGE, Interfere, Setting


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """What can be seen of the cluster from outside, and where the scheduler keeps its pods."""

    setting: Setting
    watched: Watched
    acting: asyncio.TaskGroup
    """For what a story does by hand."""
    told: list[Callable[[Any, Any], None]]
    """Are told of every change besides the scheduler."""

    # What is done to it.

    async def has(self, *objects: Object, within: float = 5.0) -> None:
        """Objects come, one after the other; then time passes."""
        for each in objects:
            resource = resource_of(each)
            self.api.create(resource, "default" if resource.namespaced else "", each)
        await self.passes(within)

    async def loses(self, name: str, *, resource: Resource = PODS, at_once: bool = False, within: float = 5.0) -> None:
        """An object is deleted, a pod with the time it has to say goodbye unless it has to go at once; then time
        passes.
        """
        self.api.delete(
            resource, "default" if resource.namespaced else "", name, {"gracePeriodSeconds": 0} if at_once else None
        )
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
        remote.change(
            self.api, resource, "default" if resource.namespaced else "", name, change, subresource=subresource
        )
        await self.passes(within)

    async def lets_go(self, name: str, *, within: float = 5.0) -> None:
        """Nothing keeps the pod from going any more."""
        await self.changes(name, lambda found: found["metadata"].pop("finalizers"), within=within)

    def binds(self, name: str, node: str) -> None:
        """Somebody else gives a pod its node."""
        body = {
            "metadata": {"name": name, "uid": self.pod(name)["metadata"]["uid"]},
            "target": {"kind": "Node", "name": node},
        }
        self.setting.bind(name, body)

    async def passes(self, seconds: float) -> None:
        """Time passes; where that takes time, no more of it than until nothing is going to happen."""
        await self.setting.passes(seconds, self.watched)

    async def tries(self, number: int) -> None:
        """By hand: so many pods are tried, each as often as it is its turn."""
        for _ in range(number):
            info = self.alone.world.queue.pop_nowait()
            assert info is not None, "nobody waits"
            await self.alone.scheduler.schedule_one(info, self.acting)
        await self.passes(0.1)

    # What is seen.

    @property
    def api(self) -> Api:
        return self.setting.api

    @property
    def alone(self) -> Scheduling:
        return self.watched.alone

    def pod(self, name: str) -> Object:
        return self.api.get(PODS, "default", name)

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def nominated_node_of(self, name: str) -> str:
        return str(self.pod(name)["status"].get("nominatedNodeName", ""))

    def pods(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.api.list(PODS, "default")}

    def leaving(self) -> set[str]:
        return {
            each["metadata"]["name"]
            for each in self.api.list(PODS, "default")
            if "deletionTimestamp" in each["metadata"]
        }

    def condition(self, name: str, kind: str = "PodScheduled") -> tuple[str, str, str] | None:
        """(status, reason, message)."""
        for each in self.pod(name)["status"].get("conditions", []):
            if each["type"] == kind:
                return each["status"], each.get("reason", ""), each.get("message", "")
        return None

    def events(self, name: str) -> list[tuple[str, str]]:
        """(reason, note) of the events about pods of that name."""
        found = [event for event in self.api.list(EVENTS, "default") if event["involvedObject"]["name"] == name]
        return [(event["reason"], event["message"]) for event in found]

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
            in_flight = {each.key for each in queue.in_flight_pods()}
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
            each.name for each in map(self.alone.world.cluster.cache.pod, self._uids(name)) if each is not None
        }

    def _uids(self, name: str) -> list[str]:
        world = self.alone.world
        return [uid for uid, each in world.cluster.pending.items() if each.name == name]


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
    async with STAGE.get().open(
        objects, kubelet=kubelet, controllers=controllers, interfere=interfere, features=gates
    ) as setting:
        dispatcher = ApiDispatcher(setting.client, rng=random.Random(1), instance="host")
        informers = Informers(setting.client, rng=random.Random(1), is_whole=reads_whole(configuration.extenders))
        plugins_there = Registry(IN_TREE, (), also=also)
        chance = random.Random(seed)
        told: list[Callable[[Any, Any], None]] = []
        alone = assemble_scheduler(
            configuration, Cluster(), dispatcher, chance, transports=transports, plugins=plugins_there
        )

        async def schedule() -> None:
            await informers.wait_for_sync()
            if not by_hand:
                await alone.scheduler.run()

        def take(changes: Any) -> None:
            for change in changes:
                for each in (alone.handlers.changed, *told):
                    each(change.old, change.new)

        for kind in KINDS:
            if kind.gate and not gates.enabled(kind.gate):
                continue
            informers.add(kind, take)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work) for work in (informers.run(), dispatcher.run(), schedule())]
                try:
                    await informers.wait_for_sync()
                    yield Scene(setting, Watched(alone, informers, dispatcher, by_hand), group, told)
                finally:
                    for task in tasks:
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

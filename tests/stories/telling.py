"""A scene to tell stories in: a cluster, its API, and a scheduler that decides for it. Everything is real but time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Final, ParamSpec, final

import httpx

from extender import framework as fwk
from extender.apiserver.client import Client
from extender.apiserver.credentials import Target
from extender.apiserver.dispatcher import Dispatcher
from extender.apiserver.informers import Informers
from extender.apiserver.kinds import KINDS
from extender.cluster import Cluster
from extender.cluster_state import TABLES
from extender.config.loading import load
from extender.embedded.registry import Registry as Api
from extender.embedded.resources import EVENTS, NODES, PODS, Object, Resource
from extender.embedded.transport import EmbeddedTransport
from extender.own_cluster import own_cluster
from extender.plugins import IN_TREE
from extender.runtime.registry import Registry
from extender.standalone import Standalone, standalone
from extender.testing import virtual_time

_TABLE_OF: Final[Mapping[type, str]] = {table.kind: table.field for table in TABLES}

Interfere = Callable[[httpx.Request], Any]
"""What stands between the scheduler and its API server: an answer of its own, None to let the request pass; or something to wait for."""


P = ParamSpec("P")


def story(tell: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test of what happens in a cluster; time passes at once."""

    @wraps(tell)
    def test(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            virtual_time.run(tell(*args, **kwargs))
        except BaseExceptionGroup as group:
            raise _alone_in(group) from None

    return test


def _alone_in(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong, without the groups around it."""
    if len(group.exceptions) != 1:
        return group
    (only,) = group.exceptions
    return _alone_in(only) if isinstance(only, BaseExceptionGroup) else only


# Who plays.


def priority(name: str, value: int, **more: Any) -> Object:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


LOW, MIDDLE, HIGH, HIGHER = priority("low", 10), priority("middle", 50), priority("high", 100), priority("higher", 200)
PRIORITIES: Final = (LOW, MIDDLE, HIGH, HIGHER)


def node(name: str, cpu: str = "2", *, labels: Mapping[str, str] | None = None, pods: str = "110", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": pods}},
    }


def pod(
    name: str, cpu: str = "1", priority: str = "", *, labels: Mapping[str, str] | None = None, stays: bool = False, **spec: Any
) -> Object:
    """A pod with one container.

    Arguments:
        priority: name of its class.
        stays: a finalizer keeps it from going when it is told to.
    """
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}, **spec.pop("container", {})}
    metadata: Object = {"name": name, "labels": dict(labels or {})}
    if stays:
        metadata["finalizers"] = ["example.com/stays"]
    classes = {"priorityClassName": priority} if priority else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **classes, **spec}}


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """What can be seen of the cluster from outside, and where the scheduler keeps its pods."""

    api: Api
    alone: Standalone

    # What is done to it.

    async def has(self, *objects: Object, within: float = 5.0) -> None:
        """Objects come, one after the other; then time passes."""
        for each in objects:
            self.api.create(PODS if each["kind"] == "Pod" else NODES, "default" if each["kind"] == "Pod" else "", each)
        await asyncio.sleep(within)

    async def loses(self, name: str, *, resource: Resource = PODS, within: float = 5.0) -> None:
        """An object is deleted; then time passes."""
        self.api.delete(resource, "default" if resource.namespaced else "", name)
        await asyncio.sleep(within)

    async def changes(
        self, name: str, change: Callable[[Object], Any], *, resource: Resource = PODS, subresource: str = "", within: float = 5.0
    ) -> None:
        """An object is changed in place; then time passes."""
        namespace = "default" if resource.namespaced else ""
        found = self.api.get(resource, namespace, name)
        change(found)
        self.api.update(resource, namespace, name, found, subresource=subresource)
        await asyncio.sleep(within)

    async def lets_go(self, name: str, *, within: float = 5.0) -> None:
        """Nothing keeps the pod from going any more."""
        await self.changes(name, lambda found: found["metadata"].pop("finalizers"), within=within)

    # What is seen.

    def pod(self, name: str) -> Object:
        return self.api.get(PODS, "default", name)

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def nominated_node_of(self, name: str) -> str:
        return str(self.pod(name)["status"].get("nominatedNodeName", ""))

    def pods(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.api.list(PODS, "default")}

    def leaving(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.api.list(PODS, "default") if "deletionTimestamp" in each["metadata"]}

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
        return [change.new.decoded() for change in self.api.store.follow([PODS], since).take()]

    @property
    def now(self) -> int:
        """For `history`."""
        return self.api.store.resource_version

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
        return name in {each.name for each in map(self.alone.world.cluster.cache.pod, self._uids(name)) if each is not None}

    def _uids(self, name: str) -> list[str]:
        world = self.alone.world
        return [uid for uid, each in world.cluster.pending.items() if each.name == name]


@asynccontextmanager
async def a_scene(
    *objects: Object,
    plugins: Sequence[type[fwk.Plugin]] = (),
    without: tuple[str, ...] = (),
    interfere: Interfere = lambda request: None,
    kubelet: bool = True,
    profiles: Sequence[str] = ("default-scheduler",),
) -> AsyncIterator[Scene]:
    """A cluster with these objects whose pods are scheduled.

    Arguments:
        plugins: enabled at all their extension points, after the default ones.
        without: default plugins that are disabled.
        kubelet: whether bound pods run and deleted pods go.
        profiles: scheduler names; all have the same plugins.
    """
    further = {plugin.name: plugin for plugin in plugins}
    enabled = "".join(f"\n      - name: {name}" for name in further)
    disabled = "".join(f"\n      - name: {name}" for name in without)
    configuration = load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        + "".join(
            f"- schedulerName: {name}\n  plugins:\n    multiPoint:\n      enabled: {enabled or '[]'}\n      disabled: {disabled or '[]'}\n"
            for name in profiles
        )
    )
    async with own_cluster([*PRIORITIES, *objects], rng=random.Random(1), kubelet=kubelet) as own:
        client = Client(Target("http://embedded"), transport=_Between(EmbeddedTransport(own.api), interfere))
        dispatcher = Dispatcher(client, rng=random.Random(1), instance="host")
        informers = Informers(client, rng=random.Random(1))
        alone = standalone(
            configuration, Cluster(), dispatcher, random.Random(1), plugins=Registry(IN_TREE, (), further=further)
        )

        async def schedule() -> None:
            await informers.wait_for_sync()
            await alone.scheduler.run()

        def take(table: str, changes: Any) -> None:
            for change in changes:
                alone.handlers.changed(table, change.old, change.new)

        for kind in KINDS:
            informers.add(kind, partial(take, _TABLE_OF[kind.type]))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in (informers.run(), dispatcher.run(), schedule())]
            try:
                await informers.wait_for_sync()
                yield Scene(own.api.registry, alone)
            finally:
                for task in tasks:
                    task.cancel()
        await client.aclose()


@final
class _Between(httpx.AsyncBaseTransport):
    def __init__(self, transport: httpx.AsyncBaseTransport, interfere: Interfere) -> None:
        self._transport = transport
        self._interfere = interfere

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._interfere(request)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        return await self._transport.handle_async_request(request)


def refusal(code: int, reason: str, message: str) -> httpx.Response:
    """An API server's refusal."""
    status = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return httpx.Response(code, json=status)


def is_binding(request: httpx.Request) -> bool:
    return request.url.path.endswith("/binding")


def is_deletion(request: httpx.Request) -> bool:
    return request.method == "DELETE"

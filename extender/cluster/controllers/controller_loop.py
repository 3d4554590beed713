"""The contract of a controller, and the loops that run all of them over one view of the cluster.

A controller learns of each change (`observe`) and names keys to look at; for each key it yields what is to be written,
given what exists (`reconcile`). It is not told what happened to a key, so that it can start on any state and be
repeated.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from random import Random
from typing import Any, ClassVar, Final, TypeVar, final

import orjson

from extender.cluster.api_resources import (
    DEPLOYMENTS,
    EVENTS,
    NEW_EVENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCES,
    STATEFUL_SETS,
)
from extender.cluster.controllers.cluster_view import ClusterView, ref_of
from extender.cluster.controllers.controller_writes import (
    Create,
    DeleteAll,
    LookAgain,
    Looked,
    Step,
    Write,
    num_bytes,
    perform,
)
from extender.cluster.controllers.seen_objects import Key, Seen, SeenPod
from extender.cluster.controllers.work_queue import WorkQueue
from extender.cluster.registry.long_writes import LONG, LongWrites
from extender.cluster.registry.object_registry import ObjectRegistry
from extender.cluster.statuses import ApiStatus
from extender.cluster.store.object_store import CompactedError
from extender.values.concurrency.abandoned import in_thread
from extender.values.objects.decoding import DecodeError
from extender.values.workloads.selectors import selector_in

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=Seen)

FOLLOWED: Final = tuple(each for each in RESOURCES if each.is_stored and each not in (EVENTS, NEW_EVENTS))
"""The resources that controllers look at: all but events, of which there are many and which own nothing."""

SELECTING: Final = frozenset(
    each.stored_as
    for each in (DEPLOYMENTS, POD_DISRUPTION_BUDGETS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
)
"""The names under which objects with selectors are stored, which may be long."""

WRITES_AT_ONCE: Final = 8
KEYS_AT_ONCE: Final = 16
CHANGES_AT_ONCE: Final = 4
"""The number of writes, keys and changes after which other tasks get their turn. To look at one of them takes some
microseconds, and a few milliseconds where thousands of selectors or volumes have to be looked at for it.
"""
OBJECTS_AT_ONCE: Final = 64
"""The number of objects that are listed or deleted at once: a few milliseconds of work."""
PODS_AT_ONCE: Final = 500
"""The number of pods of a workload that are looked at at once: two milliseconds, or five if they are decoded."""

SETTLING: Final = 0.05
"""The seconds for which changes of pods are gathered, so that a thousand pods that become ready are one write."""

Steps = Generator[Step, None, None]


class NotPossibleError(Exception):
    """A step cannot be done in the present state. The message says what is missing."""


@final
@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What controllers share: their view of the cluster, the wall clock, and the source of chance for retries."""

    cluster: ClusterView
    now: Callable[[], datetime]
    rng: Random


def in_parts(pods: Iterable[SeenPod]) -> Iterator[Sequence[SeenPod]]:
    """Yields pods that exist now in parts, after each of which a controller yields `Looked`. Other tasks may change the
    view in between.
    """
    rest = iter(list(pods))
    while part := list(islice(rest, PODS_AT_ONCE)):
        yield part


class Controller(ABC):
    """Keeps one aspect of the cluster as it should be.

    Attributes:
        name: the name in the log.
        author: the field manager of its writes.
    """

    name: ClassVar[str]
    author: ClassVar[str] = "kube-controller-manager"

    def __init__(self, context: ControllerContext) -> None:
        self.cluster: Final = context.cluster
        self.now: Final = context.now
        self.queue: Final[WorkQueue[Any]] = WorkQueue(context.rng)

    def observe(self, old: Seen | None, new: Seen | None) -> None:  # noqa: B027 - some controllers look at pods only
        """Adds keys to `queue` after a change of an object other than a pod. One of the two may be None."""

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:  # noqa: B027 - some do not look at pods
        """Adds keys to `queue` after a change of a pod. There are many of these: it has to be quick."""

    @abstractmethod
    def reconcile(self, key: Any) -> Steps:
        """Yields what to write so that the object of `key` is as it should be.

        The view is exact until the first step. While a step is done other tasks may run: nothing that was looked at
        before may be looped over, and what looks at many pods does it in parts (`in_parts`). A write that is refused
        raises where it was yielded; unless it is caught there, the key is tried again later.
        """


@final
class Loops:
    """Runs controllers on one view of a registry."""

    def __init__(self, registry: ObjectRegistry, cluster: ClusterView, controllers: Sequence[Controller]) -> None:
        self._registry = registry
        self._cluster = cluster
        self._controllers = controllers
        self._by_storage = {each.stored_as: each for each in FOLLOWED}
        self._changes = registry.store.follow(FOLLOWED, registry.store.resource_version)
        self._reading = asyncio.Lock()
        self._exact_at = -1
        """The resourceVersion at which the view was exact."""
        self._written = 0
        self._looked = 0
        """The pods looked at since other tasks had their turn."""
        self._long: Final = LongWrites(registry)

    async def run(self) -> None:
        await self._list()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(), name="controllers: follow changes")
            for controller in self._controllers:
                tasks.create_task(self._work(controller), name=f"controllers: {controller.name}")

    async def _follow(self) -> None:
        while True:
            await self._changes.wait()
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Takes note of all changes. When it returns, the view is exact. It does not suspend for a few short
        changes.
        """
        if self._registry.store.resource_version == self._exact_at:
            return
        async with self._reading:
            while True:
                version = self._registry.store.resource_version
                try:
                    changes = self._changes.take(CHANGES_AT_ONCE)
                except CompactedError:
                    logger.warning("controllers were overtaken by changes; looking at everything again")
                    self._changes = self._registry.store.follow(FOLLOWED, self._registry.store.resource_version)
                    await self._list()
                    continue
                others_had_turn = False
                for change in changes:
                    stored = change.new
                    raw = None if change.type == "DELETED" else stored.body
                    if raw is not None and len(raw) > LONG:
                        await self._before_long(change.stored_as, raw)
                        others_had_turn = True
                    self._note(change.stored_as, (stored.namespace, stored.name), raw)
                if len(changes) < CHANGES_AT_ONCE and not others_had_turn:
                    self._exact_at = version
                    return
                await asyncio.sleep(0)

    async def _list(self) -> None:
        """Takes note of all objects, and of those that no longer exist."""
        self._exact_at = -1
        count = 0
        for resource in FOLLOWED:
            stored = self._registry.store.read(resource)
            if known := self._cluster.all(resource):
                existing = {(each.namespace, each.name) for each in stored}
                for key in [key for key in known if key not in existing]:
                    self._note(resource.stored_as, key, None)
            for each in stored:
                if len(each.body) > LONG:
                    await self._before_long(resource.stored_as, each.body)
                # The object as it is now: other tasks write in between.
                current = self._registry.store.get(resource, each.namespace, each.name)
                if current is not None:
                    self._note(resource.stored_as, (each.namespace, each.name), current.body)
                count += 1
                if count % OBJECTS_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _before_long(self, stored_as: str, raw: bytes) -> None:
        """Gives others their turn before a long object is read, and has its selector parsed in a thread, where it is
        kept for the controllers.
        """
        await asyncio.sleep(0)
        if stored_as in SELECTING:
            kind = self._by_storage[stored_as].kind
            with suppress(Exception):  # what is wrong with an object, `_note` says
                await in_thread(lambda _: selector_in({"kind": kind, **orjson.loads(raw)}))

    def _note(self, stored_as: str, key: Key, raw: bytes | None) -> None:
        try:
            if stored_as == PODS.stored_as:
                old_pod, new_pod = self._cluster.apply_pod(key, raw)
                for controller in self._controllers:
                    self._tell(controller.observe_pod, old_pod, new_pod)
                return
            old, new = self._cluster.apply(self._by_storage[stored_as], key, raw)
        except DecodeError as exc:
            logger.error(
                "controllers leave %s %s alone: it cannot be read: %s", stored_as, "/".join(filter(None, key)), exc
            )
            return
        if old is not None or new is not None:
            for controller in self._controllers:
                self._tell(controller.observe, old, new)

    def _tell(self, observe: Callable[[S | None, S | None], None], old: S | None, new: S | None) -> None:
        try:
            observe(old, new)
        except Exception:
            # Objects come from dumps, too: an incomplete one must not end the loop.
            seen = new or old
            logger.exception("%s cannot make sense of %s", observe.__qualname__, None if seen is None else ref_of(seen))

    async def _work(self, controller: Controller) -> None:
        done = 0
        while True:
            key = await controller.queue.get()
            await self._catch_up()
            done += 1
            if done >= KEYS_AT_ONCE:
                done = 0
                await asyncio.sleep(0)
                await self._catch_up()
            await self._reconcile(controller, key)

    async def _perform(self, write: Write, author: str) -> None:
        if isinstance(write, DeleteAll):
            await self._delete_all(write)
            return
        length = num_bytes(write)
        self._written += max(length, LONG // WRITES_AT_ONCE)
        if length <= LONG:
            perform(self._registry, write, author)
            return
        resource, name = (write.resource, "") if isinstance(write, Create) else (write.seen.resource, write.seen.name)
        await self._long.done(resource, name, lambda beside: perform(beside, write, author))

    async def _delete_all(self, write: DeleteAll) -> None:
        for place, stored in enumerate([*self._registry.store.read(write.resource, write.namespace)]):
            if self._registry.store.get(write.resource, stored.namespace, stored.name) is not None:
                self._registry.delete(write.resource, stored.namespace, stored.name)
            if place % OBJECTS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _reconcile(self, controller: Controller, key: Hashable) -> None:
        """Reconciles one key. Other tasks get their turn between writes."""
        try:
            steps = controller.reconcile(key)
            refusal: ApiStatus | None = None
            while True:
                try:
                    step = steps.throw(refusal) if refusal is not None else next(steps)
                except StopIteration:
                    break
                refusal = None
                if isinstance(step, LookAgain):
                    controller.queue.add_after(key, step.seconds)
                    continue
                if isinstance(step, Looked):
                    self._looked += step.pods
                    if self._looked >= PODS_AT_ONCE:
                        self._looked = 0
                        await asyncio.sleep(0)
                    continue
                try:
                    await self._perform(step, controller.author)
                except ApiStatus as exc:
                    refusal = exc
                if self._written >= LONG:
                    self._written = 0
                    await asyncio.sleep(0)
        except ApiStatus as refused:
            delay = controller.queue.retry(key)
            # Another write came first, as happens to optimistic writes.
            level = logging.DEBUG if refused.code in (404, 409) else logging.WARNING
            logger.log(level, "%s: %s: %s; again in %.2g s", controller.name, key, refused.message, delay)
        except NotPossibleError as exc:
            logger.warning("%s: %s: %s; again in %.2g s", controller.name, key, exc, controller.queue.retry(key))
        except Exception:
            # A fault with one object must not keep the others waiting.
            delay = controller.queue.retry(key)
            logger.exception("%s: %s failed; again in %.2g s", controller.name, key, delay)
        else:
            controller.queue.forget(key)

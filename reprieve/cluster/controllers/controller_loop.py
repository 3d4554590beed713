"""The contract of a controller, its queue of keys, and the loops that run all controllers over one view of the cluster.

A controller learns of each change (`observe`) and names keys to look at; for each key it yields what is to be written,
given what exists (`reconcile`). It is not told what happened to a key, so that it can start anywhere and be repeated.

Upstream, for the queue: client-go/util/workqueue, queue.go, delaying_queue.go, default_rate_limiters.go.
"""

import asyncio
import heapq
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, ClassVar, Final, Generic, TypeVar, final

from extender.rules.api_resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, NEW_EVENTS, PODS, RESOURCES, Resource
from extender.rules.statuses import ApiStatus
from extender.values.objects.decoding import DecodeError
from reprieve.cluster.controllers.cluster_view import ClusterView, ref_of
from reprieve.cluster.controllers.controller_writes import RequeueAfter, Step, perform
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedPod
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.store.custom_resources import custom_resources
from reprieve.cluster.store.object_store import CompactedError

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=Observed)

FOLLOWED: Final = tuple(
    resource for resource in RESOURCES if resource.is_stored and resource not in (EVENTS, NEW_EVENTS)
)
"""The resources that controllers follow besides custom ones: all but events, which are many and own nothing."""

BURST: Final = 500
"""The largest number of writes for one look at a key, after which it is looked at again. Upstream: BurstReplicas."""

SETTLING: Final = 0.05
"""The seconds for which changes of pods are gathered, so that a thousand pods that become ready cause one write."""

Steps = Generator[Step, None, None]


class NotPossibleError(Exception):
    """A controller cannot take a step in the present state. The message says what is missing."""


@final
@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The values that controllers share: their view of the cluster, the wall clock, and random numbers for retries."""

    cluster: ClusterView
    now: Callable[[], datetime]
    rng: Random


class Controller(ABC):
    """Keeps one aspect of the cluster as it should be. `author` is the field manager of its writes."""

    name: ClassVar[str]
    author: ClassVar[str] = "kube-controller-manager"

    def __init__(self, context: ControllerContext) -> None:
        self.cluster: Final = context.cluster
        self.now: Final = context.now
        self.queue: Final[WorkQueue[Any]] = WorkQueue(context.rng)

    def observe(self, old: Observed | None, new: Observed | None) -> None:  # noqa: B027 - some controllers look at pods only
        """Adds keys to `queue` after a change of an object other than a pod. One of the two may be None."""

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:  # noqa: B027 - some do not look at pods
        """Adds keys to `queue` after a change of a pod. There are many of these: it has to be quick."""

    @abstractmethod
    def reconcile(self, key: Any) -> Steps:
        """Yields the writes that bring the object of `key` to its desired state, by the view at the beginning.

        A write that is refused raises where it was yielded; unless it is caught there, the key is tried again later.
        """


@final
class ControllerLoops:
    """Runs controllers on one view of a registry."""

    def __init__(self, registry: ObjectRegistry, cluster: ClusterView, controllers: Sequence[Controller]) -> None:
        self._registry = registry
        self._cluster = cluster
        self._controllers = controllers
        self._begin()

    def _begin(self) -> None:
        store = self._registry.store
        self._cluster.custom = custom_resources(store)
        self._by_storage = {resource.stored_as: resource for resource in (*FOLLOWED, *self._cluster.custom)}
        self._changes = store.follow(self._by_storage.values(), store.resource_version)

    async def run(self) -> None:
        self._list()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(), name="controllers: follow changes")
            for controller in self._controllers:
                tasks.create_task(self._work(controller), name=f"controllers: {controller.name}")

    async def _follow(self) -> None:
        while True:
            await self._changes.wait()
            self._catch_up()

    def _catch_up(self) -> None:
        """Applies all changes, so that the view is exact."""
        try:
            changes = self._changes.take()
        except CompactedError:
            logger.warning("controllers were overtaken by changes; looking at everything again")
            self._begin()
            self._list()
            return
        for change in changes:
            stored = change.new
            raw = None if change.type == "DELETED" else stored.body
            self._note(change.stored_as, (stored.namespace, stored.name), raw)
        if any(change.stored_as == CUSTOM_RESOURCE_DEFINITIONS.stored_as for change in changes):
            self._redefine()

    def _redefine(self) -> None:
        """Removes the objects of kinds that are no longer defined, and lists those of newly defined ones."""
        store, before = self._registry.store, self._by_storage
        defined = {resource.stored_as for resource in custom_resources(store)}
        for resource in [resource for resource in self._cluster.custom if resource.stored_as not in defined]:
            for stored in store.read(resource):
                store.remove(resource, stored.namespace, stored.name)
                self._note(resource.stored_as, (stored.namespace, stored.name), None)
        self._begin()
        self._list({name: resource for name, resource in self._by_storage.items() if name not in before})

    def _list(self, only: Mapping[str, Resource] | None = None) -> None:
        for resource in (self._by_storage if only is None else only).values():
            bodies = {(stored.namespace, stored.name): stored.body for stored in self._registry.store.read(resource)}
            for key in [key for key in self._cluster.all(resource) if key not in bodies]:
                self._note(resource.stored_as, key, None)
            for key, body in bodies.items():
                self._note(resource.stored_as, key, body)

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
            obj = new or old
            logger.exception("%s cannot make sense of %s", observe.__qualname__, None if obj is None else ref_of(obj))

    async def _work(self, controller: Controller) -> None:
        while True:
            key = await controller.queue.get()
            self._catch_up()
            self._reconcile(controller, key)
            # One key after the other: there may be thousands, and others want their turn.
            await asyncio.sleep(0)

    def _reconcile(self, controller: Controller, key: Hashable) -> None:
        try:
            steps = controller.reconcile(key)
            refusal: ApiStatus | None = None
            while (step := _next(steps, refusal)) is not None:
                refusal = None
                if isinstance(step, RequeueAfter):
                    controller.queue.add_after(key, step.seconds)
                    continue
                try:
                    perform(self._registry, step, controller.author)
                except ApiStatus as exc:
                    refusal = exc
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


def _next(steps: Steps, refusal: ApiStatus | None) -> Step | None:
    try:
        return next(steps) if refusal is None else steps.throw(refusal)
    except StopIteration:
        return None


K = TypeVar("K", bound=Hashable)

FIRST_RETRY: Final = 0.01
LAST_RETRY: Final = 60.0
"""The bounds of the seconds between attempts at a key that keeps failing; they double from the first to the last."""
SHORTEST_DELAY: Final = 0.001
"""The shortest delay in seconds: a shorter one may be a rounding error that recurs for ever."""


@final
class WorkQueue(Generic[K]):
    """A queue in order of arrival, for one consumer."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._order: deque[K] = deque()
        self._ready: set[K] = set()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._counter = 0
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Adds a key, unless it is in the queue already."""
        if key not in self._ready:
            self._ready.add(key)
            self._order.append(key)
            self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds a key after a delay; of several delays the earliest end counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = asyncio.get_running_loop().time() + max(seconds, SHORTEST_DELAY)
        if self._due.get(key, due) < due:
            return
        self._due[key] = due
        self._counter += 1
        heapq.heappush(self._later, (due, self._counter, key))
        self._wake.set()

    def retry(self, key: K) -> float:
        """Adds a key that failed, after a longer delay each time; returns the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Up to a tenth more, so that keys that failed together are not retried together.
        delay: float = min(FIRST_RETRY * 2.0 ** min(failures, 32), LAST_RETRY) * (1 + self._rng.random() / 10)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Forgets the failures of a key that succeeded."""
        if self._failures:
            self._failures.pop(key, None)

    async def get(self) -> K:
        """Returns the next key once there is one; does not suspend if there is."""
        while True:
            self._promote()
            if self._order:
                key = self._order.popleft()
                self._ready.discard(key)
                return key
            self._wake.clear()
            due = self._later[0][0] if self._later else None
            try:
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _promote(self) -> None:
        if not self._later:
            return
        # The loop fires timers up to its clock's resolution early; that is no reason to wait once more.
        now = asyncio.get_running_loop().time() + SHORTEST_DELAY / 2
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)

"""Lifecycle: when a scheduler begins to decide, and how it ends.

It begins once the cluster is known. Of several replicas only the leader begins, once it has caught up with what the one before has done. It
ends in order when asked to: no more pods are taken up, what was decided is done, events are written, the lease is released. It ends at once
when the lease is lost.

Upstream: cmd/kube-scheduler/app/server.go, Run (v1.36.2). There the lease is given back while bindings are still under way.
"""

import asyncio
from typing import Final, final

from extender import __version__
from extender import framework as fwk
from extender.apiserver.informers.informers import Informers
from extender.apiserver.lease.leader_election import LeaderElector
from extender.apiserver.writes.dispatcher import ApiDispatcher
from extender.assembly.scheduling import Scheduling
from extender.klog.logger import Logger
from extender.objects.pod import DEFAULT_SCHEDULER_NAME
from extender.objects.storage import ObjectReference

SECONDS_TO_BIND: Final = 5.0
"""For the bindings that are under way at the end."""
SECONDS_TO_DRAIN: Final = 1.0
"""For all other writes, events among them."""

_LOG: Final = Logger(__name__)


@final
class Lifecycle:
    """Runs a scheduler from its start to its end. State: how far it has come."""

    def __init__(
        self,
        informers: Informers,
        scheduling: Scheduling,
        dispatcher: ApiDispatcher,
        elector: LeaderElector | None,
        may_follow: asyncio.Event,
    ) -> None:
        """Nothing happens before `start`.

        Arguments:
            elector: says when this replica may decide; None without other replicas.
            may_follow: until it is set, the informers learn nothing; set here once this replica leads. Upstream: delayCacheUntilActive.
        """
        self.why_over = ""
        """Why it has ended without being asked to; empty while all is well."""
        self._running: asyncio.Task[None] | None = None
        self._informers = informers
        self._assembled = scheduling
        self._dispatcher = dispatcher
        self._elector = elector
        self._may_follow = may_follow
        self._scheduling: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[str] | None = None
        self._finishing = asyncio.Lock()
        self._has_finished = False

    def start(self, group: asyncio.TaskGroup) -> None:
        """Waits for the time to begin, and decides; until `finish`, or until the lease is lost."""
        self._running = group.create_task(self._run(), name="deciding")

    async def _run(self) -> None:
        _LOG.info(0, "Starting Kubernetes Scheduler", version=f"reprieve {__version__}")
        # The first decision must see every pod that has a node. Who does not know the cluster does not keep others from leading.
        if self._may_follow.is_set():
            await self._informers.wait_for_sync()
            _LOG.info(3, "Handlers synced")
        if self._has_finished:
            return
        if self._elector is not None:
            await self._elector.acquire()
        async with asyncio.TaskGroup() as group:
            self._scheduling = group.create_task(self._schedule(), name="scheduler")
            if self._elector is None:
                return
            self._tell(self._elector, "became leader")
            self._keeping = group.create_task(self._elector.keep(), name="lease")
            try:
                why = await asyncio.shield(self._keeping)
            except asyncio.CancelledError:
                self._keeping.cancel()
                raise
            self._assembled.scheduler.stop()
            self._scheduling.cancel()
            _LOG.error(why, "Leaderelection lost")
            self.why_over = f"leader election lost: {why}"

    async def finish(self) -> None:
        """Takes up no more pods, lets what was decided be done and recorded, releases the lease. A second call waits for the first."""
        self._assembled.scheduler.stop()
        async with self._finishing:
            if self._has_finished:
                return
            self._has_finished = True
            _LOG.info(0, "Requested to terminate, exiting")
            are_done = True
            if self._scheduling is not None and not self.why_over:
                _, undone = await asyncio.wait([self._scheduling], timeout=SECONDS_TO_BIND)
                are_done = not undone
                if self._elector is not None:
                    self._tell(self._elector, "stopped leading")
                await self._dispatcher.drain(SECONDS_TO_DRAIN)
            if self._running is not None:
                self._running.cancel()
                await asyncio.wait([self._running])
            # Another must not decide while a binding of ours may still happen: then the lease ends by itself, later than any binding.
            if self._elector is not None and are_done and await self._elector.release():
                _LOG.info(0, "The lease was given back", lease="/".join(self._elector.lease))
            for extender in self._assembled.world.extenders:
                await extender.aclose()

    async def _schedule(self) -> None:
        if not self._may_follow.is_set():
            _LOG.info(0, "Starting informers and waiting for sync...")
            self._may_follow.set()
            await self._informers.wait_for_sync()
            _LOG.info(0, "Sync completed")
        elif self._elector is not None:
            # Whoever led before may have bound pods of which we have not heard yet.
            await self._informers.catch_up()
        await self._assembled.scheduler.run()

    def _tell(self, elector: LeaderElector, what: str) -> None:
        namespace, name = elector.lease
        lease = ObjectReference(api_version="coordination.k8s.io/v1", kind="Lease", namespace=namespace, name=name)
        note = f"{elector.identity} {what}"
        self._dispatcher.submit(fwk.RecordEvent(lease, "Normal", "LeaderElection", "LeaderElection", note, DEFAULT_SCHEDULER_NAME))

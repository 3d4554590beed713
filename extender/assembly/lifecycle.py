"""Lifecycle: starts a scheduler, and ends it in order.

It starts once the cluster is known. Of several replicas only the leader starts, after it has caught up with what its
predecessor has done. When it is stopped, it ends in order: no more pods are popped, what was decided is done, events
are written, the lease is released. When the lease is lost, it ends at once.

Upstream: cmd/kube-scheduler/app/server.go, Run. There the lease is released while bindings are still in flight.
"""

import asyncio
from typing import Final, final

from extender import __version__
from extender.assembly.scheduling import Scheduling
from extender.client.informers.informers import Informers
from extender.client.leader_election import LeaderElector
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine import framework as fwk
from extender.values.klog.logger import Logger
from extender.values.objects.pod import DEFAULT_SCHEDULER_NAME
from extender.values.objects.storage import ObjectReference

SECONDS_TO_BIND: Final = 5.0
"""The time for bindings that are in flight at the end."""
SECONDS_TO_DRAIN: Final = 1.0
"""The time for all other writes, including events."""

_LOG: Final = Logger(__name__)


@final
class Lifecycle:
    """Runs a scheduler from its start to its end. State: its running tasks, and whether it has finished.

    Arguments:
        elector: decides when this replica leads; None without other replicas.
        may_follow: the informers start when it is set; set here once this replica leads. Upstream:
            delayCacheUntilActive.
    """

    def __init__(
        self,
        informers: Informers,
        scheduling: Scheduling,
        dispatcher: ApiDispatcher,
        elector: LeaderElector | None,
        may_follow: asyncio.Event,
    ) -> None:
        self.why_over = ""
        """The reason why it ended without being stopped; empty while it runs."""
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
        """Starts the scheduler when it may start, until `finish` or until the lease is lost."""
        self._running = group.create_task(self._run(), name="deciding")

    async def _run(self) -> None:
        _LOG.info(0, "Starting Kubernetes Scheduler", version=f"reprieve {__version__}")
        # The first decision must see every pod that has a node. A replica that does not know the cluster yet leaves the
        # lease to others.
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
            self._record_event(self._elector, "became leader")
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
        """Stops popping pods, waits for what was decided, and releases the lease. A later call waits for the first."""
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
                    self._record_event(self._elector, "stopped leading")
                await self._dispatcher.drain(SECONDS_TO_DRAIN)
            if self._running is not None:
                self._running.cancel()
                await asyncio.wait([self._running])
            # No other replica may decide while a binding of ours may still happen. Then the lease is left to expire,
            # after any binding.
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
            # The previous leader may have bound pods that no watch has shown here yet.
            await self._informers.catch_up()
        await self._assembled.scheduler.run()

    def _record_event(self, elector: LeaderElector, what: str) -> None:
        namespace, name = elector.lease
        lease = ObjectReference(api_version="coordination.k8s.io/v1", kind="Lease", namespace=namespace, name=name)
        note = f"{elector.identity} {what}"
        self._dispatcher.submit(
            fwk.RecordEvent(lease, "Normal", "LeaderElection", "LeaderElection", note, DEFAULT_SCHEDULER_NAME)
        )

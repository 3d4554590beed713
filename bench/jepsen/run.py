"""One run: a cluster, two replicas, faults, and what was seen of it all."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, final

import httpx

from bench.jepsen.checker import SETTLE_SECONDS, unexplained
from bench.jepsen.clients import Observer, Workload
from bench.jepsen.history import Ended, Happened, Healed, History, Request, Seen
from bench.jepsen.machines import EmbeddedServer, Machine, Processors, Replica, killed_afterwards
from bench.jepsen.real_server import RealServer
from bench.jepsen.schedule import FAULTY_SECONDS, SERVER_KINDS, Fault, Kind, schedule
from tests.kit.control_plane import ControlPlane
from tests.kit.forked import ForkServer

PATIENCE: Final = 240.0
"""Seconds after which it is given up on a machine that is too busy."""
LONGEST_RUN: Final = 900.0


def run(
    seed: int,
    fork_server: ForkServer,
    folder: Path,
    *,
    faulty_seconds: float = FAULTY_SECONDS,
    flags: Sequence[str] = ("--leader-elect",),
    assets: Path | None = None,
) -> History:
    """Returns the history of a run.

    Arguments:
        folder: for logs and files; it exists.
        faulty_seconds: the time within which faults begin.
        flags: those of the replicas that say how they know who leads.
        assets: the folder of etcd and kube-apiserver; without it the API server is an embedded cluster.
    """

    async def bounded(plane: ControlPlane | None) -> History:
        story = Story(seed, schedule(seed, faulty_seconds), fork_server, folder, flags, plane)
        async with asyncio.timeout(LONGEST_RUN):
            await story.tell()
        return story.history

    if assets is None:
        return asyncio.run(bounded(None))
    (folder / "plane").mkdir()
    with ControlPlane.start(assets, folder / "plane", without_admission=("TaintNodesByCondition",)) as plane:
        return asyncio.run(bounded(plane))


@final
class Story:
    """State: the processes, and the history so far."""

    def __init__(
        self,
        seed: int,
        faults: list[Fault],
        fork_server: ForkServer,
        folder: Path,
        flags: Sequence[str],
        plane: ControlPlane | None,
    ) -> None:
        self.history: History = []
        self._faults = faults
        self._began = time.monotonic()
        machine = {
            name: Machine(name, fork_server, folder, self.history.append, self._clock) for name in ("server", "a", "b")
        }
        self._server = (
            EmbeddedServer(machine["server"], self.history.append, self._clock)
            if plane is None
            else RealServer(plane, machine["server"], self.history.append, self._clock)
        )
        address = self._server.address
        self._replicas = [
            Replica(machine[name], address, self.history.append, random.Random(f"{seed} network {name}"), flags)
            for name in ("a", "b")
        ]
        self._workload = Workload(address, self.history.append, self._clock, random.Random(f"{seed} workload"))
        glance = random.Random(f"{seed} glance")
        self._observers = [
            Observer("witness", what, address, self.history.append, self._clock, None)
            for what in ("leases", "pods", "nodes")
        ]
        self._observers.append(Observer("glancer", "pods", address, self.history.append, self._clock, glance))
        self._processors = Processors(*machine.values())
        self._now: tuple[list[Seen], list[Seen]] = [], []
        self._busy: set[Replica] = set()
        self._server_is_free = asyncio.Lock()

    async def tell(self) -> None:
        """Everything from the first process to the last."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(
                killed_afterwards(self._server.machine, *(replica.machine for replica in self._replicas))
            )
            for http in (self._workload, *self._observers):
                await stack.enter_async_context(http.opened())
            await stack.enter_async_context(self._server.running())
            await self._workload.prepare()
            async with asyncio.TaskGroup() as group:
                looking = [group.create_task(observer.run()) for observer in self._observers]
                running = [group.create_task(replica.run(self._clock)) for replica in self._replicas]
                working = group.create_task(self._workload.run())
                await self._until(self._is_in_use)
                await self._misfortune()
                self._workload.stop()
                await working
                await self._settle()
                for replica in self._replicas:
                    replica.stop()
                await asyncio.wait(running)
                for task in looking:
                    task.cancel()

    def _clock(self) -> float:
        return time.monotonic() - self._began

    async def _is_in_use(self) -> bool:
        return any(isinstance(record, Request) and record.is_binding and record.is_done for record in self.history)

    async def _until(self, holds: Callable[[], Awaitable[bool]]) -> tuple[float, bool]:
        """Returns when it holds, or after some time even if it does not.

        Returns:
            How long processes waited for a processor meanwhile, and whether that was why it does not hold.
        """
        began, waited = self._clock(), 0.0
        self._processors.waited()
        while not await holds():
            passed = self._clock() - began
            if passed - waited > SETTLE_SECONDS:
                return waited, False
            if passed > PATIENCE:
                return waited, True
            await asyncio.sleep(0.05)
            waited += self._processors.waited()
        return waited, False

    async def _misfortune(self) -> None:
        """All faults of the seed; returns when the last one is over."""
        began = self._clock()
        async with asyncio.TaskGroup() as group:
            for fault in self._faults:
                await asyncio.sleep(max(0.0, began + fault.begin - self._clock()))
                group.create_task(
                    self._strike_server(fault) if fault.kind in SERVER_KINDS else self._strike_replica(fault)
                )

    async def _strike_server(self, fault: Fault) -> None:
        async with self._server_is_free:
            self._happened(f"{fault.kind}")
            await self._server.strike(fault)

    async def _strike_replica(self, fault: Fault) -> None:
        """Nothing happens if something else lasts there, or the replica is just being started."""
        leads = {
            request.holder: request.by for request in self.history if isinstance(request, Request) and request.holder
        }
        leader = leads.get(self._observers[0].holder)
        replica = next((one for one in self._replicas if (one.process == leader) == fault.to_leader), self._replicas[0])
        if replica in self._busy or replica.network is None:
            return
        self._busy.add(replica)
        self._happened(f"{replica.process}: {fault.kind}{f' for {fault.seconds} s' if fault.seconds else ''}")
        try:
            await self._do(fault, replica)
        finally:
            self._busy.discard(replica)

    async def _do(self, fault: Fault, replica: Replica) -> None:
        machine, network = replica.machine, replica.network
        assert network is not None
        match fault.kind:
            case Kind.CUT:
                network.cut()
            case Kind.RESETS:
                replica.resets.share = 0.7
                replica.resets.cut()
            case Kind.SLOW:
                network.request_delay, network.answer_delay = 0.3, 0.3
            case Kind.COPIES:
                network.copied = 0.7
            case Kind.LOST:
                network.lost = 0.4
            case Kind.BLACK_HOLE | Kind.BLACK_HOLE_AND_CUT:
                network.hold("requests")
            case Kind.DEAF:
                network.hold("answers")
            case Kind.NO_LEASE:
                network.hold("leases")
            case Kind.PAUSED:
                machine.send(signal.SIGSTOP)
            case Kind.KILLED:
                machine.send(signal.SIGKILL)
            case Kind.TOLD_TO_END:
                machine.send(signal.SIGTERM)
            case Kind.FULL_DISK:
                machine.fill_disk(True)
            case Kind.CLOCK:
                machine.step_clock(fault.step)
        await asyncio.sleep(fault.seconds)
        if fault.kind is Kind.BLACK_HOLE_AND_CUT:
            network.cut()
        network.heal()
        replica.resets.share = 0.0
        machine.send(signal.SIGCONT)
        machine.fill_disk(False)

    async def _settle(self) -> None:
        """Waits until nothing changes any more, and writes down the end."""
        await self._workload.uncordon_all()
        self.history.append(Healed(self._clock()))
        waited, is_starved = await self._until(self._is_settled)
        self.history.append(Ended(self._clock(), *self._now, waited, is_starved))
        await asyncio.sleep(0.3)

    async def _is_settled(self) -> bool:
        try:
            self._now = await self._workload.now()
        except httpx.TransportError:
            return False
        return not [*unexplained(*self._now)]

    def _happened(self, what: str) -> None:
        self.history.append(Happened(self._clock(), what))

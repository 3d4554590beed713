"""A cluster whose schedulers are processes that come and go, and moments at which they are stopped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from tests.invariants.socket_server import SECONDS, Hold, SocketServer, a_socket_server
from tests.invariants.worlds import World, a_world
from tests.kit.faults import Action, Call, Fault
from tests.kit.forked import ForkServer, Scheduler, a_scheduler
from tests.kit.ports import free_port
from tests.kit.service import kubeconfig_for

CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: {elects}, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 200ms}}
profiles:
- plugins: {{multiPoint: {{enabled: [{{name: ProgressPlugin}}]}}}}
"""
BINDING: Final[Mapping[str, Any]] = {"verb": "create", "resource": "pods", "subresource": "binding"}
VICTIM: Final[Mapping[str, Any]] = {"verb": "delete", "resource": "pods"}


@dataclass(frozen=True)
class Moment:
    """When a scheduler is stopped: a request of it that is held."""

    where: Mapping[str, Any]
    which: Callable[[Call], bool] | None = None
    skip: int = 0
    is_done: bool = False
    """The request is held after the server has done it, not before."""
    makes_room: bool = False
    """There is room only where others go."""
    waits: bool = False
    """The pod is to wait at Permit."""
    holds_all: bool = False
    """Later requests of the same kind are held, too."""


def said(point: str, pod: str) -> Moment:
    """The plugin says so."""
    return Moment({}, lambda call: call.request.url.path == f"/progress/{point}/{pod}")


class Stage:
    """A cluster, its API server, and schedulers that come and go."""

    world: World
    server: SocketServer
    metrics = ""
    """The metrics of the scheduler that was started last."""

    def __init__(self, fork_server: ForkServer, folder: Path, gates: Mapping[str, bool]) -> None:
        """Arguments:
        gates: feature gates of the API server and of the schedulers.
        """
        self._fork_server = fork_server
        self._folder = folder
        self._gates = gates
        self._started = 0

    def run(self, tale: Coroutine[Any, Any, None]) -> None:
        """Tells it where time is real."""
        configuration = load(CONFIGURATION.partition("leaderElection")[0], FeatureGates.of(self._gates))

        async def tell() -> None:
            async with a_world(configuration=configuration) as self.world, a_socket_server(self.world) as self.server:
                await tale

        asyncio.run(tell())

    @asynccontextmanager
    async def a_scheduler(self, *, elects: bool = False) -> AsyncIterator[Scheduler]:
        """A process. With an election it has to lead first."""
        self._started += 1
        port = free_port()
        self.metrics = f"http://127.0.0.1:{port}/metrics"
        config = self._folder / "config.yaml"
        config.write_text(CONFIGURATION.format(elects=str(elects).lower()))
        kubeconfig = kubeconfig_for(int(self.server.url.rpartition(":")[2]), self._folder)
        arguments = ["serve", "--schedule", "--port", str(port)]
        arguments += ["--kubeconfig", str(kubeconfig), "--config", str(config)]
        if self._gates:
            gates = ",".join(f"{name}={str(on).lower()}" for name, on in self._gates.items())
            arguments.append(f"--feature-gates={gates}")
        log = self._folder / f"{self._started}.log"
        async with a_scheduler(self._fork_server, arguments, {"PROGRESS_SERVER": self.server.url}, log) as scheduler:
            yield scheduler

    def hold(self, moment: Moment) -> Hold:
        """The request of that moment is held."""
        hold = Hold()
        action: Action = hold.after() if moment.is_done else hold.before()
        times = None if moment.holds_all else 1
        self.server.faults.add(Fault(action, **moment.where, where=moment.which, skip=moment.skip, times=times))
        return hold


async def eventually(holds: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not await holds():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.02)
